// What every runtime must do, with what needs no file: each part asks for a yes and for a no.
import assert from 'node:assert/strict';
import {
  generateKey,
  isTokenError,
  MemoryTokenStore,
  redact,
  TokenError,
  TokenService,
  type TokenStore,
} from 'tokenwright';
import { bearerGuard, fixedAccounts, tokenHandler } from 'tokenwright/http';
import { catalogFromOpenApi } from 'tokenwright/openapi';
import {
  covers,
  defineCatalog,
  meet,
  overlaps,
  parseScope,
  ScopeSet,
  safeParseScope,
} from 'tokenwright/scope';
import { faults, manualClock, storeContract, withFaults } from 'tokenwright/testing';

/** By its name, what is done in it. */
export type Part = readonly [name: string, run: () => Promise<void>];

export const PARTS: readonly Part[] = [
  ['verbs', () => verbs(() => new MemoryTokenStore())],
  ['scopes', scopes],
  ['service', service],
  ['guard', guard],
  ['openapi', openapi],
  ['contract', () => contract(() => new MemoryTokenStore())],
  ['faults', lostCalls],
];

const ORDERS = 'GET:shop.example/orders';
const NOTES = 'POST:shop.example/orders/notes';

/** The life of a token, in a store. */
export async function verbs(open: () => TokenStore): Promise<void> {
  const clock = manualClock();
  const tokens = new TokenService({ store: open(), keys: [generateKey()], prefix: 'acme', clock });
  const issued = await tokens.issue({ account: 'ada', scopes: [ORDERS], ttlSeconds: 3600 });
  const { id, value } = issued;
  assert.match(value, /^acme_1k1[0-9A-Za-z]{55}$/);
  assert.ok(!redact(`Bearer ${value}`).includes(value));

  assert.deepEqual((await tokens.list({ account: 'ada' })).tokens.map(idOf), [id]);
  assert.deepEqual((await tokens.list({ account: 'bob' })).tokens, []);
  assert.equal((await tokens.get('ada', value))?.id, id);
  assert.equal(await tokens.get('bob', id), undefined);

  const order = { method: 'GET', domain: 'shop.example', target: '/orders/7?full=1' };
  assert.deepEqual(await verdictOf(tokens, value, order), ORDERS);
  assert.equal(await verdictOf(tokens, value, { ...order, method: 'POST' }), 'insufficient_scope');
  assert.equal(await verdictOf(tokens, value, { ...order, target: '/a/..' }), 'ambiguous_request');
  assert.equal(await verdictOf(tokens, `${value.slice(0, -1)}!`, order), 'malformed');
  assert.equal((await tokens.explain('ada', id, { scope: NOTES })).smallest, NOTES);

  const modified = await tokens.modify('ada', id, { scopes: [NOTES] }, { ifVersion: 1 });
  assert.deepEqual(modified.scopes, [NOTES]);
  assert.equal(await codeOf(tokens.revoke('ada', id, { ifVersion: 1 })), 'version_conflict');
  const patched = await tokens.patch('ada', id, { addScopes: [ORDERS], name: 'till' });
  assert.deepEqual([...patched.scopes].sort(), [ORDERS, NOTES]);

  const rotated = await tokens.rotate('ada', id, { graceSeconds: 60 });
  assert.equal(await verdictOf(tokens, value, order), ORDERS);
  clock.advance(60);
  assert.equal(await verdictOf(tokens, value, order), 'unknown');
  assert.equal(await verdictOf(tokens, rotated.value, order), ORDERS);

  assert.equal(await tokens.revoke('bob', id), false);
  assert.equal(await tokens.revoke('ada', id), true);
  assert.equal(await verdictOf(tokens, rotated.value, order), 'revoked');

  const short = await tokens.issue({ account: 'ada', scopes: [ORDERS], ttlSeconds: 1 });
  assert.equal(await verdictOf(tokens, short.value, order), ORDERS);
  clock.advance(1);
  assert.equal(await verdictOf(tokens, short.value, order), 'expired');
  assert.equal(await codeOf(tokens.issue({ account: 'ada', scopes: [] })), 'scopes_required');
  assert.equal(await tokens.revokeAll('ada'), 1);
  await tokens.close();
}

async function scopes(): Promise<void> {
  assert.equal(String(parseScope(ORDERS)), ORDERS);
  assert.equal(safeParseScope('get:shop.example/orders').ok, false);
  assert.equal(covers('GET:*.example/*', ORDERS), true);
  assert.equal(covers(ORDERS, 'GET:shop.example/ordersx'), false);
  assert.equal(overlaps(ORDERS, NOTES), false);
  assert.equal(String(meet('*:shop.example/*', ORDERS)), ORDERS);
  const held = ScopeSet.from([ORDERS, 'GET:shop.example/orders/open']);
  assert.deepEqual(held.minimize().toArray(), [ORDERS]);
  const request = { method: 'GET', domain: 'shop.example', target: '/orders/7' };
  assert.equal(held.allows(request).allowed, true);
  assert.equal(held.allows({ ...request, target: '/orders%2F7' }).allowed, false);
  const catalog = defineCatalog([ORDERS, NOTES]);
  assert.deepEqual(catalog.expand(['GET:*/*']).granted, [ORDERS]);
}

