import * as crypto from 'node:crypto';
import { customRandom } from 'nanoid';
import { MAX_FOREIGN_LENGTH } from '../bounds.ts';
import { copyText } from '../text/copy.ts';
import { ID_LENGTH, isId } from '../token/id.ts';
import type { Proof, TokenId, TokenRecord, ValueFault } from '../token/record.ts';
import { checkFormats, type ForeignFormat, readForeign } from './foreign.ts';
import {
  ALPHABET,
  BODY_LENGTH,
  CHECKSUM_LENGTH,
  CHECKSUM_START,
  ID_START,
  KID_LENGTH,
  MASKED_ID_LENGTH,
  type PresentedValue,
  SECRET_LENGTH,
  VERSION,
} from './format.ts';
import { sha256 } from './hmac.ts';
import { type Key, type KeyRing, SEAL_BYTES } from './keys.ts';
import { isPrefix, MAX_PREFIX_LENGTH } from './prefix.ts';
import { redactor } from './redact.ts';

/** Values in each of the two generations that a service remembers, so as not to check their tag again. @bound */
export const MAX_REMEMBERED_VALUES = 5000;

export type { PresentedValue };

/** A new value, and the members of a record that belong to it. */
export interface MintedValue {
  /** For the owner, once. */
  readonly value: string;
  readonly stored: Pick<TokenRecord, 'prefix' | 'kid' | 'digest' | 'box'>;
}

const drawId = customRandom(ALPHABET, ID_LENGTH, drawBytes);
export const drawSecret: () => string = customRandom(ALPHABET, SECRET_LENGTH, drawBytes);

const POOL_BYTES = 4096;
const pool = /* @__PURE__ */ new Uint8Array(POOL_BYTES);
let taken = POOL_BYTES;

/**
 * Random bytes from a pool: calling the generator for a few bytes is most of the cost of a token. Bytes
 * are wiped from the pool when they are taken, so that it never holds a secret that is in use.
 */
export function drawBytes(count: number): Uint8Array {
  if (taken + count > POOL_BYTES) {
    crypto.randomFillSync(pool);
    taken = 0;
  }
  const bytes = pool.slice(taken, taken + count);
  pool.fill(0, taken, taken + count);
  taken += count;
  return bytes;
}

/** Draws a new id: 131 random bits. */
export function newId(): TokenId {
  return drawId() as TokenId;
}

/** Reads an id; `undefined` if the text is not one. */
export function readId(text: unknown): TokenId | undefined {
  return isId(text) ? text : undefined;
}

/**
 * Makes the value of a token, with a new secret of 160 random bits.
 *
 * @param owner the account, if the secret is to be sealed into the record; only a record with this id
 * and account opens it
 */
export function mintValue(
  ring: KeyRing,
  prefix: string,
  id: TokenId,
  owner: string | undefined,
): MintedValue {
  const { active } = ring;
  const { kid } = active;
  const secret = drawSecret();
  const box = owner === undefined ? undefined : active.seal(secret, boundTo(kid, id, owner));
  return {
    value: assemble(active, prefix, id, secret),
    stored: {
      prefix,
      kid,
      digest: digestOf(id + secret),
      ...(box !== undefined && { box }),
    },
  };
}

/** The options of {@link Values}. */
export interface ValueOptions {
  readonly reveal: 'once' | 'always';
  /** The values of other systems that are read as well. */
  readonly foreign?: readonly ForeignFormat[] | undefined;
}

/**
 * The values of a service: mints them, and reads them again.
 *
 * Recognizes a value that it has read before by the SHA-256 of the whole: one hash instead of three. A
 * forged value costs no more than without this cache. Only a record can prove what a value opens.
 */
export class Values {
  readonly ring: KeyRing;
  /** Whether secrets are sealed into records, and values shown again. */
  readonly isRevealing: boolean;
  /** The prefix of all values of the service. */
  readonly prefix: string;
  readonly #length: number;
  readonly #foreign: readonly ForeignFormat[];
  readonly #mask: (text: string) => string;
  readonly #own = new RememberedValues();
  /** Apart from our own: anybody can send texts that look foreign, and they must not evict ours. */
  readonly #others = new RememberedValues();

  /** @throws {TokenError} `invalid_options` for formats that cannot be told from one another */
  constructor(ring: KeyRing, prefix: string, { reveal, foreign = [] }: ValueOptions) {
    this.#foreign = checkFormats(foreign, prefix);
    this.#mask = redactor(this.#foreign);
    this.ring = ring;
    this.isRevealing = reveal === 'always';
    this.prefix = prefix;
    this.#length = prefix.length + 1 + BODY_LENGTH;
  }

  /** The names of the foreign formats. */
  get formats(): readonly string[] {
    return this.#foreign.map(({ name }) => name);
  }

  /** Makes a value for a token; see {@link mintValue}. */
  mint(id: TokenId, account: string): MintedValue {
    return mintValue(this.ring, this.prefix, id, this.isRevealing ? account : undefined);
  }

