import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TokenRequests, TokenService } from '../../src/index.ts';
import { covers } from '../../src/scope/index.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { type ManualClock, manualClock } from '../../src/testing/index.ts';
import type { IssuedToken } from '../../src/token/record.ts';
import { K1 } from '../support.ts';
import { CLIENT, VERIFICATION_URI } from './support.ts';

const NEEDS = ['GET:a.example/x', 'GET:a.example/x/1', 'POST:a.example/x', 'GET:b.example/y'];
const SCOPES = [...NEEDS, 'GET:a.example/*', '*:*/*'];
const STALE_SECONDS = 1;
/** Decisions that are compared, at least. */
const REQUESTS = 20_000;
/** Waiting until a request has expired makes room for another one of its root. */
const REQUEST_SECONDS = 601;

const index = fc.nat(20);
const scopes = fc.uniqueArray(fc.constantFrom(...SCOPES), { minLength: 1, maxLength: 3 });
const seconds = fc.constantFrom(2, 60, 3000);
const STEP = fc.oneof(
  fc.record({ does: fc.constant('derive' as const), index, scopes, seconds }),
  {
    weight: 3,
    arbitrary: fc.record({ does: fc.constant('elevate' as const), index, scopes, seconds }),
  },
  fc.record({ does: fc.constant('narrow' as const), index, scopes }),
  fc.record({ does: fc.constant('widen' as const), index, scopes }),
  fc.record({ does: fc.constant('name' as const), index }),
  fc.record({ does: fc.constant('rotate' as const), index }),
  fc.record({ does: fc.constant('suspend' as const), index, isSuspended: fc.boolean() }),
  fc.record({ does: fc.constant('revoke' as const), index }),
  fc.record({ does: fc.constant('wait' as const), index, seconds: fc.constantFrom(1, 5) }),
);
type Step = typeof STEP extends fc.Arbitrary<infer Value> ? Value : never;
const SCHEDULE = fc.array(fc.tuple(STEP, fc.boolean()), { minLength: 10, maxLength: 25 });

/** What the rules say about a token, read independently of the code. */
interface Known {
  readonly id: string;
  value: string;
  readonly parent: Known | undefined;
  /** Of an elevation: how often each ancestor had been changed. */
  readonly since: readonly number[] | undefined;
  scopes: readonly string[];
  expiresAt: number;
  changes: number;
  isSuspended: boolean;
  isRevoked: boolean;
}

function patchOf(step: Step): Parameters<TokenService['patch']>[2] {
  if (step.does === 'suspend') return { suspended: step.isSuspended };
  if (step.does === 'narrow') return { removeScopes: step.scopes };
  return step.does === 'widen' ? { addScopes: step.scopes } : { name: `${step.index}` };
}

const above = ({ parent }: Known): Known[] => (parent ? [...above(parent), parent] : []);

function mayDo(token: Known, need: string, now: number): boolean {
  const isLive = (one: Known) => !one.isRevoked && !one.isSuspended && now < one.expiresAt;
  const has = (one: Known) => one.scopes.some((scope) => covers(scope, need));
  const ancestors = above(token);
  if (![token, ...ancestors].every(isLive) || !has(token)) return false;
  if (token.since === undefined) return ancestors.every(has);
  return ancestors.every(({ changes }, at) => changes === token.since?.[at]);
}

/** A process. */
interface Node {
  readonly tokens: TokenService;
  readonly requests: TokenRequests;
}

/** Two processes on one store, which reports no changes: one reads it each time, and one has a cache. */
class World {
  readonly clock: ManualClock = manualClock();
  readonly known: Known[] = [];
  readonly #nodes: readonly Node[];
  compared = 0;
  elevations = 0;
  ended = 0;

