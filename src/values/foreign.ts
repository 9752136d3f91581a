import { MAX_FOREIGN_LENGTH, MIN_FOREIGN_LENGTH } from '../bounds.ts';
import { invalidOptions } from '../errors.ts';
import { ID_LENGTH } from '../token/id.ts';
import { isFormatName, type TokenId, type TokenRecord } from '../token/record.ts';
import { ALPHABET, type PresentedValue } from './format.ts';
import { sha256 } from './hmac.ts';

/** The values of another system, for the option `foreign` of a service; see {@link formats}. */
export interface ForeignFormat {
  /** The `format` of imported tokens: 1 to 32 of `a-z`, `0-9` and `-`. */
  readonly name: string;
  /** The text that all its values begin with, if there is one. */
  readonly start?: string | undefined;
  /**
   * The part of a value whose SHA-256 the other system has stored; `undefined` if the text is not a value
   * of this format. Is called with 16 to 512 characters of visible ASCII.
   */
  readonly hashedPart: (value: string) => string | undefined;
  /**
   * A regular expression that finds its values in a text, with one group around what may be shown, such as
   * `(acme_)[0-9a-f]{32}`. For {@link redactor}. @default only values that are a word of their own
   */
  readonly inText?: string | undefined;
}

/** The options of a format whose values have a prefix. */
export interface PrefixedFormat {
  /** The text before the `_` that ends the prefix, such as `acme` or `acme_live`. */
  readonly prefix: string;
}

/** The members of a record that belong to an imported value. */
export type ImportedValue = Pick<TokenRecord, 'id' | 'prefix' | 'kid' | 'digest' | 'format'>;

const DIGEST_BYTES = 32;
/** Not the kid of any key, because those are letters and digits. */
const NO_KEY = '--';

/**
 * The formats of values that can be imported, each with the facts of its own system. A value that does not
 * begin with your own prefix is tried with the formats that you pass as `foreign`, in that order. The
 * first format that matches says which part of the value is hashed.
 *
 * A value that matches costs a read of the store, because a pattern proves nothing.
 *
 * @example
 * const foreign = [formats.sanctum(), formats.prefixedApiKey({ prefix: 'old' })];
 * const tokens = new TokenService({ store, keys, prefix: 'acme', foreign });
 */
export const formats = /* @__PURE__ */ Object.freeze({
  /** Laravel Sanctum: `12|` and 40 letters and digits, the newer ones with a checksum of 8. */
  sanctum({ prefix = '' }: { readonly prefix?: string | undefined } = {}): ForeignFormat {
    const start = checkStart(prefix, 'sanctum');
    return Object.freeze({
      name: 'sanctum',
      // In an address, the bar is encoded.
      inText: String.raw`((?:\||%7C)${escaped(start)})[0-9A-Za-z]{40,48}`,
      hashedPart(value: string) {
        const [, token = value] = /^[0-9A-Za-z-]{1,36}\|(.*)$/.exec(value) ?? [];
        const rest = restOf(token, start);
        const match = /^([0-9A-Za-z]{40})([0-9a-f]{8})?$/.exec(rest ?? '');
        if (match === null) return undefined;
        const [, entropy = '', checksum] = match;
        // The CRC-32 covers only the random part.
        const isRight = checksum === undefined || crc32(entropy) === Number.parseInt(checksum, 16);
        return isRight ? token : undefined;
      },
    });
  },
  /** API keys of better-auth: a prefix if you have set one, and 64 letters. */
  betterAuth({
    prefix = '',
    length = 64,
  }: {
    readonly prefix?: string | undefined;
    readonly length?: number | undefined;
  } = {}): ForeignFormat {
    const letters = lengthOf(length);
    const start = checkStart(prefix, 'betterAuth');
    const partOf = (value: string, rest: string) =>
      rest.length === letters && /^[A-Za-z]+$/.test(rest) ? value : undefined;
    return formatWithStart('better-auth', start, `[A-Za-z]{${letters}}`, partOf);
  },
  /** Unkey: a prefix, `_` and base58. */
  unkey({ prefix }: PrefixedFormat): ForeignFormat {
    const start = `${checkStart(prefix, 'unkey')}_`;
    return formatWithStart('unkey', start, '[1-9A-HJ-NP-Za-km-z]{10,360}', (value, rest) =>
      /^[1-9A-HJ-NP-Za-km-z]{10,360}$/.test(rest) ? value : undefined,
    );
  },
  /** The package `prefixed-api-key`: a prefix, a short part and a long one, which alone is hashed. */
  prefixedApiKey({ prefix }: PrefixedFormat): ForeignFormat {
    const start = `${checkStart(prefix, 'prefixedApiKey')}_`;
    return formatWithStart(
      'prefixed-api-key',
      start,
      // Only the usual lengths: a search for all lengths would not take linear time. The others are found as words.
      '[0-9A-Za-z]{8}_[0-9A-Za-z]{24}',
      (_, rest) => /^[0-9A-Za-z]{1,64}_([0-9A-Za-z]{16,64})$/.exec(rest)?.[1],
    );
  },
  /**
   * Any other values whose SHA-256 is stored. The pattern must match a whole value, without the flags `g`
   * and `y`. If it has a group, only the first group was hashed. The pattern must not backtrack, because
   * anybody can send texts that it does not match.
   */
  sha256({
    pattern,
    name = 'sha256',
  }: {
    readonly pattern: RegExp;
    readonly name?: string | undefined;
  }): ForeignFormat {
    if (!(pattern instanceof RegExp) || pattern.global || pattern.sticky) {
      throw invalidOptions(
        'formats.sha256 takes { pattern }, a regular expression for a whole value, without the flags g and y',
      );
    }
    return Object.freeze({
      name,
      hashedPart(value: string) {
        const match = pattern.exec(value);
        return match?.[0] === value ? (match[1] ?? value) : undefined;
      },
    });
  },
});

