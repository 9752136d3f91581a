// Keys that outlive a restart, and replacing one in three steps: no token is lost before the last.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateKey, type KeyOptions, MemoryTokenStore, TokenService } from 'tokenwright';

const store = new MemoryTokenStore(); // stands for your database, which outlives a restart as well
const scope = 'GET:shop.example/orders';
const folder = mkdtempSync(join(tmpdir(), 'acme-'));
const file = join(folder, 'keys.json');

// Once: what `npx tokenwright keys new --keys keys.json` does. Only the owner may read the file.
writeFileSync(file, JSON.stringify([generateKey('k1')]), { mode: 0o600, flag: 'wx' });

// On each start, of each process:
const start = (keys: readonly KeyOptions[] = JSON.parse(readFileSync(file, 'utf8'))) =>
  new TokenService({ store, keys, prefix: 'acme' });

const old = await start().issue({ account: 'ada', scopes: [scope] });
console.log((await start().verify(old.value, { scope })).ok); // true

// A process that makes a key of its own knows none of the tokens.
const refused = await start([generateKey()]).verify(old.value, { scope });
console.log(!refused.ok && refused.reason); // malformed

const [k1] = JSON.parse(readFileSync(file, 'utf8'));
const k2 = generateKey('k2');
const verifying = (key: KeyOptions): KeyOptions => ({ ...key, status: 'verify' });

// Step 1, on all nodes: the new key is known, and not used yet. No node makes what another refuses.
const staged = start([k1, verifying(k2)]);
console.log((await staged.verify(old.value, { scope })).ok); // true

// Step 2, on all nodes: values are made with the new key; those of the old one stay good.
const rotated = start([verifying(k1), k2]);
const fresh = await rotated.issue({ account: 'ada', scopes: [scope] });
console.log(fresh.value.slice(0, 8)); // acme_1k2
console.log((await rotated.verify(old.value, { scope })).ok); // true
console.log((await staged.verify(fresh.value, { scope })).ok); // true

// Step 3, when no token of the old key is live any more, or immediately if the key has leaked.
const done = start([k2]);
console.log((await done.verify(old.value, { scope })).ok); // false
console.log((await done.verify(fresh.value, { scope })).ok); // true

rmSync(folder, { recursive: true });
