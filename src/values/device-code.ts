import * as crypto from 'node:crypto';
import { ID_LENGTH } from '../token/id.ts';
import { CHECKSUM_LENGTH, SECRET_LENGTH } from './format.ts';
import { sha256 } from './hmac.ts';
import type { KeyRing } from './keys.ts';
import { base62, drawSecret, hasChecksum, isAlphanumeric, newId } from './value.ts';

/**
 * The form of a device code: `<prefix>_d<id><secret><checksum>`. It names no key: any key of the service may
 * have made it, and it lives for minutes.
 */
const MARK = '_d';
const CLAIM_LENGTH = ID_LENGTH + SECRET_LENGTH;

/** A well-formed device code that was presented: the request that it claims, and the proof. */
export interface PresentedCode {
  readonly id: string;
  readonly digest: Uint8Array;
}

/** Makes the device code of a new request, with a secret of 160 random bits. */
export function mintDeviceCode(
  { active }: KeyRing,
  prefix: string,
): PresentedCode & { readonly deviceCode: string } {
  const id = newId();
  const claim = id + drawSecret();
  const body = prefix + MARK + claim;
  return { id, digest: digestOf(claim), deviceCode: body + base62(active.checksum(body)) };
}

/** Reads a device code without asking the store; `undefined` if no key of the service has made it. */
export function readDeviceCode(
  ring: KeyRing,
  prefix: string,
  text: string,
): PresentedCode | undefined {
  const start = prefix.length + MARK.length;
  const end = start + CLAIM_LENGTH;
  if (text.length !== end + CHECKSUM_LENGTH || !text.startsWith(prefix + MARK)) return undefined;
  if (!isAlphanumeric(text, start)) return undefined;
  if (![...ring.all].some((key) => hasChecksum(key, text, end))) return undefined;
  const claim = text.slice(start, end);
  return { id: claim.slice(0, ID_LENGTH), digest: digestOf(claim) };
}

/** Whether a presented code is that of a request. Compares in constant time. */
export function isCodeOf(
  { digest }: PresentedCode,
  request: { readonly digest: Uint8Array },
): boolean {
  return crypto.timingSafeEqual(digest, request.digest);
}

function digestOf(claim: string): Uint8Array {
  return new Uint8Array(Buffer.from(sha256(`tokenwright/v1/device\0${claim}`), 'latin1'));
}
