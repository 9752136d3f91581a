import type * as nodeCrypto from 'node:crypto';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { onTestFinished, vi } from 'vitest';

/** Records all calls of scrypt until the test ends. */
export function watchScrypt() {
  const crypto = createRequire(import.meta.url)('node:crypto') as typeof nodeCrypto;
  const scrypt = vi.spyOn(crypto, 'scrypt');
  syncBuiltinESMExports();
  onTestFinished(() => {
    scrypt.mockRestore();
    syncBuiltinESMExports();
  });
  return scrypt;
}
