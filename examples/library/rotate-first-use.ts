// Rotating a value so that nobody is locked out: the old one ends only after the new one was used.
import { setImmediate } from 'node:timers/promises';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
});
const need = { scope: 'GET:shop.example/orders' };
const old = await tokens.issue({ account: 'ada', scopes: [need.scope] });
const rotation = { activate: 'first-use', graceSeconds: 3600 } as const;

// The first answer was lost on its way. Nothing has ended, so rotate again.
await tokens.rotate('ada', old.id, rotation);
const next = await tokens.rotate('ada', old.id, rotation);
console.log(next.pending, (await tokens.verify(old.value, need)).ok); // true true

// Put the new value where your programs find it. The first of them that uses it starts the hour.
console.log((await tokens.verify(next.value, need)).ok); // true
await setImmediate(); // the use is written in the background
console.log((await tokens.get('ada', old.id))?.pending); // undefined
console.log((await tokens.verify(old.value, need)).ok); // true
