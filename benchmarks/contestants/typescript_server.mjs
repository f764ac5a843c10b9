// The benchmark's server on the TypeScript SDK.

import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const text = value => ({ content: [{ type: 'text', text: value }] });
const integer = z.number().int();
const pair = z.object({ a: integer, b: integer });
const point = z.object({ x: integer, y: integer });

function create() {
    const server = new McpServer({ name: 'bench', version: '0.0.0' }, { capabilities: { tools: {} } });
    if (process.argv.length > 2) {
        for (let index = 0; index < Number(process.argv[2]); index++) {
            server.registerTool(`add_${index}`, { inputSchema: pair }, async ({ a, b }) => text(String(a + b)));
        }
        return server;
    }
    server.registerTool('add', { inputSchema: pair }, async ({ a, b }) => text(String(a + b)));
    server.registerTool('add_sync', { inputSchema: pair }, ({ a, b }) => text(String(a + b)));
    server.registerTool('echo', { inputSchema: z.object({ text: z.string() }) }, async args => text(args.text));
    server.registerTool('fill', { inputSchema: z.object({ size: integer }) }, async ({ size }) => text('x'.repeat(size)));
    server.registerTool('locate', { inputSchema: point, outputSchema: point }, async ({ x, y }) => ({
        ...text(JSON.stringify({ x, y })),
        structuredContent: { x, y }
    }));
    server.registerTool('count', { inputSchema: z.object({ steps: integer }) }, async ({ steps }, context) => {
        const progressToken = context.mcpReq._meta?.progressToken;
        for (let progress = 1; progress <= steps; progress++) {
            await context.mcpReq.notify({
                method: 'notifications/progress',
                params: { progressToken, progress, total: steps }
            });
        }
        return text('done');
    });
    return server;
}

// The default limit of 10 MB would refuse the large payloads.
serveStdio(create, { transport: new StdioServerTransport(process.stdin, process.stdout, { maxBufferSize: 128_000_000 }) });
