// The quickest way in: issue a token, check what it may do, take it back.
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
});

const token = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
console.log(token.value.slice(0, 8), token.value.length); // acme_1k1 63

const request = { method: 'GET', domain: 'shop.example', target: '/orders/7?full=1' };
console.log((await tokens.verify(token.value, request)).ok); // true

const refused = await tokens.verify(token.value, { ...request, target: '/ordersx' });
console.log(!refused.ok && refused.reason); // insufficient_scope

console.log(await tokens.revoke('ada', token.id)); // true
console.log((await tokens.verify(token.value, request)).ok); // false
