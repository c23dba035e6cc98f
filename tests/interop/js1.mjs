// The JavaScript SDK 1.x as a client.
import { randomUUID } from 'node:crypto';

import { BASE64, HOOK, base, check, collect, load, main, polled, refused, rest, same, scenario } from './harness.mjs';

const sdk = load('@a2a-js/sdk/client');
const { Role, TaskState } = load('@a2a-js/sdk');
const RUNNING = [TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING];

const resolver = new sdk.DefaultAgentCardResolver();
const factory = new sdk.ClientFactory({
  transports: [new sdk.JsonRpcTransportFactory(), new sdk.RestTransportFactory()],
  preferredTransports: [rest ? 'HTTP+JSON' : 'JSONRPC'],
  cardResolver: resolver,
});
const client = () => factory.createFromUrl(base);
const tenant = '';
const part = ($case, value, members = {}) => ({ content: { $case, value }, filename: '', mediaType: '', metadata: undefined, ...members });
const said = (text, more = [], members = {}, returnImmediately = false) => ({
  tenant,
  message: {
    messageId: randomUUID(),
    contextId: '',
    taskId: '',
    role: Role.ROLE_USER,
    parts: [part('text', text), ...more],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...members,
  },
  configuration: { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately },
  metadata: undefined,
});
const send = async (...what) => (await client()).sendMessage(said(...what));
const leave = (text) => send(text, [], {}, true);
const textOf = (parts) => parts.map((one) => one.content.value).join('');
const kinds = (seen) => seen.map((event) => event.payload.$case);

scenario('card', async () => {
  const card = await resolver.resolve(base);
  const faces = card.supportedInterfaces.map((face) => `${face.protocolBinding} ${face.protocolVersion}`);
  check(faces.includes('JSONRPC 1.0') && faces.includes('HTTP+JSON 1.0'), faces);
  check(card.supportedInterfaces.every((face) => face.url.startsWith(base)), card);
  check(card.capabilities.streaming && card.capabilities.extendedAgentCard && card.skills[0].id === 'echo', card);
});

scenario('send', async () => {
  const task = await send('echo hello');
  same(task.status.state, TaskState.TASK_STATE_COMPLETED, task);
  same(textOf(task.artifacts[0].parts), 'hello', task);
  check(task.history[0].role === Role.ROLE_USER && textOf(task.history[0].parts) === 'echo hello', task);
});

scenario('stream', async () => {
  const seen = await collect((await client()).sendMessageStream(said('stream 3 30')));
  const update = 'artifactUpdate';
  same(kinds(seen), ['task', 'statusUpdate', update, update, update, 'statusUpdate']);
  const chunks = seen.slice(2, 5).map((event) => event.payload.value);
  same(chunks.map((chunk) => textOf(chunk.artifact.parts)), ['chunk 0 ', 'chunk 1 ', 'chunk 2 ']);
  same(chunks.map((chunk) => chunk.append), [false, true, true]);
  check(chunks[2].lastChunk, chunks);
  same(seen[5].payload.value.status.state, TaskState.TASK_STATE_COMPLETED);
});

scenario('poll', async () => {
  const agent = await client();
  const { id, status } = await leave('slow 0.5');
  check(RUNNING.includes(status.state), status);
  const task = await polled(() => agent.getTask({ tenant, id }), RUNNING);
  same(task.status.state, TaskState.TASK_STATE_COMPLETED, task);
  same(textOf(task.artifacts[0].parts), 'slept 0.5', task);
});

scenario('cancel', async () => {
  const { id } = await leave('slow 30');
  const task = await (await client()).cancelTask({ tenant, id, metadata: undefined });
  same(task.status.state, TaskState.TASK_STATE_CANCELED, task);
});

scenario('resubscribe', async () => {
  const { id } = await leave('stream 5 200');
  const seen = await collect((await client()).resubscribeTask({ tenant, id }));
  same(kinds(seen)[0], 'task');
  same(seen.at(-1).payload.value.status.state, TaskState.TASK_STATE_COMPLETED);
});

scenario('input_required', async () => {
  const task = await send('input');
  same(task.status.state, TaskState.TASK_STATE_INPUT_REQUIRED, task);
  same(textOf(task.status.message.parts), 'which one?', task);
  const again = await send('blue', [], { taskId: task.id, contextId: task.contextId });
  check(again.id === task.id && again.status.state === TaskState.TASK_STATE_COMPLETED, again);
  same(textOf(again.artifacts[0].parts), 'resumed with: blue', again);
});

