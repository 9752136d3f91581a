import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { generateKey, TokenRequests, TokenService } from '../../src/index.ts';
import { openStore, prepareStore, type StoreEngine } from '../stores/engines.ts';
import { SCOPE } from '../support.ts';
import type { PollJob, PollNews } from './polling-node.ts';

const CLIENT = 'poller';
const PROCESSES = 4;
const POLLS = 16;
const REQUESTS = Number(process.env['POLLED_REQUESTS'] ?? 12);

const urls = inject('servers');
const ENGINES: readonly (readonly [StoreEngine, string | undefined])[] = [
  ['sqlite', ''],
  ['postgres', urls.postgres],
  ['mariadb', urls.mariadb],
  ['redis', urls.redis],
  ['redisCluster', urls.redisCluster],
];

/** A store with approved requests, one for each account, and processes that can poll for them. */
async function approvedOn(engine: StoreEngine, url = '', control = '') {
  const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
  const place = {
    engine,
    url: engine === 'sqlite' ? join(folder, 'tokens.db') : url,
    name: `polls_${randomBytes(8).toString('hex')}`,
  };
  await prepareStore(place);
  const opened = openStore(place);
  const key = generateKey();
  const tokens = new TokenService({ store: opened.store, keys: [key], prefix: 'acme' });
  const verificationUri = 'https://shop.example/approve';
  const requests = new TokenRequests({ tokens, verificationUri, anonymous: true });
  const deviceCodes: string[] = [];
  for (let index = 0; index < REQUESTS; index += 1) {
    const { deviceCode, userCode } = await requests.open({ client: CLIENT, scopes: [SCOPE] });
    await requests.approve(`account ${index}`, userCode);
    deviceCodes.push(deviceCode);
  }
  const args = [JSON.stringify(place), JSON.stringify(key), control];
  const nodes = Array.from({ length: PROCESSES }, () =>
    fork(join(import.meta.dirname, 'polling-node.ts'), args),
  );
  onTestFinished(async () => {
    for (const node of nodes) node.kill('SIGKILL');
    await tokens.close();
    await opened.close();
    rmSync(folder, { recursive: true, force: true });
  });
  /** How many tokens each account has. */
  const issued = async () => {
    const counts: number[] = [];
    for (let index = 0; index < REQUESTS; index += 1) {
      const page = await tokens.list({ account: `account ${index}`, state: 'all' });
      counts.push(page.tokens.length);
    }
    return counts;
  };
  return { nodes, job: { client: CLIENT, deviceCodes, times: POLLS }, issued };
}

/** Has a process poll; resolves to the values that it got, also if it is killed meanwhile. */
function polled(node: ChildProcess, job: PollJob, onValue: () => void = () => {}) {
  return new Promise<string[]>((resolve) => {
    const values: string[] = [];
    node.on('message', (news: PollNews) => {
      if ('isDone' in news) return resolve(values);
      values.push(news.value);
      onValue();
    });
    node.on('exit', () => resolve(values));
    node.send(job);
  });
}

const most = (counts: readonly number[]) => Math.max(...counts);

describe.each(ENGINES)('64 polls in 4 processes on %s', (engine, url) => {
  it.skipIf(url === undefined)('get one token together', { timeout: 120_000 }, async () => {
    const { nodes, job, issued } = await approvedOn(engine, url);

    const values = await Promise.all(nodes.map((node) => polled(node, job)));

    expect(await issued()).toEqual(Array(REQUESTS).fill(1));
    expect(values.flat()).toHaveLength(REQUESTS);
    expect(new Set(values.flat()).size).toBe(REQUESTS);
  });

  it.skipIf(url === undefined)(
    'get no second one if processes are killed',
    { timeout: 120_000 },
    async () => {
      const { nodes, job, issued } = await approvedOn(engine, url);
      let count = 0;
      const kill = () => {
        count += 1;
        if (count <= 2) nodes[count]?.kill('SIGKILL');
      };

      await Promise.all(nodes.map((node) => polled(node, job, kill)));
      await polled(nodes[0] as ChildProcess, job);

      expect(nodes.filter(({ signalCode }) => signalCode === 'SIGKILL')).toHaveLength(2);
      expect(most(await issued())).toBe(1);
    },
  );

  it.skipIf(url === undefined)(
    'would get several without the compare-and-set (the control)',
    { timeout: 120_000 },
    async () => {
      const { nodes, job, issued } = await approvedOn(engine, url, 'broken');

      await Promise.all(nodes.map((node) => polled(node, job)));

      expect(most(await issued())).toBeGreaterThan(1);
    },
  );
});
