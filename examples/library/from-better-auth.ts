// From better-auth's API keys: import their rows, and the keys go on working as they are.
import { apiKey } from '@better-auth/api-key';
import { betterAuth } from 'better-auth';
import { memoryAdapter } from 'better-auth/adapters/memory';
import { formats, generateKey, MemoryTokenStore, TokenService } from 'tokenwright';

/** What is read of a row of the table `apikey`. */
interface Row {
  readonly key: string;
  readonly referenceId: string;
  readonly name: string | null;
  readonly permissions: string | null;
  readonly enabled: boolean;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
}

// What is there: in production your own `auth`, on your own database.
const rows = { user: [], session: [], account: [], verification: [], apikey: [] as Row[] };
const auth = betterAuth({
  baseURL: 'https://shop.example',
  secret: 'a secret of thirty-two characters',
  database: memoryAdapter(rows),
  emailAndPassword: { enabled: true },
  plugins: [apiKey({ defaultPrefix: 'old_' })],
  telemetry: { enabled: false },
});
const ada = { name: 'Ada', email: 'ada@shop.example', password: 'correct horse' };
const { user } = await auth.api.signUpEmail({ body: ada });
const permissions = { orders: ['read'] };
const old = await auth.api.createApiKey({ body: { userId: user.id, name: 'ci', permissions } });

// What comes: the permissions as scopes. One that is not listed means nothing.
const scopesOf: Record<string, string[]> = {
  'orders:read': ['GET:shop.example/orders'],
  'orders:write': ['POST:shop.example/orders', 'PATCH:shop.example/orders'],
};
const toScopes = (stored: string | null): string[] =>
  Object.entries(JSON.parse(stored ?? '{}') as Record<string, string[]>).flatMap(
    ([resource, actions]) => actions.flatMap((action) => scopesOf[`${resource}:${action}`] ?? []),
  );
const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  foreign: [formats.betterAuth({ prefix: 'old_' })],
});
const soon = new Date(Date.now() + 90 * 86_400_000);
const { imported, refused } = await tokens.importMany(
  rows.apikey
    .filter(({ enabled }) => enabled)
    .map((row) => ({
      account: row.referenceId,
      digest: row.key,
      format: 'better-auth',
      scopes: toScopes(row.permissions),
      createdAt: row.createdAt,
      expiresAt: row.expiresAt ?? soon,
      ...(row.name !== null && { name: row.name }),
    })),
);
console.log(imported, refused); // 1 0

// The key that better-auth has made is a value of this service now.
const read = { method: 'GET', domain: 'shop.example', target: '/orders/7' };
const verdict = await tokens.verify(old.key, read);
console.log(verdict.ok && verdict.token.account === user.id); // true
console.log((await tokens.verify(old.key, { ...read, method: 'POST' })).ok); // false
