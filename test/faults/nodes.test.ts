import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateKey } from '../../src/index.ts';
import * as engines from './engines.ts';
import { startProxy, type TcpProxy } from './proxy.ts';
import type { NodeAnswer, NodeCall, NodeSetup, NodeVerbs, Sighting } from './verifying-node.ts';

const NODES = 4;
const MAX_STALE_MS = 500;
const SLACK_MS = 50;
const HINT_MS = 100;
/** `maxStaleMs` of the control, which exceeds all bounds. */
const FAR_TOO_STALE_MS = 3 * MAX_STALE_MS;
const RESTORED_MS = 6000;
const MAX_PAUSE_MS = 20;

const script = new URL('verifying-node.ts', import.meta.url).pathname;
const key = generateKey();

interface Node extends NodeVerbs {
  end(): Promise<void>;
}

/** Nodes over one store. Hints that come over a network pass through a proxy. */
interface Rig {
  readonly nodes: readonly Node[];
  /** The control, which receives no hints and serves from its cache for far longer. */
  readonly stale: Node;
  readonly proxy: TcpProxy | undefined;
  close(): Promise<void>;
}

/** Milliseconds from the acknowledgement of revocations until the other nodes applied them. */
interface Delays {
  /** Until their first refusal. */
  readonly refused: number[];
  /** Until their last acceptance; too short if a node did not get to run. */
  readonly accepted: number[];
}

interface Revocation {
  readonly value: string;
  readonly by: Node;
  /** When it was acknowledged. */
  readonly at: number;
}

interface Outcome {
  /** Of all nodes together, without the control. */
  readonly regular: Delays;
  stale(): Promise<Delays>;
}

const STORES = [
  { name: 'SQLite', driver: undefined },
  ...[engines.overPg, engines.overMysql2, engines.overIoredis].map((driver) => ({
    name: driver.name,
    driver,
  })),
];

describe.each(STORES)('nodes over $name', ({ driver }) => {
  describe.skipIf(driver !== undefined && engines.isMissing(driver))('with a cache', () => {
    let rig: Rig;

    beforeAll(async () => {
      rig = await startRig(driver);
    });

    afterAll(() => rig?.close());

    it.for([
      ['revoked', 'revoke'],
      ['suspended', 'suspend'],
    ] as const)(
      'refuse a token within maxStaleMs after another node has %s it, and mostly by its hint',
      { timeout: 120_000 },
      async ([, verb], { annotate }) => {
        await longestLag(rig);
        const { regular, stale } = await endMany(rig, 25, verb);
        const { accepted, refused } = regular;
        // In two parts: five nodes that verify fifty tokens continuously would take the whole machine.
        const { regular: more } = await endMany(rig, 25, verb);
        accepted.push(...more.accepted);
        refused.push(...more.refused);

        const lag = await longestLag(rig);
        const measured = `accepted for ${inWords(accepted)}, refused after ${inWords(refused)}, with timers up to ${Math.round(lag)} ms late`;
        await annotate(measured);
        expect(Math.max(...accepted), measured).toBeLessThan(MAX_STALE_MS + SLACK_MS);
        // Without hints, half of them would be accepted for 250 ms and more.
        expect(percentile(accepted, 0.5), measured).toBeLessThan(HINT_MS + lag);
        expect(percentile((await stale()).accepted, 0.99)).toBeGreaterThan(HINT_MS);
      },
    );

    it.skipIf(driver === undefined)(
      'accept a revoked token for at most maxStaleMs when hints are lost silently',
      async ({ annotate }) => {
        await rig.proxy?.set('halfOpen');
        const { regular, stale } = await endMany(rig, 20);

        const longest = Math.max(...regular.accepted);
        await annotate(`accepted for up to ${longest} ms`);
        expect(longest).toBeLessThan(MAX_STALE_MS + SLACK_MS);
        expect(Math.max(...(await stale()).accepted)).toBeGreaterThan(MAX_STALE_MS + SLACK_MS);
      },
    );

    it.skipIf(driver === undefined)(
      'receive hints again once the connection works again',
      async ({ annotate }) => {
        const since = performance.now();
        await rig.proxy?.set('pass');

        let typical = Number.POSITIVE_INFINITY;
        let bound = HINT_MS;
        while (typical >= bound && performance.now() - since < RESTORED_MS) {
          await longestLag(rig);
          const { regular } = await endMany(rig, 10);
          typical = percentile(regular.accepted, 0.5);
          bound = HINT_MS + (await longestLag(rig));
        }

        await annotate(`after ${Math.round(performance.now() - since)} ms`);
        expect(typical).toBeLessThan(bound);
      },
    );
  });
});

