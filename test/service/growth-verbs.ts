// What can be done to a token, and at what sizes its cost is measured: for a token of any generation.
import { onTestFinished } from 'vitest';
import type { TokenStore } from '../../src/ports/token-store.ts';
import { ScopeCatalog } from '../../src/scope/index.ts';
import { TokenService } from '../../src/service.ts';
import { manualClock } from '../../src/testing/index.ts';
import type { IssuedToken, TokenId } from '../../src/token/record.ts';
import type { CallSurface } from '../growth.ts';
import { K1 } from '../support.ts';

/** The most scopes of a token. */
export const LIMIT = 4096;
/** More than the thousand scopes that are remembered, so that each call parses its list again. */
export const SCOPES = [1024, 1600, 2560, 4096];
/** For a database: the text of each list is over 128 KiB, from which on it costs more to allocate. */
export const STORED_SCOPES = [2560, 3000, 3500, 4096];

export const entryOf = (i: number) => `GET:api${i % 4}.example.com/r${i}/items/of/some/length/${i}`;
export const entries = (count: number) => Array.from({ length: count }, (_, i) => entryOf(i));
export const respelled = (count: number, from: string | RegExp, to: string) =>
  entries(count).map((scope) => scope.replace(from, to));

/** Scopes that differ only behind 28 equal segments. */
export const deep = (count: number) =>
  Array.from({ length: count }, (_, i) => `GET:api.example.com/${'a/'.repeat(28)}r${i}$`);

export const refused = (call: Promise<unknown>) =>
  call.then(
    () => 'accepted',
    () => 'refused',
  );

/** A service that is closed when the test ends. */
export function serviceOver(store: TokenStore, catalog: readonly string[] = entries(LIMIT)) {
  const tokens = new TokenService({
    store,
    keys: [K1],
    prefix: 'acme',
    reveal: 'always',
    clock: manualClock(),
    catalog: ScopeCatalog.from(catalog),
    quotas: { tokensPerAccount: 1_000_000, derivedPerRoot: 10_000 },
    deadlineMs: 20_000,
  });
  onTestFinished(() => tokens.close());
  return tokens;
}

/** How many tokens are in a line, each derived from the one before. The last one is measured. */
export const GENERATIONS = [1, 2, 8] as const;
export type Generation = (typeof GENERATIONS)[number];

/** A token with `size` scopes, the last one of a line whose tokens all hold the same. */
export interface Held {
  readonly tokens: TokenService;
  readonly id: TokenId;
  readonly value: string;
  readonly scopes: readonly string[];
  /** As many scopes that nobody holds. */
  readonly unlike: readonly string[];
  /** Issues or derives one like it, or with other scopes. */
  readonly another: (scopes?: readonly string[]) => Promise<IssuedToken>;
}

export async function heldBy(
  tokens: TokenService,
  generation: Generation,
  size: number,
): Promise<Held> {
  const scopes = entries(size);
  const line = await lineOf(tokens, generation, scopes);
  return { tokens, ...line, scopes, unlike: respelled(size, '/r', '/q') };
}

export async function lineOf(
  tokens: TokenService,
  generation: Generation,
  scopes: readonly string[],
): Promise<Pick<Held, 'id' | 'value' | 'another'>> {
  let another: Held['another'] = (asked = scopes) => tokens.issue({ account: 'a', scopes: asked });
  let last = await another();
  for (let count = 1; count < generation; count++) {
    const { value } = last;
    another = (asked = scopes) => tokens.derive(value, { scopes: asked });
    last = await another();
  }
  return { id: last.id, value: last.value, another };
}

let laterMs = manualClock().now().getTime() + 1_000_000;

/**
 * Calls on a token whose cost depends on its scopes. They change nothing, or can be repeated. Those that make
 * tokens come after those that list them.
 */
export const VERBS: readonly (readonly [string, (held: Held) => Promise<unknown>])[] = [
  ['get', ({ tokens, id }) => tokens.get('a', id)],
  ['list', ({ tokens }) => tokens.list({ account: 'a' })],
  [
    'list with a filter that finds nothing',
    ({ tokens }) => tokens.list({ account: 'a', scope: 'GET:api0.example.com/zzz' }),
  ],
  ['issue or derive', ({ another }) => another()],
  ['revoke', async ({ tokens, another }) => tokens.revoke('a', (await another()).id)],
  ['modify', ({ tokens, id, scopes }) => tokens.modify('a', id, { scopes })],
  ['modify to a wildcard', ({ tokens, id }) => tokens.modify('a', id, { scopes: ['*:*/*'] })],
  ['patch of scopes', ({ tokens, id, scopes }) => tokens.patch('a', id, { scopes })],
  [
    'patch of scopes unlike any held one',
    ({ tokens, id, unlike }) => refused(tokens.patch('a', id, { scopes: unlike })),
  ],
  [
    'patch that adds scopes',
    ({ tokens, id, scopes }) => tokens.patch('a', id, { addScopes: scopes }),
  ],
  [
    'patch that removes scopes',
    ({ tokens, id, scopes }) =>
      tokens.patch('a', id, { removeScopes: scopes.slice(1) }, { dryRun: true }),
  ],
  [
    'patch that removes scopes not held',
    ({ tokens, id, unlike }) => refused(tokens.patch('a', id, { removeScopes: unlike })),
  ],
  [
    'patch of a later expiry',
    ({ tokens, id }) => tokens.patch('a', id, { expiresAt: new Date(laterMs++) }),
  ],
  ['patch of a name', ({ tokens, id }) => tokens.patch('a', id, { name: 'x' })],
  ['rotate', ({ tokens, id }) => tokens.rotate('a', id)],
  ['explain', ({ tokens, id }) => tokens.explain('a', id, { scope: 'GET:api0.example.com/zzz' })],
  [
    'a refused verify that is explained',
    async ({ tokens, value }) => {
      const verdict = await tokens.verify(value, { scope: 'GET:api0.example.com/zzz' });
      return verdict.ok || verdict.explanation;
    },
  ],
  ['introspect', ({ tokens, value }) => tokens.introspect(value)],
];

/** A verb on a token of a generation, over a store that is made for each size. */
export function onToken(
  call: (held: Held) => Promise<unknown>,
  generation: Generation,
  newStore: () => TokenStore | Promise<TokenStore>,
): CallSurface {
  return async (size) => {
    const held = await heldBy(serviceOver(await newStore()), generation, size);
    return () => call(held);
  };
}
