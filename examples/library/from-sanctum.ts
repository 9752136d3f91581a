// From Laravel Sanctum: import its table, and its tokens go on working as they are.
import { createHash } from 'node:crypto';
import {
  formats,
  generateKey,
  type ImportInput,
  MemoryTokenStore,
  TokenService,
} from 'tokenwright';

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
const text = 'q8ZJ2mYt7RjW1cZpA5sQ0bX8vK2mYt7RjW1cZpA5';
const table: Row[] = [
  {
    tokenable_id: 7,
    name: 'ci',
    token: createHash('sha256').update(text).digest('hex'),
    abilities: '["orders:read"]',
    created_at: new Date('2026-01-01T00:00:00Z'),
    expires_at: null,
  },
];

/** What abilities mean as scopes. One that is not listed means nothing. */
const scopesOf: Record<string, string[]> = {
  '*': ['*:shop.example/*'],
  'orders:read': ['GET:shop.example/orders'],
};
const soon = new Date(Date.now() + 90 * 86_400_000);
const toInput = (row: Row): ImportInput => ({
  account: String(row.tokenable_id),
  name: row.name,
  format: 'sanctum',
  digest: row.token,
  scopes: (JSON.parse(row.abilities) as string[]).flatMap((ability) => scopesOf[ability] ?? []),
  createdAt: row.created_at,
  // A token that never expired has to end one day.
  expiresAt: row.expires_at ?? soon,
});

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  foreign: [formats.sanctum()],
});
const { imported, refused } = await tokens.importMany(table.map(toInput), {
  onRefused: ({ row, message }) => console.warn(`row ${row}: ${message}`),
});
console.log(imported, refused); // 1 0

// The bearer sends what it has always sent.
const read = { method: 'GET', domain: 'shop.example', target: '/orders/7' };
console.log((await tokens.verify(`12|${text}`, read)).ok); // true
console.log((await tokens.verify(`12|${text}`, { ...read, method: 'POST' })).ok); // false

// When the owner wants one of your values, the old one goes on for a day.
const [token] = (await tokens.list({ account: '7' })).tokens;
const next = await tokens.rotate('7', String(token?.id), { graceSeconds: 86_400 });
console.log((await tokens.verify(next.value, read)).ok); // true
