import * as crypto from 'node:crypto';
import { customRandom } from 'nanoid';
import { TokenError } from './errors.ts';
import { type Key, type KeyRing, sha256 } from './keys.ts';
import type { TokenId, TokenRecord } from './token.ts';

/** A value that was presented and is well-formed: whom it claims to be, and the proof. */
export interface PresentedValue {
  readonly id: TokenId;
  /** To be compared with the record's; the secret itself stays here. */
  readonly digest: Uint8Array;
  /** The record in memory whose current value this proved to be, so that it need not prove it again. */
  proven?: TokenRecord;
}

/** A new value, and what a record keeps of it. */
export interface MintedValue {
  /** For the owner, once. */
  readonly value: string;
  readonly kept: Pick<TokenRecord, 'prefix' | 'kid' | 'digest' | 'box'>;
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const VERSION = '1';
const ID_LENGTH = 22;
const SECRET_LENGTH = 27;
const TAG_LENGTH = 6;
const BODY_LENGTH = 58;
const MASKED_ID_LENGTH = 6;

const ID_START = 3;
const SECRET_START = ID_START + ID_LENGTH;
const TAG_START = SECRET_START + SECRET_LENGTH;

const drawId = customRandom(ALPHABET, ID_LENGTH, drawBytes);
const drawSecret = customRandom(ALPHABET, SECRET_LENGTH, drawBytes);

const POOL_BYTES = 4096;
const pool = /* @__PURE__ */ new Uint8Array(POOL_BYTES);
let drawn = POOL_BYTES;

/**
 * Random bytes, from a pool: to ask for a few is the greater part of what a token costs. They are
 * wiped in it as they are taken out, so that it knows nothing of a secret that was drawn.
 */
function drawBytes(count: number): Uint8Array {
  if (drawn + count > POOL_BYTES) {
    crypto.randomFillSync(pool);
    drawn = 0;
  }
  const bytes = pool.slice(drawn, drawn + count);
  pool.fill(0, drawn, drawn + count);
  drawn += count;
  return bytes;
}

/** Draws a new id: 131 random bits. */
export function newId(): TokenId {
  return drawId() as TokenId;
}

/** Reads an id; `undefined` when the text is none. */
export function readId(text: unknown): TokenId | undefined {
  const isId = typeof text === 'string' && text.length === ID_LENGTH && isAlphanumeric(text, 0);
  return isId ? (text as TokenId) : undefined;
}

/**
 * Makes the value of a token, with a new secret of 160 random bits.
 *
 * @param owner whom the token belongs to, where the secret is to be kept sealed; then only a record
 * with this id and account opens it
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
    kept: {
      prefix,
      kid,
      digest: new Uint8Array(digestOf(id + secret)),
      ...(box !== undefined && { box }),
    },
  };
}

const REMEMBERED = 5000;

/** A value that was read, with the SHA-256 of the whole, which opens nothing. */
interface Remembered {
  readonly hash: string;
  readonly presented: PresentedValue;
}

/**
 * Reads values, and knows those again that it has read before: it looks where the tag leads, and
 * compares the SHA-256 of the whole. One hash then does the work of three, and what nobody made
 * costs no more than without it. It says nothing of the token: that is for the record to say.
 */
export class ValueReader {
  readonly #ring: KeyRing;
  readonly #prefix: string;
  readonly #length: number;
  /** What was read of late, and what before that: when the one is full, it becomes the other. */
  #recent = new Map<number, Remembered>();
  #former = new Map<number, Remembered>();

  constructor(ring: KeyRing, prefix: string) {
    this.#ring = ring;
    this.#prefix = prefix;
    this.#length = prefix.length + 1 + BODY_LENGTH;
  }

