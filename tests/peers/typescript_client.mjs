// Runs where the official TypeScript client is installed: drives a server and prints what it saw, as JSON.
//
// Usage: typescript_client.mjs {auto|legacy|2026-07-28} {COMMAND [ARGUMENT …]|URL}. The report is the one of
// official_client_2.py. A URL that ends with /sse is one of HTTP+SSE.

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [mode, command, ...args] = process.argv.slice(2);
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));

async function until(condition) {
    const deadline = Date.now() + 5000;
    while (!condition() && Date.now() < deadline) {
        await sleep(10);
    }
}

function transport() {
    if (command.endsWith('/sse')) {
        return new SSEClientTransport(new URL(command));
    }
    return command.includes('://')
        ? new StreamableHTTPClientTransport(new URL(command))
        : new StdioClientTransport({ command, args });
}

const asked = [];
const logged = [];
const changed = new Set();

const client = new Client(
    { name: 'typescript', version: '1.0.0' },
    {
        capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
        versionNegotiation: { mode: mode.startsWith('20') ? { pin: mode } : mode }
    }
);
client.setRequestHandler('elicitation/create', async ({ params }) => {
    asked.push(`elicitation: ${params.message}`);
    const wanted = params.requestedSchema.properties;
    const content = 'seats' in wanted ? { seats: 3, window: true } : { [Object.keys(wanted)[0]]: true };
    return { action: 'accept', content };
});
client.setRequestHandler('sampling/createMessage', async ({ params }) => {
    const [message] = params.messages;
    const { text } = Array.isArray(message.content) ? message.content[0] : message.content;
    asked.push(`sampling: ${text} (${params.maxTokens})`);
    return { role: 'assistant', content: { type: 'text', text: 'profound' }, model: 'test-model' };
});
client.setRequestHandler('roots/list', async () => {
    asked.push('roots');
    return { roots: [{ uri: 'file:///work' }, { uri: 'file:///home' }] };
});
client.setNotificationHandler('notifications/message', ({ params }) => {
    logged.push([params.level, params.logger, params.data]);
});
for (const method of ['notifications/tools/list_changed', 'notifications/resources/updated']) {
    client.setNotificationHandler(method, () => {
        changed.add(method);
    });
}

async function errorOf(promise) {
    try {
        return { result: await promise };
    } catch (error) {
        return { code: error.code, message: error.message };
    }
}

const text = result => result.content[0].text;
const call = (name, args = {}, options = {}) => client.callTool({ name, arguments: args }, options);
const report = {};

await client.connect(transport());
report.version = client.getNegotiatedProtocolVersion();
report.server = client.getServerVersion();
report.instructions = client.getInstructions();
report.tools = (await client.listTools()).tools;
report.resources = (await client.listResources()).resources;
report.templates = (await client.listResourceTemplates()).resourceTemplates;
report.prompts = (await client.listPrompts()).prompts;

report.calls = {};
const calls = {
    add: { a: 2, b: 40 },
    greet: { name: 'Ada', style: 'long' },
    locate: { x: 1, y: 2.5 },
    picture: {},
    sound: {},
    mixed: {},
    book: {},
    confirm: {},
    think: { topic: 'time' },
    folders: {}
};
for (const [name, given] of Object.entries(calls)) {
    report.calls[name] = { isError: false, ...(await call(name, given)) };
}
report.asked = asked;

report.errors = {
    tool: await errorOf(call('fail', { how: 'tool' })),
    crash: await errorOf(call('fail', { how: 'crash' })),
    'unknown tool': await errorOf(call('no_such_tool')),
    'missing argument': await errorOf(call('add')),
    'wrong type': await errorOf(call('add', { a: 'x' })),
    'unknown argument': await errorOf(call('add', { a: 1, c: 2 })),
    'unknown resource': await errorOf(client.readResource({ uri: 'ours://nothing' })),
    'unknown prompt': await errorOf(client.getPrompt({ name: 'nothing' }))
};

const progress = [];
const onprogress = ({ progress: done, total, message }) => progress.push([done, total, message]);
const _meta = report.version >= '2026' ? { 'io.modelcontextprotocol/logLevel': 'info' } : undefined;
const steps = await client.callTool({ name: 'steps', arguments: { count: 5 }, _meta }, { onprogress });
report.steps = text(steps);
await until(() => progress.length >= 5 && logged.length >= 5);
report.progress = progress;
report.logged = logged;

await call('sleep', { seconds: 600 }, { signal: AbortSignal.timeout(300) }).catch(() => {});
report.timeout = (await errorOf(call('sleep', { seconds: 600 }, { timeout: 200 }))).code;
for (let attempt = 0; attempt < 500; attempt++) {
    report['running after cancellation'] = text(await call('count_running'));
    if (report['running after cancellation'] === '0') {
        break;
    }
    await sleep(10);
}

report.read = {};
for (const uri of ['ours://note', 'ours://bytes', 'ours://user/ada']) {
    report.read[uri] = (await client.readResource({ uri })).contents;
}
report.prompt = (await client.getPrompt({ name: 'review', arguments: { code: 'x = 1', strict: 'true' } })).messages;
const reference = { type: 'ref/prompt', name: 'review' };
report.completion = (await client.complete({ ref: reference, argument: { name: 'code', value: 'p' } })).completion;

if (report.version < '2026') {
    await client.ping();
    await client.setLoggingLevel('error');
    await client.subscribeResource({ uri: 'ours://note' });
    await call('change');
    await until(() => changed.size === 2);
} else {
    const filter = { toolsListChanged: true, resourceSubscriptions: ['ours://note'] };
    const subscription = await client.listen(filter);
    await call('change');
    await until(() => changed.size === 2);
    await subscription.close();
}
report.changed = [...changed].sort();
report['tools after the change'] = (await client.listTools({}, { cacheMode: 'refresh' })).tools.length;

console.log(JSON.stringify(report));
await client.close();