scenario('file_out', async () => {
  const [url, raw] = (await send('file')).artifacts[0].parts;
  same([url.content.value, url.mediaType, url.filename], ['https://example.com/report.pdf', 'application/pdf', 'report.pdf']);
  same(Buffer.from(raw.content.value).toString('base64'), BASE64, raw);
  same([raw.mediaType, raw.filename], ['application/octet-stream', 'blob.bin']);
});

scenario('file_in', async () => {
  const sent = [
    part('raw', Buffer.from(BASE64, 'base64'), { filename: 'a.bin', mediaType: 'application/octet-stream', metadata: { m: 1 } }),
    part('url', 'https://example.com/x.png', { filename: 'x.png', mediaType: 'image/png' }),
  ];
  const [raw, url] = (await send('echo', sent)).artifacts[0].parts.slice(1);
  same(Buffer.from(raw.content.value).toString('base64'), BASE64, raw);
  same([raw.filename, raw.mediaType, raw.metadata], ['a.bin', 'application/octet-stream', { m: 1 }]);
  same([url.content.value, url.filename, url.mediaType], ['https://example.com/x.png', 'x.png', 'image/png']);
});

scenario('data_out', async () => {
  const data = (await send('data')).artifacts[0].parts[0].content.value;
  check(data.int === 42 && data.float === 2.5 && data.null === null && data.true === true, data);
  same([data.list, data.empty], [[1, 'two', null, { three: 3 }], {}]);
  check(data.unicode === 'Grüße, 世界 🌍' && data.kind === 'a key named kind', data);
});

scenario('data_in', async () => {
  const values = [{ a: [1, { b: null }], kind: 'x' }, [1, 2], 'text', 7, true];
  const back = (await send('echo', values.map((value) => part('data', value)))).artifacts[0].parts.slice(1);
  same(back.map((one) => one.content.value), values);
});

scenario('fail', async () => {
  const task = await send('fail');
  same(task.status.state, TaskState.TASK_STATE_FAILED, task);
  same(textOf(task.status.message.parts), 'it failed', task);
});

scenario('message_only', async () => {
  const whole = await send('message good day');
  const seen = await collect((await client()).sendMessageStream(said('message good day')));
  same(kinds(seen), ['message']);
  for (const { role, parts } of [whole, seen[0].payload.value]) same([role, textOf(parts)], [Role.ROLE_AGENT, 'good day']);
});

scenario('push_config', async () => {
  const [agent, { id: taskId }] = [await client(), await leave('slow 5')];
  const authentication = { scheme: 'Bearer', credentials: 'c' };
  const config = (id) => ({ tenant, taskId, id, url: HOOK, token: 't', authentication });
  const names = async () => {
    const { configs } = await agent.listTaskPushNotificationConfig({ tenant, taskId, pageSize: 0, pageToken: '' });
    return configs.map((one) => one.id).sort();
  };
  for (const name of ['a', 'b']) same(await agent.createTaskPushNotificationConfig(config(name)), config(name));
  same(await agent.getTaskPushNotificationConfig({ tenant, taskId, id: 'a' }), config('a'));
  same(await names(), ['a', 'b']);
  await agent.deleteTaskPushNotificationConfig({ tenant, taskId, id: 'a' });
  same(await names(), ['b']);
});

scenario('list_tasks', async () => {
  const [agent, contextId] = [await client(), randomUUID()];
  for (let count = 0; count < 3; count++) await send('echo hello', [], { contextId });
  const list = (more) => agent.listTasks({ tenant, contextId, status: TaskState.TASK_STATE_UNSPECIFIED, pageToken: '', ...more });
  const page = await list({ pageSize: 2, includeArtifacts: true });
  check(page.tasks.length === 2 && page.totalSize === 3 && page.tasks[0].artifacts.length === 1, page);
  const last = await list({ pageSize: 2, pageToken: page.nextPageToken });
  check(last.tasks.length === 1 && !last.nextPageToken && !last.tasks[0].artifacts.length, last);
  same((await list({ status: TaskState.TASK_STATE_FAILED })).tasks, []);
});

scenario('unknown_task', async () => {
  const [agent, id] = [await client(), 'none'];
  await refused(agent.getTask({ tenant, id }), 'TaskNotFound');
  await refused(agent.cancelTask({ tenant, id, metadata: undefined }), 'TaskNotFound');
  await refused(collect(agent.resubscribeTask({ tenant, id })), 'TaskNotFound');
  await refused(send('echo', [], { taskId: id }), 'TaskNotFound');
});

scenario('extended_card', async () => {
  const card = await (await client()).getAgentCard();
  check(card.name.endsWith('(extended)') && card.skills.length === 2, card);
});

await main();
