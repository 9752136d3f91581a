import * as crypto from 'node:crypto';
import { TokenError } from './errors.ts';

/** A key as the host keeps it. */
export interface KeyOptions {
  /** Names the key inside each value made with it: 2 characters of `0-9A-Za-z`. */
  readonly kid: string;
  /** At least 32 random bytes, as bytes or as base64url; or what `verifierKeys()` gave out. */
  readonly secret: Uint8Array | string;
  /** `active`: new values are made with it (exactly one key). `verify`: it only checks older ones. */
  readonly status: 'active' | 'verify';
}

/**
 * Makes a new active key of 32 random bytes. Keep it where secrets are kept, outside the database.
 *
 * @throws {TokenError} `invalid_options` when the kid is not 2 characters of `0-9A-Za-z`
 * @example
 * const key = generateKey(); // { kid: 'k1', secret: '…43 characters…', status: 'active' }
 */
export function generateKey(kid = 'k1'): KeyOptions {
  checkKid(kid, 'kid');
  return {
    kid,
    secret: crypto.randomBytes(32).toString('base64url'),
    status: 'active',
  };
}

const SALT = 'tokenwright/v1';
const MIN_SECRET_BYTES = 32;
const SUBKEY_BYTES = 32;
const VERIFIER_MARK = 'tag.';
const BLOCK_BYTES = 64;
const TAG_MARK = 'tag\0';
const TAGGED_START = BLOCK_BYTES + TAG_MARK.length;
const TAG_BYTES = 4;
const NONCE_BYTES = 12;
const SEAL_TAG_BYTES = 16;

/**
 * The keys of a service: exactly one active one, or, where all can only verify, none.
 *
 * Immutable; shows nothing of a key when inspected or put into JSON.
 */
export class KeyRing {
  readonly #keys = new Map<string, Key>();
  readonly #active: Key | undefined;