  /** As {@link readValue}. */
  read(value: unknown): PresentedValue | undefined {
    if (typeof value !== 'string' || value.length !== this.#length) return undefined;
    const place = placeOf(value);
    const recent = this.#recent.get(place);
    const known = recent ?? this.#former.get(place);
    if (known !== undefined && known.hash === sha256(value)) {
      if (recent === undefined) this.#remember(place, known);
      return known.presented;
    }
    const presented = readValue(this.#ring, this.#prefix, value);
    if (presented !== undefined) this.#remember(place, { hash: sha256(value), presented });
    return presented;
  }

  #remember(place: number, read: Remembered): void {
    if (this.#recent.size === REMEMBERED) {
      this.#former = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(place, read);
  }
}

/** By the tag. A number, as a text that was cut out of a value may hold on to the whole. */
function placeOf(value: string): number {
  let place = 0;
  for (let i = value.length - TAG_LENGTH; i < value.length; i++) {
    place = (Math.imul(place, ALPHABET.length) + value.charCodeAt(i)) | 0;
  }
  return place;
}

/**
 * Reads what a bearer presents, without a look at the store: type, length, prefix, alphabet,
 * version, key and tag, in that order. Constant work, and no exception, whatever it is given.
 */
export function readValue(
  ring: KeyRing,
  prefix: string,
  value: unknown,
): PresentedValue | undefined {
  const start = prefix.length + 1;
  if (typeof value !== 'string' || value.length !== start + BODY_LENGTH) return undefined;
  if (!value.startsWith(prefix) || value[prefix.length] !== '_') return undefined;
  if (!isAlphanumeric(value, start) || value[start] !== VERSION) return undefined;
  const key = ring.get(value.slice(start + 1, start + ID_START));
  if (key === undefined || !hasTag(key, value, start + TAG_START)) return undefined;
  const claim = value.slice(start + ID_START, start + TAG_START);
  return { id: alone(claim.slice(0, ID_LENGTH)) as TokenId, digest: digestOf(claim) };
}

/** Whether a presented value proves to be a record's current one, in constant time. */
export function isCurrentValue(presented: PresentedValue, record: TokenRecord): boolean {
  return presented.proven === record || crypto.timingSafeEqual(presented.digest, record.digest);
}

/** Whether a presented value proves to be the one before a record's last rotation, in constant time. */
export function isPreviousValue(
  presented: PresentedValue,
  { previousDigest }: TokenRecord,
): boolean {
  return previousDigest !== undefined && crypto.timingSafeEqual(presented.digest, previousDigest);
}

/** The value of a record whose secret is kept sealed; `undefined` where it cannot be known. */
export function revealValue(ring: KeyRing, record: TokenRecord): string | undefined {
  const { box, kid, id, account, prefix } = record;
  const key = ring.get(kid);
  if (box === undefined || key === undefined) return undefined;
  const secret = key.open(box, boundTo(kid, id, account));
  return secret === undefined ? undefined : assemble(key, prefix, id, secret);
}

/** A value as people may see it: prefix, version, key and six characters of the id. */
export function maskValue({ prefix, kid, id }: Pick<TokenRecord, 'prefix' | 'kid' | 'id'>): string {
  return `${prefix}_${VERSION}${kid}${id.slice(0, MASKED_ID_LENGTH)}…`;
}

const VALUE_IN_TEXT = /([a-z0-9]_1[0-9A-Za-z]{8})[0-9A-Za-z]{49}/g;

/**
 * Masks whatever has the form of a value, of any prefix, wherever it stands in a text: what is shown
 * of it is the prefix, the key and six characters of the id. For log lines and messages of errors.
 *
 * Says nothing about whether the value is real. One that is glued to other letters or digits is
 * masked all the same; one that is cut short, or encoded otherwise than by its own characters, is
 * not noticed. Linear in the length of the text; anything but a text becomes the empty one.
 *
 * @example
 * redact(`GET /token/${token.value}`); // 'GET /token/acme_1k1V3xQpL…'
 */
export function redact(text: string): string {
  return typeof text === 'string' ? text.replace(VALUE_IN_TEXT, '$1…') : '';
}

/**
 * Checks a prefix: the host's own, and no other vendor's, whose scanners would take our values for
 * theirs.
 *
 * @throws {TokenError} `invalid_options`
 */
export function checkPrefix(prefix: unknown): string {
  if (typeof prefix !== 'string' || !/^[a-z][a-z0-9]{1,15}(?:_[a-z0-9]{1,8})?$/.test(prefix)) {
    throw new TokenError(
      'invalid_options',
      'prefix must be 2 to 16 of a-z and 0-9, a letter first, then at most one "_" with 1 to 8 more, like "acme" or "acme_live"',
    );
  }
  if (!FOREIGN_PREFIXES.has(prefix)) return prefix;
  throw new TokenError(
    'invalid_options',
    'prefix must be your own: this one marks the tokens of another vendor',
  );
}

/** As documented by the vendors' own secret formats. */
const FOREIGN_PREFIXES: ReadonlySet<string> = new Set([
  ...['ghp', 'gho', 'ghu', 'ghs', 'ghr', 'github_pat', 'glpat', 'gldt', 'glrt', 'glptt', 'gloas'],
  ...[
    'sk_live',
    'sk_test',
    'pk_live',
    'pk_test',
    'rk_live',
    'rk_test',
    'whsec',
    'sk_ant',
    'sk_proj',
  ],
  ...['xoxb', 'xoxp', 'xoxa', 'xoxr', 'xoxs', 'xapp', 'npm', 'pypi', 'rubygems', 'dckr_pat', 'hf'],
  ...[
    'shpat',
    'shpca',
    'shppa',
    'shpss',
    'dop_v1',
    'doo_v1',
    'dor_v1',
    'sqp',
    'sqa',
    'nfp',
    'lin_api',
  ],
  ...[
    'atlasv1',
    'hvs',
    'hvb',
    'hvr',
    'pscale_tkn',
    'pscale_pw',
    'pscale_oauth',
    'figd',
    'glc',
    'glsa',
  ],
]);

function assemble(key: Key, prefix: string, id: TokenId, secret: string): string {
  const untagged = `${prefix}_${VERSION}${key.kid}${id}${secret}`;
  return untagged + base62(key.tag(untagged));
}

/** Compares all six characters, whatever the first ones say. */
function hasTag(key: Key, value: string, tagStart: number): boolean {
  let rest = key.tag(value, tagStart);
  let difference = 0;
  for (let i = TAG_LENGTH - 1; i >= 0; i--) {
    difference |= value.charCodeAt(tagStart + i) ^ ALPHABET.charCodeAt(rest % ALPHABET.length);
    rest = Math.floor(rest / ALPHABET.length);
  }
  return difference === 0;
}

function base62(number: number): string {
  let rest = number;
  let text = '';
  for (let i = 0; i < TAG_LENGTH; i++) {
    text = ALPHABET.charAt(rest % ALPHABET.length) + text;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return text;
}

function digestOf(idAndSecret: string): Uint8Array {
  return Buffer.from(sha256(`tokenwright/v1/verify\0${idAndSecret}`), 'latin1');
}

function boundTo(kid: string, id: TokenId, account: string): string {
  return JSON.stringify([VERSION, kid, id, account]);
}

/** A part of a text holds on to the whole, which here is the secret. */
function alone(part: string): string {
  return Buffer.from(part, 'latin1').toString('latin1');
}

/** By character code: 1 for a letter or digit. */
const ALPHANUMERIC = /* @__PURE__ */ Uint8Array.from({ length: 128 }, (_, unit) =>
  ALPHABET.includes(String.fromCharCode(unit)) ? 1 : 0,
);

function isAlphanumeric(text: string, start: number): boolean {
  for (let i = start; i < text.length; i++) {
    if (ALPHANUMERIC[text.charCodeAt(i)] !== 1) return false;
  }
  return true;
}