/**
 * A format whose values have a fixed start.
 *
 * @param rest a pattern that finds the text after the start
 * @param partOfRest returns the hashed part of a value; `undefined` if the text after its start does not
 * fit
 */
function formatWithStart(
  name: string,
  start: string,
  rest: string,
  partOfRest: (value: string, rest: string) => string | undefined,
): ForeignFormat {
  return Object.freeze({
    name,
    // Without a start, any long word would look like one.
    ...(start !== '' && { start, inText: `(${escaped(start)})${rest}` }),
    hashedPart(value: string) {
      const after = restOf(value, start);
      return after === undefined ? undefined : partOfRest(value, after);
    },
  });
}

/** The dot is the only character of a start that is special in a regular expression. */
function escaped(start: string): string {
  return start.replaceAll('.', '[.]');
}

function restOf(value: string, start: string): string | undefined {
  return value.startsWith(start) ? value.slice(start.length) : undefined;
}

function checkStart(text: unknown, format: string): string {
  if (text === '' && ['sanctum', 'betterAuth'].includes(format)) return '';
  if (typeof text === 'string' && /^[0-9A-Za-z_.-]{1,64}$/.test(text)) return text;
  throw invalidOptions(
    `formats.${format} takes a prefix of 1 to 64 letters, digits, "_", "." and "-"`,
  );
}

function lengthOf(length: unknown): number {
  const isLength = Number.isInteger(length) && (length as number) >= MIN_FOREIGN_LENGTH;
  if (isLength && (length as number) <= MAX_FOREIGN_LENGTH) return length as number;
  throw invalidOptions(
    `length must be a whole number from ${MIN_FOREIGN_LENGTH} to ${MAX_FOREIGN_LENGTH}`,
  );
}

/**
 * Checks the formats of a service with a prefix.
 *
 * @throws {TokenError} `invalid_options`
 */
export function checkFormats(
  given: readonly ForeignFormat[],
  prefix: string,
): readonly ForeignFormat[] {
  const names = new Set<string>();
  for (const [index, { name, start, hashedPart }] of given.entries()) {
    if (!isFormatName(name) || typeof hashedPart !== 'function') {
      throw invalidOptions(`foreign[${index}] must be a format, such as formats.sanctum()`);
    }
    if (names.has(name)) throw invalidOptions(`foreign has two formats with the name ${name}`);
    names.add(name);
    if (start?.startsWith(`${prefix}_`) === true) {
      throw invalidOptions(
        `foreign[${index}] has values that begin with ${prefix}_, as those of this service: choose another prefix for the new ones`,
      );
    }
  }
  return [...given];
}

