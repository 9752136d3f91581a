// A narrower, shorter token from a token: for a job that should get less than its owner has.
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
});
const scopes = ['GET:shop.example/orders', 'POST:shop.example/orders'];
const owner = await tokens.issue({ account: 'ada', scopes });

// Whoever holds the value needs no credentials of the account.
const read = { scope: 'GET:shop.example/orders' };
const job = await tokens.derive(owner.value, { scopes: [read.scope], ttlSeconds: 900 });
console.log(job.account, job.parent === owner.id, ...job.scopes); // ada true GET:shop.example/orders
console.log(await tokens.allows(job.value, read)); // true

// What the parent loses, its children lose in the same moment.
await tokens.patch('ada', owner.id, { removeScopes: [read.scope] });
const refused = await tokens.verify(job.value, read);
console.log(refused.reason); // ancestor_insufficient
await tokens.revoke('ada', owner.id);
console.log((await tokens.verify(job.value, read)).reason); // ancestor_revoked
