// The JavaScript SDK 1.x as a client of what MemoryLake does in its own way.
import { randomUUID } from 'node:crypto';

import { base, check, collect, load, main, polled, rest, same, scenario } from '../harness.mjs';

const sdk = load('@a2a-js/sdk/client');
const { Role, TaskState } = load('@a2a-js/sdk');
const RUNNING = [TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING];
const SUM = { id: 'call_1', name: 'add', args: { a: 2, b: [1, 0.5] } };

const factory = new sdk.ClientFactory({
  transports: [new sdk.JsonRpcTransportFactory(), new sdk.RestTransportFactory()],
  preferredTransports: [rest ? 'HTTP+JSON' : 'JSONRPC'],
  cardResolver: new sdk.DefaultAgentCardResolver(),
});
const client = () => factory.createFromUrl(base);
const tenant = '';
const said = (text, returnImmediately = false) => ({
  tenant,
  message: {
    messageId: randomUUID(),
    contextId: '',
    taskId: '',
    role: Role.ROLE_USER,
    parts: [{ content: { $case: 'text', value: text }, filename: '', mediaType: '', metadata: undefined }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  },
  configuration: { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately },
  metadata: undefined,
});
const send = async (...what) => (await client()).sendMessage(said(...what));

function areTools(history) {
  const parts = history.filter(({ role }) => role === Role.ROLE_AGENT).map((message) => message.parts[0]);
  same([parts[0].content.value, parts[0].metadata], ['I have to add.', { adk_thought: true }]);
  same([parts[2].content.value, parts[2].metadata], [SUM, { adk_type: 'function_call', adk_thought_signature: 'c2lnbmVk' }]);
  same(parts[3].metadata, { adk_type: 'function_response' });
  same(parts[7].content.value.response, { error: 'gone', code: 410 });
}

scenario('tools_sent', async () => areTools((await send('tools')).history));

scenario('tools_polled', async () => {
  const agent = await client();
  const { id } = await send('tools', true);
  const task = await polled(() => agent.getTask({ tenant, id }), RUNNING);
  same(task.artifacts[0].parts[0].content.value, 'The sum is 3.', task);
  areTools(task.history);
});

scenario('tools_streamed', async () => {
  const seen = await collect((await client()).sendMessageStream(said('tools')));
  const updates = seen.filter((event) => event.payload.$case === 'statusUpdate').map((event) => event.payload.value);
  const parts = updates.map((update) => update.status.message?.parts[0]).filter(Boolean);
  same(parts.filter((part) => part.metadata?.adk_type === 'function_call').length, 3, parts);
  same(parts[0].metadata, { adk_thought: true });
});

scenario('left_and_subscribed', async () => {
  let id;
  for await (const event of (await client()).sendMessageStream(said('stream 5 100'))) {
    id = event.payload.value.id;
    break;
  }
  const seen = await collect((await client()).resubscribeTask({ tenant, id }));
  same(seen.at(-1).payload.value.status.state, TaskState.TASK_STATE_COMPLETED);
  const texts = seen.map((event) => event.payload.value.status?.message?.parts[0].content.value ?? '');
  same(texts.join(''), 'chunk 0 chunk 1 chunk 2 chunk 3 chunk 4 ');
});

scenario('attachments', async () => {
  const kinds = (await send('file')).artifacts[0].parts.slice(1).map((part) => part.content.value.kind);
  same(kinds, ['attachments', 'recommended_questions']);
});

scenario('busy', async () => {
  const agent = await client();
  const { id, contextId } = await send('slow 30', true);
  const again = said('echo hi');
  again.message.contextId = contextId;
  const found = await agent.sendMessage(again).catch((error) => error);
  check(found instanceof Error, found);
  await agent.cancelTask({ tenant, id, metadata: undefined });
  same((await agent.sendMessage({ ...again, message: { ...again.message, messageId: randomUUID() } })).status.state, TaskState.TASK_STATE_COMPLETED);
});

main();
