// A process that issues tokens until it is killed, and says of each that it was issued.
// Arguments: the database, and "committed", or "open" for the control, in which what is
// acknowledged was never committed.
import { writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { type KeyOptions, TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite.ts';

const [, , file = '', mode, key = ''] = process.argv;
const handle = new DatabaseSync(file);
const tokens = new TokenService({
  store: SqliteTokenStore.open(handle),
  keys: [JSON.parse(key) as KeyOptions],
  prefix: 'acme',
});
if (mode === 'open') handle.exec('BEGIN');
for (;;) {
  const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
  writeSync(1, `${value}\n`);
}
