// The JavaScript SDK 0.3 as a client of what MemoryLake does in its own way.
import { randomUUID } from 'node:crypto';

import { base, check, collect, load, main, polled, rest, same, scenario } from '../harness.mjs';

const sdk = load('@a2a-js/sdk/client');
const RUNNING = ['submitted', 'working'];
const SUM = { id: 'call_1', name: 'add', args: { a: 2, b: [1, 0.5] } };
// ProtoJSON of 0.3 has no place for a part's metadata, says this SDK
const lossy = rest;

const factory = new sdk.ClientFactory({
  transports: [new sdk.JsonRpcTransportFactory(), new sdk.RestTransportFactory()],
  preferredTransports: [rest ? 'HTTP+JSON' : 'JSONRPC'],
  cardResolver: new sdk.DefaultAgentCardResolver(),
});
const client = () => factory.createFromUrl(base);
const said = (text, blocking = true, members = {}) => ({
  message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text }], ...members },
  configuration: { blocking },
});
const send = async (...what) => (await client()).sendMessage(said(...what));

function areTools(history) {
  const parts = history.filter(({ role }) => role === 'agent').map((message) => message.parts[0]);
  same(parts[0].text, 'I have to add.');
  same(parts[2].data, SUM);
  same(parts[7].data.response, { error: 'gone', code: 410 });
  if (lossy) return;
  same(parts[0].metadata, { adk_thought: true });
  same(parts[2].metadata, { adk_type: 'function_call', adk_thought_signature: 'c2lnbmVk' });
  same(parts[3].metadata, { adk_type: 'function_response' });
}

scenario('tools_sent', async () => areTools((await send('tools')).history));

scenario('tools_polled', async () => {
  const agent = await client();
  const { id } = await send('tools', false);
  const task = await polled(() => agent.getTask({ id }), RUNNING);
  same(task.artifacts[0].parts[0].text, 'The sum is 3.', task);
  areTools(task.history);
});

scenario('tools_streamed', async () => {
  const seen = await collect((await client()).sendMessageStream(said('tools')));
  const parts = seen.map((event) => event.status?.message?.parts[0]).filter(Boolean);
  same(parts.filter((part) => part.data?.args).length, 3, parts);
  if (!lossy) same(parts.filter((part) => part.metadata?.adk_type === 'function_call').length, 3, parts);
});

scenario('left_and_subscribed', async () => {
  let id;
  for await (const event of (await client()).sendMessageStream(said('stream 5 100'))) {
    id = event.id;
    break;
  }
  const seen = await collect((await client()).resubscribeTask({ id }));
  check(seen.at(-1).final && seen.at(-1).status.state === 'completed', seen);
  const texts = seen.map((event) => event.status?.message?.parts[0].text ?? '');
  same(texts.join(''), 'chunk 0 chunk 1 chunk 2 chunk 3 chunk 4 ');
});

scenario('attachments', async () => {
  const kinds = (await send('file')).artifacts[0].parts.slice(1).map((part) => part.data.kind);
  same(kinds, ['attachments', 'recommended_questions']);
});

scenario('busy', async () => {
  const agent = await client();
  const { id, contextId } = await send('slow 30', false);
  const found = await send('echo hi', true, { contextId }).catch((error) => error);
  check(found instanceof Error, found);
  await agent.cancelTask({ id });
  same((await send('echo hi', true, { contextId })).status.state, 'completed');
});

main();
