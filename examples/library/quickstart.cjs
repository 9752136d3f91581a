// The quick start from CommonJS: without `await` at the top level, the calls go into an async function.
const { generateKey, MemoryTokenStore, TokenService } = require('tokenwright');

async function main() {
  const tokens = new TokenService({
    store: new MemoryTokenStore(),
    keys: [generateKey()],
    prefix: 'acme',
  });
  const scope = 'GET:shop.example/orders';
  const { id, value } = await tokens.issue({ account: 'ada', scopes: [scope] });
  console.log((await tokens.verify(value, { scope })).ok); // true

  await tokens.revoke('ada', id);
  console.log((await tokens.verify(value, { scope })).ok); // false
}

main();
