import { isPending, type TokenRecord } from '../../token/record.ts';

/** A value that waits for its first use. */
export type Pending = NonNullable<TokenRecord['pending']>;

/** A pending value as one text, as stores keep it: JSON with its bytes in base64url. */
export function pendingText(pending: Pending | undefined): string | undefined {
  if (pending === undefined) return undefined;
  const { prefix, kid, digest, box, graceSeconds } = pending;
  return JSON.stringify({
    prefix,
    kid,
    digest: base64url(digest),
    box: box && base64url(box),
    graceSeconds,
  });
}

/** Reads the text of a pending value; undefined if it is malformed. */
export function readPending(text: string): Pending | undefined {
  try {
    const { prefix, kid, digest, box, graceSeconds } = JSON.parse(text);
    const pending: unknown = {
      prefix,
      kid,
      digest: bytesIn(digest),
      ...(box !== undefined && { box: bytesIn(box) }),
      graceSeconds,
    };
    // A text of another form would lose something when the record is written again.
    return isPending(pending) && pendingText(pending) === text ? pending : undefined;
  } catch {
    return undefined;
  }
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url');
}

function bytesIn(text: unknown): Uint8Array {
  return new Uint8Array(Buffer.from(String(text), 'base64url'));
}