async function startRig(driver: engines.Driver | undefined): Promise<Rig> {
  const folder = mkdtempSync(join(tmpdir(), 'tokenwright-nodes-'));
  const servers = driver && (await engines.start(driver));
  const url = servers?.url ?? join(folder, 'tokens.db');
  await driver?.prepare(url);
  const [server] = servers?.nodes ?? [];
  const proxy = server && (await startProxy(server.port));
  const hints = server && proxy ? [[server.port, proxy.port] as const] : 'the store itself';
  const setup = { driver: driver?.name ?? 'SQLite', url, key, maxStaleMs: MAX_STALE_MS };
  const nodes = Array.from({ length: NODES }, () => startNode({ ...setup, hints }));
  const stale = startNode({ ...setup, hints: 'nowhere', maxStaleMs: FAR_TOO_STALE_MS });
  return {
    nodes,
    stale,
    proxy,
    async close() {
      await Promise.all([...nodes, stale].map((node) => node.end()));
      await proxy?.close();
      await servers?.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/** The longest time by which a timer of a node was late since the last call of this. */
async function longestLag({ nodes }: Rig): Promise<number> {
  return Math.max(...(await Promise.all(nodes.map((node) => node.lag()))));
}

/** Revokes or suspends tokens on the nodes in turn, while all nodes verify all of them. */
async function endMany(
  { nodes, stale }: Rig,
  count: number,
  verb: 'revoke' | 'suspend' = 'revoke',
): Promise<Outcome> {
  const [first] = nodes as readonly [Node];
  const values = await first.issue(count);
  await Promise.all([...nodes, stale].map((node) => node.follow(values)));
  const revocations: Revocation[] = [];
  for (const [index, value] of values.entries()) {
    const by = nodes[index % nodes.length] as Node;
    revocations.push({ value, by, at: await by[verb](value) });
    await delay(Math.random() * MAX_PAUSE_MS);
  }
  const delays = await Promise.all(nodes.map((node) => delaysOf(node, revocations)));
  return {
    regular: {
      refused: delays.flatMap(({ refused }) => refused),
      accepted: delays.flatMap(({ accepted }) => accepted),
    },
    stale: () => delaysOf(stale, revocations),
  };
}

async function delaysOf(node: Node, revocations: readonly Revocation[]): Promise<Delays> {
  const ofOthers = revocations.filter(({ by }) => by !== node);
  const sightings = await lastSightings(
    node,
    ofOthers.map(({ value }) => value),
  );
  const since = (index: number) => ofOthers[index]?.at ?? 0;
  return {
    refused: sightings.map(({ refusedAt }, index) => refusedAt - since(index)),
    accepted: sightings.map(({ acceptedAt }, index) => Math.max(0, acceptedAt - since(index))),
  };
}

async function lastSightings(node: Node, values: readonly string[]): Promise<Sighting[]> {
  for (;;) {
    const sightings = await node.sightings(values);
    if (sightings.every(({ refusedAt }) => refusedAt > 0)) return sightings;
    await delay(MAX_PAUSE_MS);
  }
}

function startNode(setup: NodeSetup): Node {
  const child = fork(script, [JSON.stringify(setup)], { execArgv: [] });
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  child.on('message', ({ number, answer }: NodeAnswer) => waiting.get(number)?.resolve(answer));
  child.on('exit', () => {
    for (const { reject } of waiting.values()) reject(new Error('a node has ended'));
  });
  const call = <Answer>(verb: NodeCall['verb'], argument: unknown): Promise<Answer> => {
    const number = waiting.size;
    const answered = Promise.withResolvers<unknown>();
    waiting.set(number, answered);
    child.send({ number, verb, argument } satisfies NodeCall);
    return answered.promise as Promise<Answer>;
  };
  return {
    issue: (count) => call('issue', count),
    follow: (values) => call('follow', values),
    revoke: (value) => call('revoke', value),
    suspend: (value) => call('suspend', value),
    sightings: (values) => call('sightings', values),
    lag: () => call('lag', undefined),
    async end() {
      if (child.kill('SIGKILL')) await once(child, 'exit');
    },
  };
}

function inWords(numbers: readonly number[]): string {
  return `${percentile(numbers, 0.5)} ms (p50), ${percentile(numbers, 0.99)} ms (p99)`;
}

function percentile(numbers: readonly number[], share: number): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.ceil(share * sorted.length) - 1] as number;
}
