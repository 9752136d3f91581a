// A process that takes tokens through their lives until it is killed, and prints each step when it is
// acknowledged: `issued`, `modified`, `rotated` (with the new value) and `revoked`. Arguments: the database;
// `committed`, or `open` for the control, which never commits what it acknowledges; the key.
import { writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { type KeyOptions, TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { OTHER_SCOPE, SCOPE } from '../support.ts';

const [, , file = '', mode, key = ''] = process.argv;
const handle = new DatabaseSync(file);
const tokens = new TokenService({
  store: SqliteTokenStore.open(handle),
  keys: [JSON.parse(key) as KeyOptions],
  prefix: 'acme',
});
if (mode === 'open') handle.exec('BEGIN');
const LANES = 4;

/** Runs concurrently with other lanes, whose writes share a commit. */
async function work(lane: number): Promise<void> {
  const report = (step: string, id: string, value = '-') =>
    writeSync(1, `${lane} ${step} ${id} ${value}\n`);
  for (let count = lane; ; count++) {
    const { id, value } = await tokens.issue({ account: 'ada', scopes: [SCOPE] });
    report('issued', id, value);
    // Some tokens stop early, so that tokens in each state are left behind.
    if (count % 4 === 0) continue;
    await tokens.modify('ada', id, { scopes: [OTHER_SCOPE] });
    report('modified', id);
    if (count % 4 === 1) continue;
    const rotated = await tokens.rotate('ada', id);
    report('rotated', id, rotated.value);
    if (count % 4 === 2) continue;
    await tokens.revoke('ada', id);
    report('revoked', id);
  }
}

await Promise.all(Array.from({ length: LANES }, (_, lane) => work(lane)));
