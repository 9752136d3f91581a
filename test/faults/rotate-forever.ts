// A process that rotates tokens with `activate: 'first-use'` and uses the new values until it is killed.
// Prints each value when it is `issued`, when it `waits` for its first use, and when it was `used`. Arguments:
// the database; `first-use`, or `immediate` for the control, in which rotations take effect immediately and
// new values are not printed; the key.
import { writeSync } from 'node:fs';
import { type KeyOptions, TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { SCOPE } from '../support.ts';

const [, , file = '', mode, key = ''] = process.argv;
const tokens = new TokenService({
  store: SqliteTokenStore.openFile(file),
  keys: [JSON.parse(key) as KeyOptions],
  prefix: 'acme',
});
const LANES = 4;
const graceSeconds = 3600;

async function work(lane: number): Promise<void> {
  const report = (step: string, value: string) => writeSync(1, `${lane} ${step} ${value}\n`);
  const { id, value: first } = await tokens.issue({ account: 'ada', scopes: [SCOPE] });
  report('issued', first);
  for (;;) {
    if (mode === 'immediate') {
      await tokens.rotate('ada', id);
      report('rotated', '-');
      continue;
    }
    const { value } = await tokens.rotate('ada', id, { activate: 'first-use', graceSeconds });
    report('waits', value);
    // The first use is written while the next rotation already begins.
    const { ok } = await tokens.verify(value, { scope: SCOPE });
    report(ok ? 'used' : 'refused', value);
  }
}

await Promise.all(Array.from({ length: LANES }, (_, lane) => work(lane)));
