// Both formats of the package in one process, as happens where an application and one of its
// dependencies load it in two ways: they are two copies, and have to get on with each other.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import * as esm from 'tokenwright';

const require = createRequire(import.meta.url);
const cjs: typeof esm = require('tokenwright');
assert.notEqual(esm.TokenError, cjs.TokenError);

const keys = [esm.generateKey()];
const scope = 'GET:shop.example/orders';
for (const [one, other] of [
  [esm, cjs],
  [cjs, esm],
] as const) {
  const error = await new one.TokenService({
    store: new other.MemoryTokenStore(),
    keys,
    prefix: 'acme',
  })
    .issue({ account: 'ada', scopes: [] })
    .catch((reason: unknown) => reason);
  assert.ok(error instanceof one.TokenError && !(error instanceof other.TokenError));
  assert.ok(one.isTokenError(error) && other.isTokenError(error));
  assert.ok(!other.isTokenError(new Error('scopes_required')));

  const store = new one.MemoryTokenStore();
  const issuer = new one.TokenService({ store, keys, prefix: 'acme' });
  const verifier = new other.TokenService({ store, keys: issuer.verifierKeys(), prefix: 'acme' });
  const { id, value } = await issuer.issue({ account: 'ada', scopes: [scope] });
  assert.equal((await verifier.verify(value, { scope })).ok, true);
  await issuer.revoke('ada', id);
  assert.equal((await verifier.verify(value, { scope })).ok, false);
  // A code of the store's copy is one of the service's, too.
  const taken = await store.find([id]);
  const refused = await store.insert(taken[0] as esm.TokenRecord).catch((reason) => reason);
  assert.ok(other.isTokenError(refused) && refused.code === 'id_taken');
}
console.log('done: together');
