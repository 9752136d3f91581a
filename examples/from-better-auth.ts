// From better-auth's API keys: issue a token with the same owner and rights for each key, and let both work for a time.
import { apiKey } from '@better-auth/api-key';
import { betterAuth } from 'better-auth';
import { memoryAdapter } from 'better-auth/adapters/memory';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard } from 'tokenwright/http';
import { ScopeSet } from 'tokenwright/scope';

// What is there: in production your own `auth`, on your own database.
const rows = { user: [], session: [], account: [], verification: [], apikey: [] };
const auth = betterAuth({
  baseURL: 'https://shop.example',
  secret: 'a secret of thirty-two characters',
  database: memoryAdapter(rows),
  emailAndPassword: { enabled: true },
  plugins: [apiKey()],
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
const toScopes = (held: Record<string, string[]> | null | undefined): string[] =>
  Object.entries(held ?? {}).flatMap(([resource, actions]) =>
    actions.flatMap((action) => scopesOf[`${resource}:${action}`] ?? []),
  );
const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
});
const guard = bearerGuard({ tokens, domain: 'shop.example' });

/** Takes a token in `Authorization` or a better-auth key in `x-api-key`, and returns its owner. */
async function accountOf(request: Request): Promise<string | undefined> {
  const ours = await guard(request);
  if (ours.ok) return ours.token.account;
  const key = request.headers.get('x-api-key');
  if (ours.reason !== 'missing' || key === null) return undefined;

  const { valid, key: row } = await auth.api.verifyApiKey({ body: { key } });
  if (!valid || row === null) return undefined;
  const target = new URL(request.url).pathname;
  const asked = { method: request.method, domain: 'shop.example', target };
  return ScopeSet.from(toScopes(row.permissions)).allows(asked).allowed
    ? row.referenceId
    : undefined;
}
const call = (headers: Record<string, string>, method = 'GET') =>
  accountOf(new Request('https://shop.example/orders/7', { method, headers }));
console.log((await call({ 'x-api-key': old.key })) === user.id); // true
console.log(await call({ 'x-api-key': old.key }, 'POST')); // undefined

// The move of one row. Its value goes to its owner; the old key can then be deleted.
const token = await tokens.issue({
  account: old.referenceId,
  name: old.name ?? 'unnamed',
  scopes: toScopes(old.permissions),
  metadata: { replaces: old.id },
});
console.log((await call({ authorization: `Bearer ${token.value}` })) === user.id); // true
console.log(await call({ authorization: `Bearer ${token.value}` }, 'POST')); // undefined