async function service(): Promise<void> {
  const tokens = new TokenService({
    store: new MemoryTokenStore(),
    keys: [generateKey()],
    prefix: 'acme',
  });
  const authenticate = fixedAccounts([{ username: 'ada', password: 'correct horse' }]);
  const handler = tokenHandler({ tokens, authenticate, basePath: '/auth' });
  const call = (password: string, body: string) =>
    handler(
      new Request('http://shop.example/auth/token', {
        method: 'POST',
        headers: {
          authorization: `Basic ${btoa(`ada:${password}`)}`,
          'content-type': 'application/json',
        },
        body,
      }),
    );

  const created = await call('correct horse', JSON.stringify({ scopes: [ORDERS], ttl: 60 }));
  const { success, token } = (await created.json()) as Record<string, unknown>;
  assert.deepEqual([created.status, success], [200, true]);
  assert.equal(await verdictOf(tokens, String(token), { scope: ORDERS }), ORDERS);
  assert.equal((await call('wrong', '{}')).status, 401);
  assert.equal((await call('correct horse', '{')).status, 400);
  const description = await handler(new Request('http://shop.example/auth/openapi.json'));
  assert.match(((await description.json()) as { openapi: string }).openapi, /^3\.1\./);
}

async function guard(): Promise<void> {
  const tokens = new TokenService({
    store: new MemoryTokenStore(),
    keys: [generateKey()],
    prefix: 'acme',
  });
  const { value } = await tokens.issue({ account: 'ada', scopes: [ORDERS] });
  const verifier = new TokenService({
    store: new MemoryTokenStore(),
    keys: tokens.verifierKeys(),
    prefix: 'acme',
  });
  const ask = async (by: TokenService, path: string, authorization?: string) => {
    const headers = new Headers(authorization === undefined ? {} : { authorization });
    const request = new Request(`http://shop.example${path}`, { headers });
    const outcome = await bearerGuard({ tokens: by, domain: 'shop.example' })(request);
    return outcome.ok ? outcome.token.account : outcome.response.status;
  };
  assert.equal(await ask(tokens, '/orders/7', `Bearer ${value}`), 'ada');
  assert.equal(await ask(tokens, '/orders/7'), 401);
  assert.equal(await ask(tokens, '/bills', `Bearer ${value}`), 403);
  assert.equal(await ask(verifier, '/orders/7', `Bearer ${value}`), 401);
}

async function openapi(): Promise<void> {
  const document = {
    openapi: '3.1.0',
    servers: [{ url: 'https://shop.example/v1' }],
    paths: { '/orders/{id}': { get: {}, delete: {} } },
  };
  const catalog = await catalogFromOpenApi(document);
  assert.deepEqual(catalog.toArray(), [
    'DELETE:shop.example/v1/orders/{}$',
    'GET:shop.example/v1/orders/{}$',
  ]);
  await assert.rejects(catalogFromOpenApi({ ...document, servers: [] }));
}

/** Every promise of a store. */
export async function contract(open: () => TokenStore): Promise<void> {
  assert.ok(storeContract.length > 60);
  for (const { name, run } of storeContract) {
    await run(open).catch((error) => assert.fail(`${name}: ${error}`));
  }
}

async function lostCalls(): Promise<void> {
  const store = withFaults(new MemoryTokenStore(), faults.lostRequest());
  const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
  const input = { account: 'ada', scopes: [ORDERS] };
  assert.equal(await codeOf(tokens.issue(input)), 'store_unavailable');
  // A store in memory has no `hasReached`, so nothing of these cases is lost.
  const cases = storeContract.filter(({ name }) => !name.startsWith('hasReached: '));
  assert.ok(cases.length > 0 && cases.length < storeContract.length);
  const outcomes = await Promise.allSettled(cases.map(({ run }) => run(() => store)));
  assert.ok(outcomes.every(({ status }) => status === 'rejected'));
}

function idOf({ id }: { readonly id: string }): string {
  return id;
}

/** The scope that grants it, or the reason why nothing does. */
async function verdictOf(
  tokens: TokenService,
  value: string,
  need: Parameters<TokenService['verify']>[1],
): Promise<string> {
  const verdict = await tokens.verify(value, need);
  return verdict.ok ? verdict.grantedBy : verdict.reason;
}

/** The code with which it is refused. */
export async function codeOf(refused: Promise<unknown>): Promise<string | undefined> {
  const error = await refused.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(isTokenError(error) && error instanceof TokenError);
  return error.code;
}
