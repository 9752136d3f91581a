// Rotating the key of a service on many nodes: three steps, and no token is lost before the last.
import { generateKey, type KeyOptions, MemoryTokenStore, TokenService } from 'tokenwright';

const store = new MemoryTokenStore();
const restartedWith = (keys: KeyOptions[]) => new TokenService({ store, keys, prefix: 'acme' });
const verifying = (key: KeyOptions): KeyOptions => ({ ...key, status: 'verify' });
const scope = 'GET:shop.example/orders';

const [k1, k2] = [generateKey('k1'), generateKey('k2')];
const before = restartedWith([k1]);
const old = await before.issue({ account: 'ada', scopes: [scope] });

// Step 1, on all nodes: the new key is known, and not used yet. No node makes what another refuses.
const staged = restartedWith([k1, verifying(k2)]);
console.log((await staged.verify(old.value, { scope })).ok); // true

// Step 2, on all nodes: values are made with the new key; those of the old one stay good.
const rotated = restartedWith([verifying(k1), k2]);
const fresh = await rotated.issue({ account: 'ada', scopes: [scope] });
console.log(fresh.value.slice(0, 8)); // acme_1k2
console.log((await rotated.verify(old.value, { scope })).ok); // true
console.log((await staged.verify(fresh.value, { scope })).ok); // true

// Step 3, when no token of the old key is live any more, or immediately if the key has leaked.
const done = restartedWith([k2]);
console.log((await done.verify(old.value, { scope })).ok); // false
console.log((await done.verify(fresh.value, { scope })).ok); // true
