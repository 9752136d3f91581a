// Keys that outlive a restart: made once, kept in a file, and read by each process that serves the same tokens.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';

const store = new MemoryTokenStore(); // stands for your database, which outlives a restart as well
const scope = 'GET:shop.example/orders';
const folder = mkdtempSync(join(tmpdir(), 'acme-'));
const file = join(folder, 'keys.json');

// Once: what `npx tokenwright keys new --keys keys.json` does. Only the owner may read the file.
writeFileSync(file, JSON.stringify([generateKey()]), { mode: 0o600, flag: 'wx' });

// On each start, of each process:
const start = () =>
  new TokenService({ store, keys: JSON.parse(readFileSync(file, 'utf8')), prefix: 'acme' });

const { value } = await start().issue({ account: 'ada', scopes: [scope] });
console.log((await start().verify(value, { scope })).ok); // true

// A process that makes a key of its own knows none of the tokens.
const stranger = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
const refused = await stranger.verify(value, { scope });
console.log(!refused.ok && refused.reason); // malformed

rmSync(folder, { recursive: true });