  /** The value of a token, if it may be shown again; see {@link revealValue}. */
  reveal(record: TokenRecord): string | undefined {
    return this.isRevealing ? revealValue(this.ring, record) : undefined;
  }

  /** Reads a value, or says why it is not one; see {@link readValue}. */
  read(value: unknown): PresentedValue | ValueFault {
    if (typeof value !== 'string') return 'not_a_string';
    if (value.length !== this.#length) return this.#readForeign(value) ?? formFault(value);
    const known = this.#own.get(value);
    if (known !== undefined) return known;
    const presented = readValue(this.ring, this.prefix, value);
    if (typeof presented === 'string') return this.#readForeign(value) ?? presented;
    this.#own.add(value, presented);
    return presented;
  }

  /** The id in a value; `undefined` if it is not one. */
  idIn(value: unknown): TokenId | undefined {
    const presented = this.read(value);
    return typeof presented === 'string' ? undefined : presented.id;
  }

  /** Whether a text is a foreign value, or holds what looks like a value. */
  readonly holdsValue = (text: string): boolean =>
    this.#mask(text) !== text || readForeign(this.#foreign, text) !== undefined;

  /** A value with our own prefix is never read by a foreign format. */
  #readForeign(value: string): PresentedValue | undefined {
    if (this.#foreign.length === 0 || value.length > MAX_FOREIGN_LENGTH) return undefined;
    if (value.startsWith(`${this.prefix}_`)) return undefined;
    const known = this.#others.get(value);
    if (known !== undefined) return known;
    const presented = readForeign(this.#foreign, value);
    if (presented !== undefined) this.#others.add(value, presented);
    return presented;
  }
}

/**
 * Reads a presented value without asking the store: checks type, length, prefix, alphabet, version,
 * key and checksum, in that order. Says which of them is wrong. Constant work; never throws.
 */
export function readValue(
  ring: KeyRing,
  prefix: string,
  value: unknown,
): PresentedValue | ValueFault {
  const start = prefix.length + 1;
  if (typeof value !== 'string') return 'not_a_string';
  if (value.length !== start + BODY_LENGTH) return formFault(value);
  if (!value.startsWith(prefix) || value[prefix.length] !== '_') return formFault(value);
  if (!isAlphanumeric(value, start) || value[start] !== VERSION) return formFault(value);
  const key = ring.get(value.slice(start + 1, start + ID_START));
  if (key === undefined) return 'unknown_key';
  if (!hasChecksum(key, value, start + CHECKSUM_START)) return 'bad_tag';
  const claim = value.slice(start + ID_START, start + CHECKSUM_START);
  return { id: copyText(claim.slice(0, ID_LENGTH)) as TokenId, digest: digestOf(claim) };
}

/** The longest text that is a value with some prefix. */
const MAX_VALUE_LENGTH = MAX_PREFIX_LENGTH + 1 + BODY_LENGTH;

/** Says what a text looks like that does not have the form of a value of the service. Never {@link readValue}'s work: no key is asked. */
function formFault(text: string): ValueFault {
  if (text === '') return 'empty';
  if (isId(text)) return 'is_id';
  if (/^bearer\s/i.test(text.slice(0, 7))) return 'begins_with_bearer';
  const start = text.length - BODY_LENGTH;
  const isLikeOurs =
    text.length <= MAX_VALUE_LENGTH &&
    isPrefix(text.slice(0, Math.max(0, start - 1))) &&
    text[start - 1] === '_' &&
    text[start] === VERSION &&
    isAlphanumeric(text, start);
  return isLikeOurs ? 'other_prefix' : 'other_form';
}

/**
 * How a presented value belongs to a record, or `undefined` if it does not. Compares in constant time.
 * Does not check the grace period of a previous value.
 */
export function proofOf(
  { digest }: PresentedValue,
  record: Pick<TokenRecord, 'digest' | 'previousDigest' | 'pending'>,
): Proof | undefined {
  if (crypto.timingSafeEqual(digest, record.digest)) return 'current';
  const { pending, previousDigest } = record;
  if (pending !== undefined && crypto.timingSafeEqual(digest, pending.digest)) return 'pending';
  const isPrevious = previousDigest !== undefined && crypto.timingSafeEqual(digest, previousDigest);
  return isPrevious ? 'previous' : undefined;
}

/** The value of a record whose secret is sealed; `undefined` if there is none, or no key opens it. */
export function revealValue(ring: KeyRing, record: TokenRecord): string | undefined {
  const key = ring.get(record.kid);
  const secret = key && openSecret(ring, record, record);
  return secret && assemble(key, record.prefix, record.id, secret);
}

/** A sealed secret, with the key of its value. */
type Sealed = Pick<TokenRecord, 'kid' | 'box'>;
type Owner = Pick<TokenRecord, 'id' | 'account'>;

/**
 * The length of a box that begins with the id of its key. Any other box was sealed with the value's key.
 */
const MARKED_BOX_BYTES = KID_LENGTH + SEAL_BYTES + SECRET_LENGTH;

/** The id of the key that sealed a secret; `undefined` if none is sealed. */
export function sealingKid({ kid, box }: Sealed): string | undefined {
  if (box === undefined) return undefined;
  if (box.length !== MARKED_BOX_BYTES) return kid;
  return Buffer.from(box.subarray(0, KID_LENGTH)).toString('latin1');
}

function openSecret(ring: KeyRing, sealed: Sealed, { id, account }: Owner): string | undefined {
  const { kid, box } = sealed;
  const isMarked = box?.length === MARKED_BOX_BYTES;
  const key = ring.get(sealingKid(sealed) ?? '');
  return box && key?.open(isMarked ? box.subarray(KID_LENGTH) : box, boundTo(kid, id, account));
}

/**
 * Seals a secret with the active key.
 *
 * @returns the new box; `undefined` if there is nothing to do; `unreadable` if none of the keys opens it
 */
export function resealedBox(
  ring: KeyRing,
  sealed: Sealed,
  owner: Owner,
): Uint8Array | 'unreadable' | undefined {
  const { active } = ring;
  if (sealed.box === undefined || sealingKid(sealed) === active.kid) return undefined;
  const secret = openSecret(ring, sealed, owner);
  if (secret === undefined) return 'unreadable';
  const box = active.seal(secret, boundTo(sealed.kid, owner.id, owner.account));
  return new Uint8Array(Buffer.concat([Buffer.from(active.kid, 'latin1'), box]));
}

/**
 * A value for display: prefix, version, key and six characters of the id. For an imported value, the
 * format and those characters.
 */
export function maskValue({
  prefix,
  kid,
  id,
  format,
}: Pick<TokenRecord, 'prefix' | 'kid' | 'id' | 'format'>): string {
  if (format !== undefined) return `${format}:${id.slice(0, MASKED_ID_LENGTH)}…`;
  return `${prefix}_${VERSION}${kid}${id.slice(0, MASKED_ID_LENGTH)}…`;
}

function assemble(key: Key, prefix: string, id: TokenId, secret: string): string {
  const body = `${prefix}_${VERSION}${key.kid}${id}${secret}`;
  return body + base62(key.checksum(body));
}

/** Compares all six characters, even after a difference, so that the time reveals nothing. */
export function hasChecksum(key: Key, value: string, start: number): boolean {
  let rest = key.checksum(value, start);
  let difference = 0;
  for (let i = CHECKSUM_LENGTH - 1; i >= 0; i--) {
    difference |= value.charCodeAt(start + i) ^ ALPHABET.charCodeAt(rest % ALPHABET.length);
    rest = Math.floor(rest / ALPHABET.length);
  }
  return difference === 0;
}

export function base62(number: number): string {
  let rest = number;
  let text = '';
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    text = ALPHABET.charAt(rest % ALPHABET.length) + text;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return text;
}

/** A copy of its own: a small Buffer would keep the pool alive that it was cut from. */
function digestOf(idAndSecret: string): Uint8Array {
  return new Uint8Array(Buffer.from(sha256(`tokenwright/v1/verify\0${idAndSecret}`), 'latin1'));
}

function boundTo(kid: string, id: TokenId, account: string): string {
  return JSON.stringify([VERSION, kid, id, account]);
}

/** By character code: 1 for a letter or digit. */
const ALPHANUMERIC = /* @__PURE__ */ Uint8Array.from({ length: 128 }, (_, unit) =>
  ALPHABET.includes(String.fromCharCode(unit)) ? 1 : 0,
);

export function isAlphanumeric(text: string, start: number): boolean {
  for (let i = start; i < text.length; i++) {
    if (ALPHANUMERIC[text.charCodeAt(i)] !== 1) return false;
  }
  return true;
}

/** A value that was read before, with its SHA-256, which cannot be presented. */
interface ReadValue {
  readonly hash: string;
  readonly presented: PresentedValue;
}

/**
 * Remembers what values were read as. Recognizes a value by the SHA-256 of the whole. Keeps two
 * generations: when the recent one is full, it replaces the former one.
 */
class RememberedValues {
  #recent = new Map<number, ReadValue>();
  #former = new Map<number, ReadValue>();

  /** The result of reading a value before; `undefined` if it is not remembered. */
  get(value: string): PresentedValue | undefined {
    const slot = slotOf(value);
    const recent = this.#recent.get(slot);
    const known = recent ?? this.#former.get(slot);
    if (known === undefined || known.hash !== sha256(value)) return undefined;
    if (recent === undefined) this.#store(slot, known);
    return known.presented;
  }

  add(value: string, presented: PresentedValue): void {
    this.#store(slotOf(value), { hash: sha256(value), presented });
  }

  #store(slot: number, read: ReadValue): void {
    if (this.#recent.size === MAX_REMEMBERED_VALUES) {
      this.#former = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(slot, read);
  }
}

/** The last characters as a number: V8 slices keep the parent string alive, which here is the secret. */
function slotOf(value: string): number {
  let slot = 0;
  for (let i = value.length - CHECKSUM_LENGTH; i < value.length; i++) {
    slot = (Math.imul(slot, ALPHABET.length) + value.charCodeAt(i)) | 0;
  }
  return slot;
}
