// Random trees of derived tokens and random changes to them, over any store, by processes with and without a cache.
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { isTokenError } from '../../src/errors.ts';
import { covers } from '../../src/scope/index.ts';
import { TokenService } from '../../src/service.ts';
import type { TokenStore } from '../../src/store.ts';
import { manualClock } from '../../src/testing/index.ts';
import type { Token, TokenId } from '../../src/token.ts';
import { K1 } from '../support.ts';

const MAX_STALE_MS = 1000;
/** Of each process: one reads the store each time, the others serve from memory and hear of nothing. */
const STALE_MS = [0, MAX_STALE_MS, MAX_STALE_MS];

const NEEDS = [
  'GET:a.example/x',
  'GET:a.example/x/1',
  'POST:a.example/x',
  'GET:a.example/y',
  'GET:b.example/x',
];
const SCOPES = [...NEEDS, 'GET:a.example/*', '*:a.example/x', '*:*/*'];

const scopes = fc.uniqueArray(fc.constantFrom(...SCOPES), { minLength: 1, maxLength: 3 });
const seconds = fc.constantFrom(1, 2, 5, 60);
const token = fc.nat(11);

const STEP = fc.oneof(
  fc.record({ does: fc.constant('derive' as const), token, scopes, seconds }),
  fc.record({ does: fc.constant('derive' as const), token, scopes, seconds }),
  fc.record({ does: fc.constant('replace' as const), token, scopes, seconds }),
  fc.record({ does: fc.constant('add' as const), token, scopes }),
  fc.record({ does: fc.constant('remove' as const), token, scopes }),
  fc.record({ does: fc.constant('live' as const), token, seconds }),
  fc.record({ does: fc.constant('suspend' as const), token, isSuspended: fc.boolean() }),
  fc.record({ does: fc.constant('revoke' as const), token }),
  fc.record({ does: fc.constant('rotate' as const), token }),
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

/** What a token was, until it became something else. */
interface Was {
  readonly scopes: readonly string[];
  readonly expiresAt: number;
  readonly isOpen: boolean;
  /** The instant from which it was something else. */
  until: number;
}

interface Node {
  readonly id: TokenId;
  readonly parent: Node | undefined;
  value: string;
  readonly past: Was[];
}

/**
 * Runs a schedule and returns what was wrong. Rules:
 *
 * - a process without a cache accepts a token exactly if it and all its ancestors are live and cover the need
 * - one with a cache accepts it only if each of them did within the last `maxStaleMs`
 * - a derived token never gets more than its parent has, nor lives longer
 */
export async function faultsOf(inner: TokenStore, schedule: Schedule): Promise<string[]> {
  const world = new World(inner);
  await world.begin();
  for (const step of schedule) await world.take(step);
  return world.faults;
}

/** The control: a store that forgets who descends from whom. */
export function forgettingAncestors(inner: TokenStore): TokenStore {
  const find: TokenStore['find'] = async (ids) =>
    (await inner.find(ids)).map((record) => record && { ...record, ancestors: undefined });
  return new Proxy(inner, {
    get: (store, name) => {
      if (name === 'find') return find;
      const member: unknown = Reflect.get(store, name);
      return typeof member === 'function' ? member.bind(store) : member;
    },
  });
}

class World {
  readonly faults: string[] = [];
  readonly #account = `acme-${randomBytes(6).toString('hex')}`;
  readonly #clock = manualClock();
  readonly #processes: readonly TokenService[];
  readonly #nodes: Node[] = [];

  constructor(inner: TokenStore) {
    // A change is heard of by nobody: the bound must hold without it.
    const unheard = new Proxy(inner, {
      get: (store, name) => {
        if (name === 'watch' || name === 'close') return undefined;
        const member: unknown = Reflect.get(store, name);
        return typeof member === 'function' ? member.bind(store) : member;
      },
    });
    this.#processes = STALE_MS.map(
      (maxStaleMs) =>
        new TokenService({
          store: unheard,
          keys: [K1],
          prefix: 'acme',
          clock: this.#clock,
          deadlineMs: 60_000,
          cache: { maxStaleMs },
        }),
    );
  }

  get #now(): number {
    return this.#clock.now().getTime();
  }

  async begin(): Promise<void> {
    const [tokens] = this.#processes as [TokenService];
    const root = await tokens.issue({ account: this.#account, scopes: ['*:*/*'], ttlSeconds: 300 });
    this.#add(root, undefined, root.value);
    await this.#check(0);
  }

  async take(step: Step): Promise<void> {
    const node = this.#nodes[step.token % this.#nodes.length] as Node;
    const tokens = this.#processes[step.by] as TokenService;
    try {
      await this.#do(step, node, tokens);
    } catch (error) {
      if (!isTokenError(error)) throw error;
      this.#allowRefusal(step, node, error.code);
    }
    await this.#check(step.by);
  }

  async #do(step: Step, node: Node, tokens: TokenService): Promise<void> {
    const { id } = node;
    const account = this.#account;
    switch (step.does) {
      case 'derive': {
        const input = { scopes: step.scopes, ttlSeconds: step.seconds };
        const child = await tokens.derive(node.value, input);
        const before = this.#isLive(node);
        this.#add(child, node, child.value);
        if (!before) this.faults.push('a token that had ended was derived from');
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
      case 'suspend':
        return this.#changed(
          node,
          await tokens.patch(account, id, { suspended: step.isSuspended }),
        );
      case 'revoke':
        if (await tokens.revoke(account, id))
          this.#become(node, { ...this.#is(node), isOpen: false });
        return;
      case 'rotate':
        node.value = (await tokens.rotate(account, id)).value;
        return;
      case 'wait':
        return this.#clock.advance(step.seconds);
      case 'purge':
        await tokens.purge({ before: this.#clock.now() });
    }
  }

  /** A refusal is right if somebody had ended, or was asked for what it does not have. */
  #allowRefusal(step: Step, node: Node, code: string): void {
    if (step.does === 'derive' && code === 'invalid_token' && this.#isLive(node)) {
      this.faults.push('a live token could not be derived from');
    }
    const known = ['invalid_token', 'not_found', 'token_expired', 'scope_unmatched'];
    if (![...known, 'scopes_required', 'quota_exceeded'].includes(code)) {
      this.faults.push(`${step.does} was refused with ${code}`);
    }
  }

  #add(token: Token, parent: Node | undefined, value: string): void {
    const node = { id: token.id, parent, value, past: [wasOf(token)] };
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

  /** What a token has just got, each of its ancestors has now. */
  #mustBeWithin(node: Node, got: readonly string[]): void {
    for (let above = node.parent; above !== undefined; above = above.parent) {
      const { scopes: held } = this.#is(above);
      const isWithin = got.every((scope) => held.some((outer) => covers(outer, scope)));
      if (!isWithin) this.faults.push('a token got more than its ancestor has');
    }
  }

  #mustEndInTime(node: Node): void {
    const ends = lineageOf(node).map((each) => this.#is(each).expiresAt);
    if (Math.min(...ends) < this.#is(node).expiresAt) this.faults.push('a token got a longer life');
  }

  /** Asks one process without a cache and the one that made the change, about all tokens. */
  async #check(by: number): Promise<void> {
    for (const place of new Set([0, by, (by + 1) % STALE_MS.length])) {
      const tokens = this.#processes[place] as TokenService;
      for (const node of this.#nodes) {
        for (const need of NEEDS)
          await this.#checkOne(tokens, STALE_MS[place] as number, node, need);
      }
    }
  }

  async #checkOne(tokens: TokenService, staleMs: number, node: Node, need: string): Promise<void> {
    const { ok } = await tokens.verify(node.value, { scope: need });
    const lineage = lineageOf(node);
    const isRight = lineage.every((each) => this.#allows(each, need));
    if (staleMs === 0 && ok !== isRight) {
      this.faults.push(`a token was ${ok ? 'accepted' : 'refused'} wrongly`);
    }
    if (ok && !lineage.every((each) => this.#allowedSince(each, need, this.#now - staleMs))) {
      this.faults.push('a token outlived or exceeded an ancestor');
    }
  }

  #allows(node: Node, need: string): boolean {
    return grants(this.#is(node), need, this.#now);
  }

  /** Whether it did at the instant or later. */
  #allowedSince({ past }: Node, need: string, since: number): boolean {
    return past.some((was) => was.until > since && grants(was, need, this.#now));
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

function wasOf({ scopes: held, expiresAt, state }: Token): Was {
  return {
    scopes: held,
    expiresAt: expiresAt.getTime(),
    isOpen: state === 'active',
    until: Number.POSITIVE_INFINITY,
  };
}

function lineageOf(node: Node): Node[] {
  return node.parent === undefined ? [node] : [node, ...lineageOf(node.parent)];
}

function grants({ scopes: held, expiresAt, isOpen }: Was, need: string, now: number): boolean {
  return isOpen && expiresAt > now && held.some((scope) => covers(scope, need));
}
