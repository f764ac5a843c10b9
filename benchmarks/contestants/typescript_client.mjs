// The benchmark's client on the TypeScript SDK: {stdio|http} {legacy|modern} WINDOW SECONDS {SERVER…|URL}

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [target, era, window, seconds, command, ...args] = process.argv.slice(2);
const WARM_UP = 0.15; // seconds

const client = new Client(
    { name: 'bench', version: '0.0.0' },
    { versionNegotiation: { mode: era === 'legacy' ? 'legacy' : { pin: '2026-07-28' } } }
);

async function call(number) {
    const result = await client.callTool({ name: 'add', arguments: { a: number, b: 7 } });
    const { text } = result.content[0];
    if (result.isError || text !== String(number + 7)) {
        throw new Error(`${number} + 7 is not ${text}`);
    }
}

async function run(calls) {
    let number = 0;
    const oneAfterAnother = async () => {
        while (number < calls) {
            await call(number++);
        }
    };
    const started = performance.now();
    await Promise.all(Array.from({ length: Number(window) }, oneAfterAnother));
    return (performance.now() - started) / 1000;
}

const transport =
    target === 'http' ? new StreamableHTTPClientTransport(new URL(command)) : new StdioClientTransport({ command, args });
await client.connect(transport);
let batch = Math.max(200, window);
let took = await run(batch);
while (took < WARM_UP && Number(seconds)) {
    batch *= 2;
    took = await run(batch);
}
const calls = Math.max(batch, Math.floor((batch / took) * seconds));
const before = process.cpuUsage();
took = await run(calls);
const { user, system } = process.cpuUsage(before);
console.log(JSON.stringify({ calls, seconds: took, cpu: (user + system) / 1e6 }));
await client.close();
