// Random trees of derived tokens and random changes to them, over any store, by processes with and without a cache.

import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { isTokenError } from '../../src/errors.ts';
import type { LeaseStore } from '../../src/ports/lease-store.ts';
import type { TokenStore } from '../../src/ports/token-store.ts';
import { covers } from '../../src/scope/index.ts';
import { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { type ManualClock, manualClock } from '../../src/testing/index.ts';
import type { Token, TokenId } from '../../src/token/record.ts';
import { K1 } from '../support.ts';

const MAX_STALE_MS = 1000;
/** The `maxStaleMs` of each process: one always reads the store, the others serve from a cache without hints. */
const STALE_MS = [0, MAX_STALE_MS, MAX_STALE_MS];

const NEEDS = [
  'GET:a.example/x',
  'GET:a.example/x/1',
  'POST:a.example/x',
  'GET:a.example/y',
  'GET:b.example/x',
];
const SCOPES = [...NEEDS, 'GET:a.example/*', '*:a.example/x', '*:*/*'];

/** Blocks of addresses, each with the addresses of {@link FROM} that it contains. */
const BLOCKS: Readonly<Record<string, readonly string[]>> = {
  '10.0.0.0/8': ['10.1.0.1', '10.2.0.1'],
  '10.1.0.0/16': ['10.1.0.1'],
  '11.0.0.0/8': ['11.0.0.1'],
};
const FROM = ['10.1.0.1', '10.2.0.1', '11.0.0.1'];
const ADDRESSES = [['10.0.0.0/8'], ['10.1.0.0/16'], ['11.0.0.0/8', '10.1.0.0/16']];

const scopes = fc.uniqueArray(fc.constantFrom(...SCOPES), { minLength: 1, maxLength: 3 });
const seconds = fc.constantFrom(1, 2, 5, 60);
const token = fc.nat(11);
const addresses = fc.constantFrom(...ADDRESSES);
const derive = fc.record({
  does: fc.constant('derive' as const),
  token,
  scopes,
  seconds,
  limits: fc.oneof(
    { weight: 3, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.record({ addresses }) },
    { weight: 1, arbitrary: fc.record({ uses: fc.constantFrom(3, 40) }) },
  ),
});

const STEP = fc.oneof(
  { weight: 3, arbitrary: derive },
  fc.record({ does: fc.constant('replace' as const), token, scopes, seconds }),
  fc.record({ does: fc.constant('add' as const), token, scopes }),
  fc.record({ does: fc.constant('remove' as const), token, scopes }),
  fc.record({ does: fc.constant('live' as const), token, seconds }),
  fc.record({
    does: fc.constant('limit' as const),
    token,
    addresses: fc.option(addresses, { nil: undefined }),
  }),
  fc.record({ does: fc.constant('suspend' as const), token, isSuspended: fc.boolean() }),
  fc.record({ does: fc.constant('revoke' as const), token }),
  fc.record({
    does: fc.constant('rotate' as const),
    token,
    activate: fc.constantFrom('immediately' as const, 'first-use' as const),
  }),
  fc.record({
    does: fc.constant('wait' as const),
    token,
    seconds: fc.constantFrom(0.3, 0.7, 1, 3),
  }),
  fc.record({ does: fc.constant('purge' as const), token }),
);
type Step = (typeof STEP extends fc.Arbitrary<infer Value> ? Value : never) & {
  readonly by: number;
};

export type Schedule = readonly Step[];

export const SCHEDULES: fc.Arbitrary<Schedule> = fc.array(
  fc.tuple(STEP, fc.nat(STALE_MS.length - 1)).map(([step, by]): Step => ({ ...step, by })),
  { minLength: 8, maxLength: 30 },
);

/** A service, in this process or in another one. */
export type Process = Pick<
  TokenService,
  | 'issue'
  | 'derive'
  | 'modify'
  | 'patch'
  | 'revoke'
  | 'rotate'
  | 'purge'
  | 'verify'
  | 'introspect'
  | 'explain'
  | 'close'
>;

/** How a process is started. */
export interface Start {
  readonly maxStaleMs: number;
  readonly clock: ManualClock;
}

/** Starts the process with an index from 0 to 2. */
export type StartProcess = (index: number, start: Start) => Process | Promise<Process>;

/** What a process works on. */
export interface Stores {
  readonly store: TokenStore;
  readonly leases: LeaseStore;
}

/** A service that gets no hints and closes no store, because `maxStaleMs` must hold without hints. */
export function processOn(
  { store, leases }: Stores,
  { maxStaleMs, clock }: Pick<Start, 'maxStaleMs'> & { readonly clock: Pick<ManualClock, 'now'> },
): TokenService {
  return new TokenService({
    store: withOther(store, { watch: undefined, close: undefined }),
    keys: [K1],
    prefix: 'acme',
    clock,
    deadlineMs: 60_000,
    cache: { maxStaleMs },
    limits: { store: withOther(leases, { close: undefined }) },
  });
}

/** Starts all processes as services in this process, on one store. */
export function inMemory(store: TokenStore): StartProcess {
  const leases = new MemoryTokenStore().leases;
  return (_, start) => processOn({ store, leases }, start);
}

/** The control: a store that returns records without their ancestors. */
export function forgettingAncestors(inner: TokenStore): TokenStore {
  const find: TokenStore['find'] = async (ids) =>
    (await inner.find(ids)).map((record) => record && { ...record, ancestors: undefined });
  return withOther(inner, { find });
}

type Overrides<Part> = { readonly [Member in keyof Part]?: Part[Member] | undefined };

/** An object with some of its members replaced. */
export function withOther<Part extends object>(part: Part, overrides: Overrides<Part>): Part {
  return new Proxy(part, {
    get: (target, name) => {
      if (Object.hasOwn(overrides, name)) return Reflect.get(overrides, name);
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

/** A past state of a token. */
interface Was {
  readonly scopes: readonly string[];
  readonly expiresAt: number;
  readonly isOpen: boolean;
  readonly addresses: readonly string[] | undefined;
  /** When the state ended. */
  until: number;
}

interface Node {
  readonly id: TokenId;
  readonly parent: Node | undefined;
  value: string;
  readonly past: Was[];
  /** How many uses the token and its descendants may have together. `undefined` once the limit is removed. */
  uses: number | undefined;
  readonly wasCounted: boolean;
  used: number;
}

/**
 * Runs a schedule and returns what was wrong. Rules:
 *
 * - A process without a cache accepts a token exactly if it and all its ancestors are live, cover the need and
 *   allow the address. If a limit on uses applies, it can also refuse the token.
 * - A process with a cache accepts a token only if each of them met this within the last `maxStaleMs`.
 * - A token with limited uses is never used more often, its descendants included.
 * - A derived token never gets more than its parent has, never lives longer, and is never shown as if it did.
 */
export async function faultsOf(schedule: Schedule, start: StartProcess): Promise<string[]> {
  const clock = manualClock();
  const processes = STALE_MS.map((maxStaleMs, index) => start(index, { maxStaleMs, clock }));
  const world = new World(await Promise.all(processes), clock);
  await world.begin();
  for (const step of schedule) await world.take(step);
  await world.end();
  return world.faults;
}

class World {
  readonly faults: string[] = [];
  readonly #account = `acme-${randomBytes(6).toString('hex')}`;
  readonly #clock: ManualClock;
  readonly #processes: readonly Process[];
  readonly #nodes: Node[] = [];
  #asked = 0;

  constructor(processes: readonly Process[], clock: ManualClock) {
    this.#processes = processes;
    this.#clock = clock;
  }

  get #now(): number {
    return this.#clock.now().getTime();
  }

  async begin(): Promise<void> {
    const root = await this.#at(0).issue({
      account: this.#account,
      scopes: ['*:*/*'],
      ttlSeconds: 300,
    });
    this.#add(root, undefined, root.value);
    await this.#check(0);
  }

  async take(step: Step): Promise<void> {
    const node = this.#nodes[step.token % this.#nodes.length] as Node;
    try {
      await this.#do(step, node, this.#at(step.by));
    } catch (error) {
      if (!isTokenError(error)) throw error;
      const isUsedUp = error.details?.['reason'] === 'limit_exceeded';
      const isCounted = lineageOf(node).some(({ wasCounted }) => wasCounted);
      if (!isUsedUp || !isCounted) this.#allowRefusal(step, node, error.code);
    }
    await this.#check(step.by);
  }

  /** Checks introspect and explain for every token, and closes all processes. */
  async end(): Promise<void> {
    for (const node of this.#nodes) {
      await this.#checkIntrospection(node);
      for (const need of NEEDS) await this.#checkExplanation(node, need);
    }
    await Promise.all(this.#processes.map((tokens) => tokens.close()));
  }

  #at(index: number): Process {
    return this.#processes[index] as Process;
  }

  async #do(step: Step, node: Node, tokens: Process): Promise<void> {
    const { id } = node;
    const account = this.#account;
    switch (step.does) {
      case 'derive': {
        const { limits } = step;
        const input = { scopes: step.scopes, ttlSeconds: step.seconds, ...(limits && { limits }) };
        const address = this.#allowedAddress(node);
        const child = await tokens.derive(node.value, input, { address });
        if (!this.#isLive(node)) this.faults.push('a token that had ended was derived from');
        if (address === undefined) this.faults.push('a token was derived from a wrong address');
        this.#use(lineageOf(node));
        this.#add(child, node, child.value);
        return;
      }
      case 'replace': {
        const change = { scopes: step.scopes, expiresIn: step.seconds };
        return this.#changed(node, await tokens.modify(account, id, change), [...step.scopes]);
      }
      case 'add':
        return this.#changed(
          node,
          await tokens.patch(account, id, { addScopes: step.scopes }),
          step.scopes,
        );
      case 'remove':
        return this.#changed(node, await tokens.patch(account, id, { removeScopes: step.scopes }));
      case 'live':
        return this.#changed(node, await tokens.patch(account, id, { expiresIn: step.seconds }));
      case 'limit': {
        const limits = step.addresses === undefined ? null : { addresses: step.addresses };
        this.#changed(node, await tokens.patch(account, id, { limits }));
        node.uses = undefined;
        return;
      }
      case 'suspend':
        return this.#changed(
          node,
          await tokens.patch(account, id, { suspended: step.isSuspended }),
        );
      case 'revoke':
        if (await tokens.revoke(account, id))
          this.#become(node, { ...this.#is(node), isOpen: false });
        return;
      case 'rotate': {
        const { activate } = step;
        const options = activate === 'first-use' ? { activate, graceSeconds: 60 } : {};
        node.value = (await tokens.rotate(account, id, options)).value;
        return;
      }
      case 'wait':
        return this.#clock.advance(step.seconds);
      case 'purge':
        await tokens.purge({ before: this.#clock.now() });
    }
  }

  /** A refusal is right if a token had ended, or if it lacks what was asked for. */
  #allowRefusal(step: Step, node: Node, code: string): void {
    const mayDerive = this.#isLive(node) && this.#allowedAddress(node) !== undefined;
    if (step.does === 'derive' && code === 'invalid_token' && mayDerive) {
      this.faults.push('a live token could not be derived from');
    }
    const known = ['invalid_token', 'not_found', 'token_expired', 'scope_unmatched'];
    if (![...known, 'scopes_required', 'quota_exceeded', 'invalid_limits'].includes(code)) {
      this.faults.push(`${step.does} was refused with ${code}`);
    }
  }

  /** An address from which the token and all its ancestors may be used. */
  #allowedAddress(node: Node): string | undefined {
    return FROM.find((from) =>
      lineageOf(node).every((each) => {
        const { addresses } = this.#is(each);
        return addresses?.some((block) => BLOCKS[block]?.includes(from)) ?? true;
      }),
    );
  }

  #add(token: Token, parent: Node | undefined, value: string): void {
    const uses = token.limits?.uses;
    const wasCounted = uses !== undefined;
    const node = { id: token.id, parent, value, past: [wasOf(token)], uses, wasCounted, used: 0 };
    this.#nodes.push(node);
    this.#mustBeWithin(node, token.scopes);
    this.#mustEndInTime(node);
  }

  #changed(node: Node, token: Token, added: readonly string[] = []): void {
    const { scopes: before, expiresAt } = this.#is(node);
    this.#become(node, wasOf(token));
    if (token.expiresAt.getTime() !== expiresAt) this.#mustEndInTime(node);
    if (added.length === 0) return;
    this.#mustBeWithin(
      node,
      token.scopes.filter((scope) => !before.includes(scope)),
    );
  }

  /** Each ancestor must have the scopes that a token has just got. */
  #mustBeWithin(node: Node, got: readonly string[]): void {
    for (let above = node.parent; above !== undefined; above = above.parent) {
      const { scopes: held } = this.#is(above);
      const isWithin = got.every((scope) => holds(held, scope));
      if (!isWithin) this.faults.push('a token got more than its ancestor has');
    }
  }

  #mustEndInTime(node: Node): void {
    const ends = lineageOf(node).map((each) => this.#is(each).expiresAt);
    if (Math.min(...ends) < this.#is(node).expiresAt) this.faults.push('a token got a longer life');
  }

  /** Verifies all tokens in the process without a cache, in the one that took the step and in the next one. */
  async #check(by: number): Promise<void> {
    for (const index of new Set([0, by, (by + 1) % STALE_MS.length])) {
      for (const node of this.#nodes) {
        for (const need of NEEDS) await this.#checkOne(index, node, need);
      }
    }
  }

  async #checkOne(index: number, node: Node, need: string): Promise<void> {
    const staleMs = STALE_MS[index] as number;
    const address = FROM[this.#asked++ % FROM.length] as string;
    const verdict = await this.#at(index).verify(node.value, { scope: need }, { address });
    const { ok, reason } = verdict;
    const lineage = lineageOf(node);
    const isCounted = lineage.some(({ wasCounted }) => wasCounted);
    const isRight = lineage.every((each) => grants(this.#is(each), need, this.#now, address));
    const isUsedUp = reason === 'limit_exceeded';
    if (isUsedUp && !isCounted) this.faults.push('a token without limits was used up');
    if (staleMs === 0 && ok !== isRight && !(isUsedUp && isRight)) {
      this.faults.push(`a token was ${ok ? 'accepted' : 'refused'} wrongly`);
    }
    if (!ok) return;
    const since = this.#now - staleMs;
    if (!lineage.every((each) => this.#allowedSince(each, need, { since, address }))) {
      this.faults.push('a token outlived or exceeded an ancestor');
    }
    if (staleMs === 0) this.#mustBeShownWithin(node, verdict.token);
    this.#use(lineage);
  }

  #use(lineage: readonly Node[]): void {
    for (const node of lineage) {
      node.used += 1;
      if (node.uses !== undefined && node.used > node.uses) {
        this.faults.push('a token was used more often than an ancestor allows');
      }
    }
  }

  #mustBeShownWithin(node: Node, token: Token): void {
    for (const each of lineageOf(node)) {
      const { scopes: held, expiresAt } = this.#is(each);
      const isWithin = token.scopes.every((scope) => holds(held, scope));
      if (!isWithin || token.expiresAt.getTime() > expiresAt) {
        this.faults.push('a token was shown as more than its ancestor is');
      }
    }
  }

  async #checkIntrospection(node: Node): Promise<void> {
    const token = await this.#at(0).introspect(node.value);
    const mayDo = NEEDS.some((need) => this.#mayEver(node, need));
    if (token === undefined && mayDo) this.faults.push('a live token was introspected as inactive');
    if (token === undefined) return;
    if (!this.#isLive(node)) this.faults.push('a token that had ended was introspected as active');
    this.#mustBeShownWithin(node, token);
  }

  async #checkExplanation(node: Node, need: string): Promise<void> {
    const { allowed } = await this.#at(0).explain(this.#account, node.id, { scope: need });
    if (allowed !== this.#mayEver(node, need)) this.faults.push('a token was explained wrongly');
  }

  /** Whether the token allows the need from some address, leaving limits on uses aside. */
  #mayEver(node: Node, need: string): boolean {
    return lineageOf(node).every((each) => grants(this.#is(each), need, this.#now));
  }

  /** Whether a state of the token that lasted beyond the instant `since` allows the need. */
  #allowedSince(
    { past }: Node,
    need: string,
    { since, address }: { readonly since: number; readonly address: string },
  ): boolean {
    return past.some((was) => was.until > since && grants(was, need, this.#now, address));
  }

  #isLive(node: Node): boolean {
    return lineageOf(node).every((each) => {
      const { isOpen, expiresAt } = this.#is(each);
      return isOpen && expiresAt > this.#now;
    });
  }

  #is({ past }: Node): Was {
    return past.at(-1) as Was;
  }

  #become(node: Node, next: Was): void {
    this.#is(node).until = this.#now;
    node.past.push({ ...next, until: Number.POSITIVE_INFINITY });
  }
}

function wasOf({ scopes: held, expiresAt, state, limits }: Token): Was {
  return {
    scopes: held,
    expiresAt: expiresAt.getTime(),
    isOpen: state === 'active',
    addresses: limits?.addresses,
    until: Number.POSITIVE_INFINITY,
  };
}

function lineageOf(node: Node): Node[] {
  return node.parent === undefined ? [node] : [node, ...lineageOf(node.parent)];
}

/** @param address if omitted, from any address */
function grants(was: Was, need: string, now: number, address?: string): boolean {
  const isThere =
    address === undefined ||
    was.addresses === undefined ||
    was.addresses.some((block) => BLOCKS[block]?.includes(address));
  const isLive = was.isOpen && was.expiresAt > now;
  return isLive && isThere && holds(was.scopes, need);
}

const known = new Map<string, boolean>();

/** Remembers the answers: there are few scopes and many questions. */
function holds(held: readonly string[], scope: string): boolean {
  return held.some((outer) => {
    const question = `${outer} ${scope}`;
    const isKnown = known.get(question) ?? covers(outer, scope);
    known.set(question, isKnown);
    return isKnown;
  });
}
