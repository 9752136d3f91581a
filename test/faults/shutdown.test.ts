import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ACCOUNT, newFolder, serve } from '../app/cli/support.ts';
import { engines, newStore } from '../app/server/databases.ts';

const KEEP_ALIVE = 32;
const PER_CALL = 2;
/** The number of answers before the signal is sent. */
const WARM_CALLS = 200;
/** From the last answer to the exit: 200 ms are documented, and the machine may be busy. */
const MAX_END_MS = 2000;
/** From the signal to the exit. Docker kills after ten seconds. */
const MAX_STOP_MS = 9000;

const authorization = `Basic ${btoa('ada:correct-horse')}`;
const body = JSON.stringify({ scopes: ['GET:acme.example/status'] });

/** What clients saw until the service refused connections. */
interface Seen {
  answers: number;
  /** Answers other than 200. */
  others: number;
  lastAnswerAt: number;
  /** The errors of calls that got no answer on an open connection. */
  readonly cut: string[];
  /** The number of calls that got no answer on a new connection. */
  resets: number;
}

describe.each(['SQLite', ...engines] as const)('tokenwright serve under load, on %s', (engine) => {
  it('answers every call after SIGTERM and exits soon after the last one', {
    timeout: 60_000,
  }, async ({ annotate }) => {
    const store = engine === 'SQLite' ? [] : newStore(engine).flags;
    const folder = newFolder();
    const log = join(folder, 'audit.log');
    const service = await serve(['--data', folder, '--audit', log, ...ACCOUNT, ...store]);

    const { seen, code, stopMs, endMs } = await stopUnderLoad(service.url, service.process);

    const sum = `${seen.answers} answers, ${seen.cut.length} calls cut, ${seen.resets} resets`;
    await annotate(`${sum}; ended ${stopMs} ms after the signal, ${endMs} ms after an answer`);
    expect(seen).toMatchObject({ cut: [], others: 0 });
    // The system resets connections that arrive in the microseconds while the listener closes, and no server
    // can prevent that. It happens to a client at most once, and its call was not carried out.
    expect(seen.resets).toBeLessThanOrEqual(PER_CALL);
    expect(readFileSync(log, 'utf8').match(/"event":"issued"/g)).toHaveLength(seen.answers);
    expect(code).toBe(0);
    expect(endMs).toBeLessThan(MAX_END_MS);
    expect(stopMs).toBeLessThan(MAX_STOP_MS);
  });
});

it.each([
  ['closes all connections', 'server.close(); server.closeAllConnections()'],
  ['closes them soon after', 'server.close(); setTimeout(() => server.closeAllConnections(), 200)'],
])('the shutdown check detects a server that %s on SIGTERM', async (_, stop) => {
  const { url, process, output } = await startBareServer(stop);

  const { seen } = await stopUnderLoad(url, process);

  expect(seen.cut.length).toBeGreaterThan(0);
  expect(Number(await output)).toBeGreaterThan(seen.answers);
});

/** Calls a service, sends it SIGTERM meanwhile, and goes on until it refuses connections. */
async function stopUnderLoad(url: string, process: ChildProcess) {
  const seen: Seen = { answers: 0, others: 0, lastAnswerAt: 0, cut: [], resets: 0 };
  const agents = Array.from({ length: KEEP_ALIVE }, () => new Agent({ keepAlive: true }));
  const clients = [...agents, ...Array.from({ length: PER_CALL }, () => undefined)];
  const load = Promise.all(clients.map((agent) => callUntilRefused(url, agent, seen)));
  while (seen.answers < WARM_CALLS) await delay(5);
  const ended = once(process, 'close').then(([code]) => ({ code, at: performance.now() }));
  const signalAt = performance.now();
  process.kill('SIGTERM');
  // A service that never closes its listener must not hold up the test.
  const late = delay(20_000, undefined, { ref: false }).then(() => process.kill('SIGKILL'));
  const { code, at } = await Promise.race([ended, late.then(() => ended)]);
  await load;
  for (const agent of agents) agent.destroy();
  const endMs = Math.round(at - seen.lastAnswerAt);
  return { seen, code, stopMs: Math.round(at - signalAt), endMs };
}

/** Each call waits for the answer to the one before. Without an agent, each opens a connection. */
async function callUntilRefused(url: string, agent: Agent | undefined, seen: Seen): Promise<void> {
  for (;;) {
    try {
      const status = await issue(url, agent);
      seen.answers += 1;
      seen.lastAnswerAt = performance.now();
      if (status !== 200) seen.others += 1;
    } catch (error) {
      const { code, syscall, message } = error as NodeJS.ErrnoException;
      // Nobody accepted this connection, so the client knows that nothing was done.
      if (code === 'ECONNREFUSED' && syscall === 'connect') return;
      if (agent === undefined) seen.resets += 1;
      else seen.cut.push(message);
    }
  }
}

function issue(url: string, agent: Agent | undefined): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { authorization, 'content-type': 'application/json' };
    const call = request(`${url}/token`, { method: 'POST', headers, agent: agent ?? false });
    call.on('error', reject);
    call.on('response', (response) => {
      response.on('error', reject).on('end', () => resolve(response.statusCode));
      response.resume();
    });
    call.end(body);
  });
}

/**
 * A server that answers the first calls after some milliseconds, leaves all others without an answer, and
 * prints its count of calls when it exits. It stops once a call on a kept connection waits, which is then
 * cut for certain.
 */
async function startBareServer(stop: string) {
  const script = `
    let calls = 0;
    let isWaiting = false;
    let isEnding = false;
    process.on('exit', () => console.log(calls));
    const answer = (request, response) => {
      calls += 1;
      request.resume();
      if (calls <= ${WARM_CALLS}) return setTimeout(() => response.end('{}'), Math.random() * 5);
      isWaiting ||= request.headers.connection !== 'close';
      end();
    };
    const end = () => {
      if (!isWaiting || !isEnding) return;
      isEnding = false;
      ${stop};
    };
    const server = require('node:http').createServer(answer).listen(0, '127.0.0.1', () => {
      console.log('http://127.0.0.1:' + server.address().port);
    });
    process.once('SIGTERM', () => {
      isEnding = true;
      end();
    });`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = await once(child.stdout, 'data');
  return { url: String(line).trim(), process: child as ChildProcess, output: text(child.stdout) };
}
