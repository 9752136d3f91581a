// A process that rotates tokens on first use and uses their new values until it is killed. Says each value
// when it was issued, `waits` for its first use, and was `used`. Arguments: the database; "told", or "lost"
// for the control, in which rotations do not wait, and nobody hears of the new values; the key.
import { writeSync } from 'node:fs';
import { type KeyOptions, TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { SCOPE } from '../support.ts';

const [, , file = '', mode, key = ''] = process.argv;
const tokens = new TokenService({
  store: SqliteTokenStore.open(file),
  keys: [JSON.parse(key) as KeyOptions],
  prefix: 'acme',
});
const LANES = 4;
const graceSeconds = 3600;

async function work(lane: number): Promise<void> {
  const tell = (step: string, value: string) => writeSync(1, `${lane} ${step} ${value}\n`);
  const { id, value: first } = await tokens.issue({ account: 'ada', scopes: [SCOPE] });
  tell('issued', first);
  for (;;) {
    if (mode === 'lost') {
      await tokens.rotate('ada', id);
      tell('rotated', '-');
      continue;
    }
    const { value } = await tokens.rotate('ada', id, { activate: 'first-use', graceSeconds });
    tell('waits', value);
    // That it was used is written while the next rotation begins.
    const { ok } = await tokens.verify(value, { scope: SCOPE });
    tell(ok ? 'used' : 'refused', value);
  }
}

await Promise.all(Array.from({ length: LANES }, (_, lane) => work(lane)));
