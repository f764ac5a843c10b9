// The benchmark's server on the TypeScript SDK: TOOLS [{stateless|sessions} {json|default} WORKERS PORT].


import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const [tools, state, replies, , port] = process.argv.slice(2);

const text = value => ({ content: [{ type: 'text', text: value }] });
const integer = z.number().int();
const pair = z.object({ a: integer, b: integer });
const point = z.object({ x: integer, y: integer });

function create() {
    const server = new McpServer({ name: 'bench', version: '0.0.0' }, { capabilities: { tools: { listChanged: true } } });
    if (Number(tools)) {
        for (let index = 0; index < Number(tools); index++) {
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
    server.registerTool('fail', { inputSchema: z.object({}) }, async () => {
        throw new Error('no');
    });
    server.registerTool('announce', { inputSchema: z.object({}) }, async () => {
        handler.notify.toolsChanged();
        return text('done');
    });
    return server;
}

let handler;

async function listen() {
    const { createServer } = await import('node:http');
    const { randomUUID } = await import('node:crypto');
    const { localhostHostValidation, localhostOriginValidation, NodeStreamableHTTPServerTransport, toNodeHandler } =
        await import('@modelcontextprotocol/node');
    const isHostValid = localhostHostValidation();
    const isOriginValid = localhostOriginValidation();
    handler = createMcpHandler(create, {
        responseMode: replies === 'json' ? 'json' : 'auto',
        maxSubscriptions: 20_000
    });
    const serve = toNodeHandler(handler);
    const sessions = new Map();

    async function inSession(request, response) {
        let transport = sessions.get(request.headers['mcp-session-id']);
        if (transport === undefined) {
            transport = new NodeStreamableHTTPServerTransport({
                sessionIdGenerator: randomUUID,
                enableJsonResponse: replies === 'json',
                onsessioninitialized: id => void sessions.set(id, transport)
            });
            await create().connect(transport);
        }
        await transport.handleRequest(request, response);
    }

    createServer((request, response) => {
        if (!isHostValid(request, response) || !isOriginValid(request, response)) return undefined;
        const legacy = request.headers['mcp-protocol-version'] !== '2026-07-28';
        return state === 'sessions' && legacy ? inSession(request, response) : serve(request, response);
    }).listen(Number(port), '127.0.0.1');
}

if (port === undefined) {
    // The default limit of 10 MB would refuse the large payloads.
    serveStdio(create, { transport: new StdioServerTransport(process.stdin, process.stdout, { maxBufferSize: 128_000_000 }) });
} else {
    await listen();
}
