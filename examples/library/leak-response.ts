// A value was found where it should not be: whose it is, how to end it, and who still tries it.
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';

const happened: string[] = []; // in production: your log, or an alarm
const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  onEvent: ({ type }) => happened.push(type),
});
const scope = 'GET:shop.example/orders';
const { value: found } = await tokens.issue({ account: 'ada', scopes: [scope], name: 'ci' });

// Whose is it, and does it still open anything?
const token = await tokens.introspect(found, { includeSuspended: true });
console.log(token?.account, token?.name, token?.scopes.length); // ada ci 1

// Its owner still needs the token: give it a new value. The leaked value ends immediately, and so does
// every token that somebody has derived with it.
if (token !== undefined) {
  const { value } = await tokens.rotate(token.account, token.id, { endDerived: true });
  console.log((await tokens.verify(value, { scope })).ok); // true
}

// Somebody presents the old one: the event says so, with the id of the token.
console.log((await tokens.verify(found, { scope })).ok); // false
console.log(happened.includes('reused')); // true

// Its owner can do without, or cannot be reached.
if (token !== undefined) console.log(await tokens.revoke(token.account, token.id)); // true