  /**
   * @throws {TokenError} `invalid_options`, naming the option and never its value
   */
  constructor(options: readonly KeyOptions[]) {
    if (!Array.isArray(options) || options.length === 0) {
      throw invalid('keys must be a list of at least one key, as [generateKey()]');
    }
    const secrets = new Set<string>();
    for (const [place, option] of options.entries()) {
      const key = new Key(option, `keys[${place}]`);
      if (this.#keys.has(key.kid)) throw invalid(`keys[${place}].kid is used twice`);
      if (secrets.has(key.fingerprint)) {
        throw invalid(`keys[${place}].secret is that of another key: each kid needs its own`);
      }
      secrets.add(key.fingerprint);
      this.#keys.set(key.kid, key);
    }
    const active = [...this.#keys.values()].filter(({ isActive }) => isActive);
    const isVerifier = [...this.#keys.values()].every(({ canMint }) => !canMint);
    if (active.length > 1 || (active.length === 0 && !isVerifier)) {
      throw invalid(`keys must hold exactly one key with status "active", not ${active.length}`);
    }
    this.#active = active[0];
  }

  /**
   * The key with which new values are made.
   *
   * @throws {TokenError} `invalid_options` when these keys can only verify
   */
  get active(): Key {
    if (this.#active !== undefined) return this.#active;
    throw invalid('these keys can only verify: this call needs a ring with an active key');
  }

  /** The key with this kid; `undefined` when it is not known, or no longer. */
  get(kid: string): Key | undefined {
    return this.#keys.get(kid);
  }

  /** The same ring, reduced to what checks a tag: it can neither reveal nor mint. */
  verifierKeys(): KeyOptions[] {
    return [...this.#keys.values()].map((key) => key.toVerifier());
  }

  toJSON(): string {
    return '[redacted]';
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return 'KeyRing [redacted]';
  }
}

/** One key with its subkeys (HKDF-SHA256, RFC 5869), each for one use. */
export class Key {
  readonly kid: string;
  readonly isActive: boolean;
  readonly canMint: boolean;
  readonly #tag: Uint8Array;
  readonly #inner: Buffer;
  #filled: Buffer;
  readonly #outer: Buffer;
  // Key objects: as bytes they would be made into such on each call, for seven times the price.
  readonly #reveal: crypto.KeyObject | undefined;
  readonly #cursor: crypto.KeyObject | undefined;

  constructor(option: KeyOptions, place: string) {
    checkOption(option, place);
    this.kid = option.kid;
    this.isActive = option.status === 'active';
    const { bytes, isVerifier } = readSecret(option.secret, `${place}.secret`);
    if (isVerifier && this.isActive) {
      throw invalid(`${place}.status must be "verify": its secret comes from verifierKeys()`);
    }
    this.canMint = !isVerifier;
    this.#tag = isVerifier ? bytes : subkey(bytes, 'tag/v1');
    this.#reveal = isVerifier ? undefined : crypto.createSecretKey(subkey(bytes, 'reveal/v1'));
    this.#cursor = isVerifier ? undefined : crypto.createSecretKey(subkey(bytes, 'cursor/v1'));
    this.#inner = pad(this.#tag, 0x36, 256);
    this.#inner.write(TAG_MARK, BLOCK_BYTES, 'latin1');
    this.#filled = this.#inner;
    this.#outer = pad(this.#tag, 0x5c, 32);
  }

  /** Tells two secrets apart without holding one. */
  get fingerprint(): string {
    return sha256(this.#tag);
  }

  /**
   * The first 32 bits of HMAC-SHA256 under the tag key (RFC 2104), big-endian, of `tag`, a zero byte
   * and the first `length` characters of a text. These must be ASCII and at most 252.
   *
   * Two one-shot hashes over pads that were filled once take less than half the time of an `Hmac`
   * object; nothing awaits between writing and reading them.
   */
  tag(text: string, length = text.length): number {
    const end = TAGGED_START + this.#inner.write(text, TAGGED_START, length, 'latin1');
    // All values of a host are of one length, so the view is nearly always the last one.
    if (this.#filled.length !== end) this.#filled = this.#inner.subarray(0, end);
    this.#outer.write(sha256(this.#filled), BLOCK_BYTES, 'latin1');
    const digest = sha256(this.#outer);
    let tag = 0;
    for (let i = 0; i < TAG_BYTES; i++) tag = tag * 256 + digest.charCodeAt(i);
    return tag;
  }

  /** Encrypts a text with AES-256-GCM and a fresh 96-bit nonce: nonce, ciphertext, tag. */
  seal(text: string, bound: string): Uint8Array {
    const nonce = crypto.randomBytes(NONCE_BYTES);
    const cipher = crypto.createCipheriv('aes-256-gcm', this.#need(this.#reveal), nonce);
    cipher.setAAD(Buffer.from(bound));
    return new Uint8Array(
      Buffer.concat([nonce, cipher.update(text, 'latin1'), cipher.final(), cipher.getAuthTag()]),
    );
  }

  /** Decrypts what {@link seal} made; `undefined` when it was not this key, or not bound so. */
  open(box: Uint8Array, bound: string): string | undefined {
    if (this.#reveal === undefined || box.length <= NONCE_BYTES + SEAL_TAG_BYTES) return undefined;
    try {
      const nonce = box.subarray(0, NONCE_BYTES);
      const cipher = crypto.createDecipheriv('aes-256-gcm', this.#reveal, nonce);
      cipher.setAAD(Buffer.from(bound));
      cipher.setAuthTag(box.subarray(-SEAL_TAG_BYTES));
      const text = cipher.update(box.subarray(NONCE_BYTES, -SEAL_TAG_BYTES), undefined, 'latin1');
      return text + cipher.final('latin1');
    } catch {
      return undefined;
    }
  }

  /** 128 bits of HMAC-SHA256 under the cursor key, as base64url. */
  sign(text: string): string {
    const mac = crypto.createHmac('sha256', this.#need(this.#cursor)).update(text).digest();
    return mac.subarray(0, 16).toString('base64url');
  }

  toVerifier(): KeyOptions {
    const secret = VERIFIER_MARK + Buffer.from(this.#tag).toString('base64url');
    return { kid: this.kid, secret, status: 'verify' };
  }

  toJSON(): string {
    return '[redacted]';
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return 'Key [redacted]';
  }

  #need(key: crypto.KeyObject | undefined): crypto.KeyObject {
    if (key !== undefined) return key;
    throw invalid('these keys can only verify: this call needs the whole key');
  }
}

function invalid(message: string): TokenError {
  return new TokenError('invalid_options', message);
}

function checkOption(option: KeyOptions, place: string): void {
  if (typeof option !== 'object' || option === null) {
    throw invalid(`${place} must be an object { kid, secret, status }`);
  }
  if (Object.keys(option).some((name) => !['kid', 'secret', 'status'].includes(name))) {
    throw invalid(`${place} holds an unknown option; known are kid, secret and status`);
  }
  checkKid(option.kid, `${place}.kid`);
  if (option.status !== 'active' && option.status !== 'verify') {
    throw invalid(`${place}.status must be "active" or "verify"`);
  }
}

function checkKid(kid: unknown, place: string): void {
  if (typeof kid === 'string' && /^[0-9A-Za-z]{2}$/.test(kid)) return;
  throw invalid(`${place} must be 2 characters of 0-9A-Za-z`);
}

function readSecret(secret: unknown, place: string): { bytes: Uint8Array; isVerifier: boolean } {
  const isVerifier = typeof secret === 'string' && secret.startsWith(VERIFIER_MARK);
  const bytes = toBytes(isVerifier ? secret.slice(VERIFIER_MARK.length) : secret, place);
  if (bytes.length < MIN_SECRET_BYTES) {
    throw invalid(`${place} must be at least ${MIN_SECRET_BYTES} random bytes`);
  }
  if (isVerifier && bytes.length !== SUBKEY_BYTES) {
    throw invalid(`${place} must be whole, as verifierKeys() gave it out`);
  }
  if (bytes.every((byte) => byte === bytes[0])) {
    throw invalid(`${place} must be random bytes, not one byte repeated`);
  }
  return { bytes, isVerifier };
}

function toBytes(secret: unknown, place: string): Uint8Array {
  if (secret instanceof Uint8Array) return Uint8Array.from(secret);
  if (typeof secret === 'string' && /^[A-Za-z0-9_-]+={0,2}$/.test(secret)) {
    return Uint8Array.from(Buffer.from(secret, 'base64url'));
  }
  throw invalid(`${place} must be a Uint8Array or base64url text of at least 32 random bytes`);
}

function subkey(secret: Uint8Array, info: string): Uint8Array {
  return new Uint8Array(crypto.hkdfSync('sha256', secret, SALT, info, SUBKEY_BYTES));
}

/** A scratch buffer that begins with the key's block of an HMAC, and has room behind it. */
function pad(key: Uint8Array, mask: number, room: number): Buffer {
  const buffer = Buffer.alloc(BLOCK_BYTES + room, 0);
  for (let i = 0; i < BLOCK_BYTES; i++) buffer[i] = (key[i] ?? 0) ^ mask;
  return buffer;
}

/**
 * SHA-256 as a text with a character for each byte, which is had for a third of the price of a buffer.
 * `crypto.hash`, five times as fast as a `Hash`, came with Node 20.12; other runtimes may lack it.
 */
export function sha256(data: Uint8Array | string): string {
  return crypto.hash === undefined
    ? crypto.createHash('sha256').update(data).digest('binary')
    : crypto.hash('sha256', data, 'binary');
}
