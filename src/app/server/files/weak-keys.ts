import type { KeyOptions } from '../../../values/keys.ts';

/** Names the keys whose secrets do not look random, and the fix. Never shows a secret. */
export function weakKeys(keys: readonly KeyOptions[]): string[] {
  return keys
    .filter(({ secret }) => typeof secret !== 'string' || !looksRandom(secret))
    .map(
      ({ kid }) =>
        `the secret of ${kid} does not look like random bytes: add a key with keys rotate, then drop this one`,
    );
}

/**
 * Whether a secret could consist of random bytes. 32 random bytes practically never hold fewer than
 * 16 different ones, and their base64url practically always holds an upper-case letter. Hexadecimal
 * secrets have no such letter and are accepted.
 */
function looksRandom(secret: string): boolean {
  const text = secret.replace(/^tag\./, '');
  const bytes = Buffer.from(text, 'base64url');
  const isText = /^[\t\n\r -~]+$/.test(bytes.toString('latin1'));
  const isWords = !/[A-Z]/.test(text) && !/^[0-9a-f]+$/.test(text);
  const different = new Set(bytes).size;
  return different >= 16 && !isText && !isWords;
}
