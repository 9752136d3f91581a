/**
 * A copy of a text of ASCII. V8 slices keep the whole parent string alive, which may be large or a secret:
 * copy a slice that is stored.
 */
export function copyText(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}
