// Bring the tokens of other systems: import the hashes that they stored, and the values go on working.
import { createHash } from 'node:crypto';
import { apiKey } from '@better-auth/api-key';
import { betterAuth } from 'better-auth';
import { memoryAdapter } from 'better-auth/adapters/memory';
import {
  formats,
  generateKey,
  type ImportInput,
  MemoryTokenStore,
  TokenService,
} from 'tokenwright';

/** What is read of a row of better-auth's table `apikey`. */
interface KeyRow {
  readonly key: string;
  readonly referenceId: string;
  readonly permissions: string | null;
  readonly enabled: boolean;
  readonly expiresAt: Date | null;
}

// What is there: in production your own databases. Here, better-auth issues a key itself.
const tables = { user: [], session: [], account: [], verification: [], apikey: [] as KeyRow[] };
const auth = betterAuth({
  baseURL: 'https://shop.example',
  secret: 'a secret of thirty-two characters',
  database: memoryAdapter(tables),
  emailAndPassword: { enabled: true },
  plugins: [apiKey({ defaultPrefix: 'old_' })],
  telemetry: { enabled: false },
});
const ada = { name: 'Ada', email: 'ada@shop.example', password: 'correct horse' };
const { user } = await auth.api.signUpEmail({ body: ada });
const body = { userId: user.id, permissions: { orders: ['read'] } };
const { key } = await auth.api.createApiKey({ body });

// A token of Laravel Sanctum. Its table holds the SHA-256 of the part behind the `|`.
const text = 'q8ZJ2mYt7RjW1cZpA5sQ0bX8vK2mYt7RjW1cZpA5';
const sanctumRow = {
  tokenable_id: 7,
  token: createHash('sha256').update(text).digest('hex'),
  abilities: '["orders:read"]',
  expires_at: null,
};

/** What old permissions mean as scopes. A permission that is not listed means nothing. */
const scopesOf: Record<string, string[]> = {
  'orders:read': ['GET:shop.example/orders'],
  'orders:write': ['POST:shop.example/orders', 'PATCH:shop.example/orders'],
};
const toScopes = (names: string[]): string[] => names.flatMap((name) => scopesOf[name] ?? []);
const inNames = (stored: string | null): string[] =>
  Object.entries(JSON.parse(stored ?? '{}') as Record<string, string[]>).flatMap(
    ([resource, actions]) => actions.map((action) => `${resource}:${action}`),
  );

// A token that never expired has to end one day.
const soon = new Date(Date.now() + 90 * 86_400_000);
function* rows(): Generator<ImportInput> {
  for (const row of tables.apikey) {
    yield {
      account: row.referenceId,
      format: 'better-auth',
      digest: row.key,
      scopes: toScopes(inNames(row.permissions)),
      expiresAt: row.expiresAt ?? soon,
      suspended: !row.enabled,
    };
  }
  yield {
    account: String(sanctumRow.tokenable_id),
    format: 'sanctum',
    digest: sanctumRow.token,
    scopes: toScopes(JSON.parse(sanctumRow.abilities)),
    expiresAt: sanctumRow.expires_at ?? soon,
  };
}

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  foreign: [formats.betterAuth({ prefix: 'old_' }), formats.sanctum()],
});
const { imported, refused } = await tokens.importMany(rows(), {
  onRefused: ({ row, message }) => console.warn(`row ${row}: ${message}`),
});
console.log(imported, refused); // 2 0

// The bearers send what they have always sent.
const read = { method: 'GET', domain: 'shop.example', target: '/orders/7' };
const verdict = await tokens.verify(key, read);
console.log(verdict.ok && verdict.token.account === user.id); // true
console.log((await tokens.verify(`12|${text}`, read)).ok); // true
console.log((await tokens.verify(`12|${text}`, { ...read, method: 'POST' })).ok); // false

// When an owner wants a new value, the old one goes on for a day.
const [token] = (await tokens.list({ account: '7' })).tokens;
const next = await tokens.rotate('7', String(token?.id), { graceSeconds: 86_400 });
console.log((await tokens.verify(next.value, read)).ok); // true
