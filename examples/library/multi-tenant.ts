// Many tenants in one service: each asks for its own scopes only, sees its own tokens only, and can leave.
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { ScopeCatalog } from 'tokenwright/scope';

const plans = {
  free: ['GET:api.shop.example/orders'],
  paid: ['GET:api.shop.example/orders', 'POST:api.shop.example/orders'],
};
/** In production: a look into your own database. */
const planOf = async (tenant: string) => (tenant === 'globex' ? 'paid' : 'free');

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'shop',
  catalog: async (tenant) => ScopeCatalog.from(plans[await planOf(tenant)]),
});

// One call, two tenants: `*` is what the plan of the tenant holds.
const everything = ['*:api.shop.example/*'];
const acme = await tokens.issue({ account: 'acme', scopes: everything });
const globex = await tokens.issue({ account: 'globex', scopes: everything, name: 'ci' });
console.log(acme.scopes.length, globex.scopes.length); // 1 2

// More than the plan is refused by name, and nothing is issued.
const more = { account: 'acme', scopes: ['POST:api.shop.example/orders'] };
await tokens.issue(more).catch(({ code }) => console.log(code)); // scope_unmatched

// To a tenant the tokens of another do not exist.
console.log(await tokens.get('acme', globex.id)); // undefined
console.log(await tokens.revoke('acme', globex.id)); // false

// The token says which tenant a request acts for, never the request itself.
const need = { method: 'POST', domain: 'api.shop.example', target: '/orders' };
const verdict = await tokens.verify(globex.value, need);
console.log(verdict.ok && verdict.token.account, verdict.ok && verdict.token.name); // globex ci

// A tenant leaves.
console.log(await tokens.revokeAll('globex')); // 1
console.log((await tokens.verify(globex.value, need)).ok); // false
