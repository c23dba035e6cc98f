// The JavaScript SDK 0.3 as a client. Its 0.3.7 is run too, by REST: that one sends `kind` objects there, the later
// ones send ProtoJSON.
import { randomUUID } from 'node:crypto';

import { BASE64, HOOK, base, check, collect, label, load, main, polled, refused, rest, same, scenario } from './harness.mjs';

const sdk = load('@a2a-js/sdk/client');
// ProtoJSON of 0.3 has no place for a file's name, a part's metadata and an update's `append`, says this SDK
const lossy = rest && !label.startsWith('js037');
const RUNNING = ['submitted', 'working'];

const resolver = new sdk.DefaultAgentCardResolver();
const factory = new sdk.ClientFactory({
  transports: [new sdk.JsonRpcTransportFactory(), new sdk.RestTransportFactory()],
  preferredTransports: [rest ? 'HTTP+JSON' : 'JSONRPC'],
  cardResolver: resolver,
});
const client = () => factory.createFromUrl(base);
const said = (text, more = [], members = {}) => ({
  message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text }, ...more], ...members },
});
const send = async (...what) => (await client()).sendMessage(said(...what));
const leave = async (text) => (await client()).sendMessage({ ...said(text), configuration: { blocking: false } });
const textOf = (parts) => parts.map((part) => part.text).join('');

scenario('card', async () => {
  const card = await resolver.resolve(base);
  const faces = [{ transport: card.preferredTransport ?? 'JSONRPC', url: card.url }, ...(card.additionalInterfaces ?? [])];
  const spoken = faces.map((face) => face.transport);
  check(spoken.includes('JSONRPC') && spoken.includes('HTTP+JSON'), spoken);
  check(faces.every((face) => face.url.startsWith(base)), faces);
  check(card.protocolVersion.startsWith('0.3') && card.capabilities.streaming && card.skills[0].id === 'echo', card);
});

scenario('send', async () => {
  const task = await send('echo hello');
  check(task.kind === 'task' && task.status.state === 'completed', task);
  same(textOf(task.artifacts[0].parts), 'hello', task);
  check(task.history[0].role === 'user' && textOf(task.history[0].parts) === 'echo hello', task);
});

scenario('stream', async () => {
  const seen = await collect((await client()).sendMessageStream(said('stream 3 30')));
  const update = 'artifact-update';
  const kinds = seen.map((event) => event.kind);
  same(kinds, ['task', 'status-update', update, update, update, 'status-update']);
  const chunks = seen.slice(2, 5);
  same(chunks.map((chunk) => textOf(chunk.artifact.parts)), ['chunk 0 ', 'chunk 1 ', 'chunk 2 ']);
  if (!lossy) same(chunks.map((chunk) => chunk.append ?? false), [false, true, true]);
  check(chunks[2].lastChunk && seen[5].final && seen[5].status.state === 'completed', seen);
});

scenario('poll', async () => {
  const agent = await client();
  const { id, status } = await leave('slow 0.5');
  check(RUNNING.includes(status.state), status);
  const task = await polled(() => agent.getTask({ id }), RUNNING);
  check(task.status.state === 'completed' && textOf(task.artifacts[0].parts) === 'slept 0.5', task);
});

scenario('cancel', async () => {
  const { id } = await leave('slow 30');
  const task = await (await client()).cancelTask({ id });
  same(task.status.state, 'canceled', task);
});

scenario('resubscribe', async () => {
  const { id } = await leave('stream 5 200');
  const last = (await collect((await client()).resubscribeTask({ id }))).at(-1);
  check(last.kind === 'status-update' && last.final && last.status.state === 'completed', last);
});

scenario('input_required', async () => {
  const task = await send('input');
  check(task.status.state === 'input-required' && textOf(task.status.message.parts) === 'which one?', task);
  const again = await send('blue', [], { taskId: task.id, contextId: task.contextId });
  check(again.id === task.id && again.status.state === 'completed', again);
  same(textOf(again.artifacts[0].parts), 'resumed with: blue', again);
});

scenario('file_out', async () => {
  const [url, raw] = (await send('file')).artifacts[0].parts.map((part) => part.file);
  check(url.uri === 'https://example.com/report.pdf' && url.mimeType === 'application/pdf', url);
  check(raw.bytes === BASE64 && raw.mimeType === 'application/octet-stream', raw);
  if (!lossy) same([url.name, raw.name], ['report.pdf', 'blob.bin']);
});

scenario('file_in', async () => {
  const files = [
    { bytes: BASE64, mimeType: 'application/octet-stream', name: 'a.bin' },
    { uri: 'https://example.com/x.png', mimeType: 'image/png', name: 'x.png' },
  ];
  const sent = files.map((file) => ({ kind: 'file', file, metadata: { m: 1 } }));
  const back = (await send('echo', sent)).artifacts[0].parts.slice(1);
  const plain = ({ name, ...file }) => (lossy ? file : { ...file, name });
  same(back.map((part) => plain({ ...part.file })), files.map(plain), back);
  if (!lossy) same(back.map((part) => part.metadata), [{ m: 1 }, { m: 1 }]);
});

scenario('data_out', async () => {
  const { data } = (await send('data')).artifacts[0].parts[0];
  check(data.int === 42 && data.float === 2.5 && data.null === null && data.true === true, data);
  same([data.list, data.empty], [[1, 'two', null, { three: 3 }], {}]);
  check(data.unicode === 'Grüße, 世界 🌍' && data.kind === 'a key named kind', data);
});

scenario('data_in', async () => {
  const data = { a: [1, { b: null }], kind: 'x', snake_case: { camelCase: 1.5 } };
  const back = (await send('echo', [{ kind: 'data', data }])).artifacts[0].parts[1];
  same(back.data, data, back);
});

scenario('fail', async () => {
  const task = await send('fail');
  check(task.status.state === 'failed' && textOf(task.status.message.parts) === 'it failed', task);
});

scenario('message_only', async () => {
  const seen = [await send('message good day'), ...(await collect((await client()).sendMessageStream(said('message good day'))))];
  check(seen.length === 2, seen);
  for (const { kind, role, parts } of seen) same([kind, role, textOf(parts)], ['message', 'agent', 'good day']);
});

scenario('push_config', async () => {
  const [agent, { id }] = [await client(), await leave('slow 5')];
  const authentication = { schemes: ['Bearer'], credentials: 'c' };
  const config = (name) => ({ taskId: id, pushNotificationConfig: { id: name, url: HOOK, token: 't', authentication } });
  const names = async () => {
    const found = await agent.listTaskPushNotificationConfig({ id });
    return found.map((one) => one.pushNotificationConfig.id).sort();
  };
  for (const name of ['a', 'b']) same(await agent.setTaskPushNotificationConfig(config(name)), config(name));
  same(await agent.getTaskPushNotificationConfig({ id, pushNotificationConfigId: 'a' }), config('a'));
  same(await names(), ['a', 'b']);
  await agent.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId: 'a' });
  same(await names(), ['b']);
});

scenario('unknown_task', async () => {
  const agent = await client();
  await refused(agent.getTask({ id: 'none' }), 'TaskNotFound');
  await refused(agent.cancelTask({ id: 'none' }), 'TaskNotFound');
  await refused(send('echo', [], { taskId: 'none' }), 'TaskNotFound');
});

scenario('extended_card', async () => {
  const card = await (await client()).getAgentCard();
  check(card.name.endsWith('(extended)') && card.skills.length === 2, card);
});

await main();