  constructor(staleFactor: number) {
    const { clock } = this;
    const store = new MemoryTokenStore({ clock });
    this.#nodes = [0, STALE_SECONDS * staleFactor].map((stale) => {
      const cache = { maxStaleMs: stale * 1000 };
      const tokens = new TokenService({ store, keys: [K1], prefix: 'acme', clock, cache });
      const verificationUri = VERIFICATION_URI;
      return { tokens, requests: new TokenRequests({ tokens, verificationUri }) };
    });
  }

  async begin(): Promise<void> {
    const input = { account: 'acme', scopes: ['GET:*/*', 'POST:a.example/x'], ttlSeconds: 30_000 };
    this.#add(await this.#at(false).tokens.issue(input), undefined);
  }

  #at(isCached: boolean) {
    return this.#nodes[isCached ? 1 : 0] as Node;
  }

  #add(token: IssuedToken, parent: Known | undefined, since?: readonly number[]): void {
    const { id, value, scopes: held, expiresAt } = token;
    const state = { changes: 0, isSuspended: false, isRevoked: false };
    const own = { id, value, parent, since, scopes: held, expiresAt: expiresAt.getTime() };
    this.known.push({ ...own, ...state });
  }

  /** Makes a change through one process. What it refuses has changed nothing. */
  async take(step: Step, isCached: boolean): Promise<void> {
    const token = this.known[step.index % this.known.length] as Known;
    await this.#do(step, token, isCached).catch((error: { code?: string }) => {
      if (error.code === undefined) throw error;
    });
    // The cache of the other process may be as old as this.
    if (!isCached) this.clock.advance(STALE_SECONDS);
  }

  async #do(step: Step, token: Known, isCached: boolean): Promise<void> {
    const { tokens } = this.#at(isCached);
    if (step.does === 'derive') {
      const input = { scopes: step.scopes, ttlSeconds: step.seconds };
      this.#add(await tokens.derive(token.value, input), token);
    } else if (step.does === 'elevate') {
      await this.#elevate(token, step.scopes, step.seconds, isCached);
    } else if (step.does === 'wait') {
      this.clock.advance(step.seconds);
    } else if (step.does === 'revoke') {
      if (await tokens.revoke('acme', token.id)) token.isRevoked = true;
    } else if (step.does === 'rotate') {
      token.value = (await tokens.rotate('acme', token.id)).value;
      token.changes += 1;
    } else {
      const after = await tokens.patch('acme', token.id, patchOf(step));
      token.scopes = after.scopes;
      token.isSuspended = after.state === 'suspended';
      token.changes += 1;
    }
  }

  async #elevate(token: Known, asked: readonly string[], ttlSeconds: number, isCached: boolean) {
    const { requests } = this.#at(isCached);
    const input = { client: CLIENT, scopes: asked, ttlSeconds, elevate: token.value };
    const { userCode, deviceCode } = await requests.open(input);
    const since = [...above(token), token].map(({ changes }) => changes);
    await requests.approve('acme', userCode);
    const other = this.#at(!isCached).requests;
    const { token: elevation } = await other.poll(deviceCode, { client: CLIENT });
    if (elevation === undefined) throw new Error('nothing was issued');
    this.elevations += 1;
    this.#add(elevation, token, since);
    this.clock.advance(REQUEST_SECONDS);
  }

  /** Compares each decision with the rules. */
  async differences(): Promise<string[]> {
    const found: string[] = [];
    const now = this.clock.now().getTime();
    for (const token of this.known) {
      for (const scope of NEEDS) {
        const expected = mayDo(token, scope, now);
        if (token.since && !expected) this.ended += 1;
        for (const { tokens } of this.#nodes) {
          const { ok } = await tokens.verify(token.value, { scope });
          this.compared += 1;
          if (ok !== expected) found.push(`${token.since ? 'elevation' : 'token'}: ${ok}`);
        }
      }
    }
    return found;
  }
}

async function run(schedule: readonly (readonly [Step, boolean])[], staleFactor = 1) {
  const world = new World(staleFactor);
  await world.begin();
  const found: string[] = [];
  for (const [step, isCached] of schedule) {
    await world.take(step, isCached);
    found.push(...(await world.differences()));
  }
  return { world, found };
}

describe('decisions about random trees with elevations', () => {
  it('are those of the rules, on two processes, with and without a cache', async () => {
    let compared = 0;
    let elevations = 0;
    let ended = 0;
    for (const schedule of fc.sample(SCHEDULE, { numRuns: 80, seed: 11 })) {
      const { world, found } = await run(schedule);
      expect(found).toEqual([]);
      compared += world.compared;
      elevations += world.elevations;
      ended += world.ended;
    }
    expect(compared).toBeGreaterThan(REQUESTS);
    expect(elevations).toBeGreaterThan(50);
    expect(ended).toBeGreaterThan(1000);
  });

  it('would differ with a cache that is too old (the control)', async () => {
    const all: string[] = [];
    for (const schedule of fc.sample(SCHEDULE, { numRuns: 20, seed: 7 })) {
      all.push(...(await run(schedule, 10)).found);
    }

    expect(all).toContain('elevation: true');
    expect(all).toContain('token: true');
  });
});
