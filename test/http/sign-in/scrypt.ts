import type * as nodeCrypto from 'node:crypto';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { onTestFinished, vi } from 'vitest';

const crypto = createRequire(import.meta.url)('node:crypto') as typeof nodeCrypto;

/** Records all calls of scrypt until the test ends. */
export function watchScrypt() {
  return spied('scrypt');
}

/** Records all calls of scrypt as well, and makes it quick: for what does not depend on its cost. */
export function quickScrypt() {
  const { scrypt, scryptSync } = crypto;
  const quick = (options: nodeCrypto.ScryptOptions = {}) => ({ ...options, N: 2 });
  spied('scryptSync').mockImplementation((password, salt, length, options) =>
    scryptSync(password, salt, length, quick(options)),
  );
  return watchScrypt().mockImplementation(((
    ...[password, salt, length, options, done]: Required<Parameters<typeof scrypt>>
  ) => scrypt(password, salt, length, quick(options), done)) as typeof scrypt);
}

function spied<Name extends 'scrypt' | 'scryptSync'>(name: Name) {
  const spy = vi.spyOn(crypto, name);
  syncBuiltinESMExports();
  onTestFinished(() => {
    spy.mockRestore();
    syncBuiltinESMExports();
  });
  return spy;
}
