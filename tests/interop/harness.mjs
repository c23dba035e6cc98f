// What the JavaScript client programs share: a list of scenarios, run one after the other, one line each.
//
// CLIENT.mjs BASE jsonrpc|rest LABEL FOLDER    FOLDER is where the SDK is installed
import { createRequire } from 'node:module';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';

const LIMIT = 20_000; // milliseconds a scenario may take
export const BASE64 = 'AAECaGVsbG///g==';
export const HOOK = 'http://127.0.0.1:9/hook'; // nobody listens there

export const [base, transport, label, folder] = process.argv.slice(2);
export const rest = transport === 'rest';
export const load = createRequire(path.resolve(folder, 'client.js'));
const only = (process.env.A2A_INTEROP_ONLY ?? '').split(' ').filter(Boolean);
const scenarios = [];

export const scenario = (name, run) => scenarios.push([name, run]);

export function check(holds, what) {
  if (!holds) throw new Error(typeof what === 'string' ? what : JSON.stringify(what));
}

export const same = (found, wanted, what = found) => check(isDeepStrictEqual(found, wanted), what);

export async function collect(events) {
  const seen = [];
  for await (const event of events) seen.push(event);
  return seen;
}

// Asks until the task runs no more; the scenario's own limit ends a wait that is too long.
export async function polled(ask, running) {
  for (;;) {
    const task = await ask();
    if (!running.includes(task.status.state)) return task;
    await new Promise((done) => setTimeout(done, 100));
  }
}

export async function refused(promise, name) {
  let found;
  try {
    found = await promise;
  } catch (error) {
    const names = [error.name, error.constructor.name];
    return check(names.some((known) => known.startsWith(name)), `${names}: ${error.message}`);
  }
  throw new Error(`not refused: ${JSON.stringify(found)}`);
}

async function one(name, run) {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error('too late')), LIMIT);
  });
  try {
    await Promise.race([run(), late]);
    console.log(`ok   ${label} ${name}`);
  } catch (error) {
    console.log(`FAIL ${label} ${name}: ${String(error?.stack?.split('\n')[0]).replace(/\s+/g, ' ').slice(0, 300)}`);
  } finally {
    clearTimeout(timer);
  }
}

export async function main() {
  for (const [name, run] of scenarios) if (!only.length || only.includes(name)) await one(name, run);
  console.log('end');
  process.exit();
}
