import { fork } from 'node:child_process';
import { once } from 'node:events';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { TokenError } from '../../src/errors.ts';
import {
  faultsOf,
  type Process,
  processOn,
  SCHEDULES,
  type Schedule,
  type StartProcess,
} from '../service/lineage-schedules.ts';
import { ENGINES, opened } from './engine-places.ts';
import type { StorePlace } from './engines.ts';
import type { NodeAnswer, NodeCall } from './lineage-node.ts';

/** Each schedule makes about a thousand calls to the server. */
const RUNS = Number(process.env['ENGINE_SCHEDULES'] ?? 3);

/** The process that cannot share objects with this one refuses a token whose uses are spent. */
const USED_UP_ELSEWHERE: Schedule = [
  {
    does: 'derive',
    token: 0,
    scopes: ['GET:a.example/x'],
    seconds: 1,
    limits: { uses: 3 },
    by: 0,
  },
  { does: 'derive', token: 1, scopes: ['GET:a.example/x'], seconds: 1, limits: undefined, by: 2 },
];

const script = new URL('lineage-node.ts', import.meta.url).pathname;

describe.each(ENGINES)('derived tokens over $name', ({ isMissing, newPlace }) => {
  it.skipIf(isMissing)(
    `never outlive or exceed an ancestor in any of three processes, in ${RUNS} schedules`,
    { timeout: 3_600_000 },
    async () => {
      const start = await processesOn(await newPlace());

      await fc.assert(
        fc.asyncProperty(SCHEDULES, async (schedule) => {
          expect(await faultsOf(schedule, start)).toEqual([]);
        }),
        { numRuns: RUNS + 1, examples: [[USED_UP_ELSEWHERE]] },
      );
    },
  );
});

/** Two services with their own stores, and one in another process. */
async function processesOn(place: StorePlace): Promise<StartProcess> {
  const first = opened(place);
  const stores = [first, opened(place)].map((store) => ({ store, leases: first.leases }));
  const call = await startNode(place);
  return async (at, start) => {
    const own = stores[at];
    if (own !== undefined) return processOn(own, start);
    const { maxStaleMs, clock } = start;
    const toNode = (verb: NodeCall['verb'], args: readonly unknown[]) =>
      call({ verb, args, now: clock.now() });
    await toNode('begin', [maxStaleMs]);
    return new Proxy({} as Process, {
      get: (_, verb) =>
        // Without this, `await` would take the proxy for a promise.
        verb === 'then' ? undefined : (...args: unknown[]) => toNode(verb as keyof Process, args),
    });
  };
}

/** Starts the other process. Resolves to a function that calls it. */
async function startNode(place: StorePlace) {
  const child = fork(script, [JSON.stringify(place)], { serialization: 'advanced' });
  const isGone = once(child, 'exit').then(() => Promise.reject(new Error('the node has ended')));
  isGone.catch(() => {});
  onTestFinished(() => void child.kill('SIGKILL'));
  const next = async () => {
    const [answer] = await Promise.race([once(child, 'message'), isGone]);
    return answer as NodeAnswer;
  };
  await next();
  return async (sent: NodeCall): Promise<unknown> => {
    child.send(sent);
    const { result, refusal } = await next();
    if (refusal === undefined) return result;
    throw new TokenError(refusal.code, refusal.message, refusal.details);
  };
}
