// Moving from tokens of another scheme: ours are tried first, the old ones go on until a last day.
import { createHash } from 'node:crypto';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard } from 'tokenwright/http';
import { ScopeSet } from 'tokenwright/scope';

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
});
const guard = bearerGuard({ tokens, domain: 'shop.example', onError: console.error });

/** What an old permission means as scopes. A permission that is not listed means nothing. */
const scopesOf: Record<string, string[]> = {
  'orders:read': ['GET:shop.example/orders'],
  'orders:write': ['POST:shop.example/orders', 'PATCH:shop.example/orders'],
};

/** The old table, by the SHA-256 of the value. */
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const oldTable = new Map([
  [sha256('old-secret-of-ada'), { account: 'ada', permissions: ['orders:read', 'admin'] }],
]);
const LAST_DAY = Date.UTC(2027, 5, 30);

type Outcome =
  | { readonly ok: true; readonly account: string }
  | { readonly ok: false; readonly response: Response };

/** Takes both, and says whose call it is. */
async function eitherGuard(request: Request, now: number): Promise<Outcome> {
  const ours = await guard(request);
  if (ours.ok) return { ok: true, account: ours.token.account };
  // Look up only strings that cannot be a value of tokenwright: not revoked or insufficient tokens,
  // and not during an outage of the store.
  if (ours.reason !== 'malformed' || now > LAST_DAY) return ours;

  const value = request.headers.get('authorization')?.replace(/^bearer /i, '') ?? '';
  const old = oldTable.get(sha256(value));
  if (old === undefined) return ours;
  const held = ScopeSet.from(old.permissions.flatMap((name) => scopesOf[name] ?? []));
  const { pathname } = new URL(request.url);
  const asked = { method: request.method, domain: 'shop.example', target: pathname };
  if (!held.allows(asked).allowed)
    return { ok: false, response: new Response(null, { status: 403 }) };
  // Here you count who still calls with an old token: those are the people to write to.
  return { ok: true, account: old.account };
}

const before = Date.UTC(2027, 0, 1);
async function call(value: string, method = 'GET', now = before): Promise<number | string> {
  const headers = { authorization: `Bearer ${value}` };
  const request = new Request('https://shop.example/orders/7', { method, headers });
  const outcome = await eitherGuard(request, now);
  return outcome.ok ? outcome.account : outcome.response.status;
}

console.log(await call('old-secret-of-ada')); // ada
console.log(await call('old-secret-of-ada', 'DELETE')); // 403
console.log(await call('old-secret-of-nobody')); // 401

// A new token with the same rights: the owner takes this value instead, and you can delete the old row.
const scopes = scopesOf['orders:read'] ?? [];
const token = await tokens.issue({ account: 'ada', scopes, metadata: { replaces: 'ci' } });
console.log(await call(token.value)); // ada
await tokens.revoke('ada', token.id);
console.log(await call(token.value)); // 401
console.log(await call('old-secret-of-ada', 'GET', LAST_DAY + 1)); // 401
