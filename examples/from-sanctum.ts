// From Laravel Sanctum: a check of its table in Node, to run beside ours until its tokens are replaced.
import { createHash, timingSafeEqual } from 'node:crypto';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { ScopeSet } from 'tokenwright/scope';

/** A row of `personal_access_tokens`. */
interface Row {
  readonly tokenable_id: number;
  readonly name: string;
  /** SHA-256, in hex, of what stands behind the `|` of a value. */
  readonly token: string;
  /** A list in JSON; `*` in it is all. */
  readonly abilities: string;
  readonly created_at: Date;
  readonly expires_at: Date | null;
}
const sha256 = (text: string) => createHash('sha256').update(text).digest();
const table = new Map<number, Row>([
  [
    12,
    {
      tokenable_id: 7,
      name: 'ci',
      token: sha256('the-text-of-a-token').toString('hex'),
      abilities: '["orders:read"]',
      created_at: new Date('2027-01-01T00:00:00Z'),
      expires_at: null,
    },
  ],
]);

/** The row of a value, `12|the-text-of-a-token`, while it is good. */
function sanctumRow(value: string, now: Date): Row | undefined {
  const [, id, text] = /^(\d{1,15})\|(.+)$/.exec(value) ?? [];
  const row = table.get(Number(id));
  if (row === undefined || text === undefined) return undefined;
  if (!timingSafeEqual(sha256(text), Buffer.from(row.token, 'hex'))) return undefined;
  // Where `sanctum.expiration` is set, it counts from `created_at` and has to be looked at as well.
  return row.expires_at === null || now < row.expires_at ? row : undefined;
}

/** What abilities mean as scopes. One that is not listed means nothing. */
const scopesOf: Record<string, string[]> = {
  '*': ['*:shop.example/*'],
  'orders:read': ['GET:shop.example/orders'],
};
const scopesIn = ({ abilities }: Row) =>
  (JSON.parse(abilities) as string[]).flatMap((ability) => scopesOf[ability] ?? []);

const now = new Date('2027-02-01T00:00:00Z');
const row = sanctumRow('12|the-text-of-a-token', now);
const held = ScopeSet.from(row ? scopesIn(row) : []);
const request = { domain: 'shop.example', target: '/orders/7' };
console.log(held.allows({ method: 'GET', ...request }).allowed); // true
console.log(held.allows({ method: 'POST', ...request }).allowed); // false
console.log(sanctumRow('12|another-text', now), sanctumRow('the-text-of-a-token', now)); // undefined undefined

// The move of one row. Its value goes to its owner; the row can be deleted when they have taken it over.
const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
});
if (row !== undefined) {
  const account = String(row.tokenable_id);
  const token = await tokens.issue({ account, name: row.name, scopes: scopesIn(row) });
  console.log(token.account, token.name, ...token.scopes); // 7 ci GET:shop.example/orders
}