/** Reads a value of another system; `undefined` if no format fits. Never throws. */
export function readForeign(
  given: readonly ForeignFormat[],
  value: string,
): PresentedValue | undefined {
  for (const format of given) {
    const part = partOf(format, value);
    if (part === undefined) continue;
    const digest = Buffer.from(sha256(part), 'latin1');
    return presentedOf(digest);
  }
  return undefined;
}

/**
 * The part of a value that a format hashes; `undefined` if it does not accept the value. The format may be
 * one of the host's own. Never throws.
 */
export function partOf({ hashedPart }: ForeignFormat, value: string): string | undefined {
  const { length } = value;
  if (length < MIN_FOREIGN_LENGTH || length > MAX_FOREIGN_LENGTH) return undefined;
  if (!/^[!-~]+$/.test(value)) return undefined;
  try {
    const part = hashedPart(value);
    return typeof part === 'string' && part !== '' ? part : undefined;
  } catch {
    return undefined;
  }
}

/** The members of a record for a value with this SHA-256. None of them can be presented as a value. */
export function importedValue(digest: Uint8Array, format: string): ImportedValue {
  return { ...presentedOf(digest), prefix: format, kid: NO_KEY, format };
}

function presentedOf(digest: Uint8Array): PresentedValue {
  const id = idOf(digest);
  return { id, digest: hashed(`tokenwright/v1/foreign\0${id}`, digest) };
}

/**
 * The id of an imported value: the first 22 of the 43 characters of the base62 of SHA-256 over a label
 * and the digest. So a value is found without an index.
 */
function idOf(digest: Uint8Array): TokenId {
  const base = BigInt(ALPHABET.length);
  const whole = BigInt(`0x${hashed('tokenwright/v1/import\0', digest).toString('hex')}`);
  let rest = whole / base ** 21n;
  let id = '';
  for (let place = 0; place < ID_LENGTH; place += 1) {
    id = ALPHABET.charAt(Number(rest % base)) + id;
    rest /= base;
  }
  return id as TokenId;
}

function hashed(label: string, digest: Uint8Array): Buffer {
  return Buffer.from(sha256(Buffer.concat([Buffer.from(label, 'latin1'), digest])), 'latin1');
}

/**
 * Reads the digest that another system has stored of a value: SHA-256 as bytes, or in hex, base64 or
 * base64url.
 *
 * @returns the bytes, or a message that says what is wrong
 */
export function readDigest(stored: unknown): Uint8Array | string {
  if (stored instanceof Uint8Array) {
    // A copy, because a subclass may say another length, and its owner may change the bytes.
    const bytes = new Uint8Array(stored);
    if (bytes.length === DIGEST_BYTES) return bytes;
  }
  const rule = 'digest must be a SHA-256: 32 bytes, or their hex, base64 or base64url';
  if (typeof stored !== 'string') return rule;
  if (/^[0-9A-Fa-f]{64}$/.test(stored)) return Buffer.from(stored, 'hex');
  if (/^[\w+/-]{43}=?$/.test(stored)) {
    const bytes = Buffer.from(stored, 'base64');
    const isCanonical = bytes.toString('base64url') === base64urlOf(stored);
    if (bytes.length === DIGEST_BYTES && isCanonical) return bytes;
  }
  const slow = SLOW_HASHES.find(([, form]) => form.test(stored));
  if (slow === undefined) return rule;
  return `${rule}; this looks like ${slow[0]}, whose hashes have a salt each: a presented value could only be found by trying every row, so its owner needs a new token`;
}

function base64urlOf(text: string): string {
  return text.replace('=', '').replaceAll('+', '-').replaceAll('/', '_');
}

const SLOW_HASHES: readonly (readonly [string, RegExp])[] = [
  ['bcrypt', /^\$2[abxy]?\$/],
  ['argon2', /^\$argon2/],
  ['scrypt', /^(?:\$scrypt|\$7\$|scrypt[:$])/],
  ['PBKDF2', /^(?:\$pbkdf2|pbkdf2[_:$])/i],
  ['a salted hash', /^[0-9A-Za-z+/=_-]{8,}[:.$][0-9A-Za-z+/=_-]{16,}$/],
];

/** CRC-32, as PHP's `crc32b`. Slow, so for short texts only; not every runtime has it in `node:zlib`. */
function crc32(text: string): number {
  let crc = 0xffffffff;
  for (const byte of Buffer.from(text, 'latin1')) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}
