import * as crypto from 'node:crypto';
import { invalidOptions } from '../errors.ts';
import { kindOf } from '../text/wording.ts';
import { ShortHmac, sha256 } from './hmac.ts';

/** A key as the host stores it. */
export interface KeyOptions {
  /** The name of the key, which is part of each value made with it: 2 characters of `0-9A-Za-z`. */
  readonly kid: string;
  /** At least 32 random bytes, as bytes or as base64url; or a secret from `verifierKeys()`. */
  readonly secret: Uint8Array | string;
  /** `active`: makes new values (exactly one key). `verify`: only checks older ones. */
  readonly status: 'active' | 'verify';
}

/**
 * Generates an active key of 32 random bytes. Store it with your other secrets, outside the database.
 *
 * @throws {TokenError} `invalid_options` if the kid is not 2 characters of `0-9A-Za-z`
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
const NONCE_BYTES = 12;
const SEAL_TAG_BYTES = 16;
/** How much longer a sealed text is than the text. */
export const SEAL_BYTES = NONCE_BYTES + SEAL_TAG_BYTES;

/**
 * The keys of a service: exactly one is active, or none if all of them can only verify.
 *
 * Immutable. Shows no part of a key when it is inspected or serialized.
 */
export class KeyRing {
  readonly #keys = new Map<string, Key>();
  readonly #active: Key | undefined;

  /**
   * @throws {TokenError} `invalid_options`, naming the option and never its value
   */
  constructor(options: readonly KeyOptions[]) {
    const fault = keysFault(options);
    if (fault !== undefined) throw invalidOptions(fault);
    const secrets = new Set<string>();
    for (const [index, option] of options.entries()) {
      const key = new Key(option, `keys[${index}]`);
      if (this.#keys.has(key.kid)) throw invalidOptions(`keys[${index}].kid is used twice`);
      if (secrets.has(key.fingerprint)) {
        throw invalidOptions(
          `keys[${index}].secret is that of another key: each kid needs its own`,
        );
      }
      secrets.add(key.fingerprint);
      this.#keys.set(key.kid, key);
    }
    const active = [...this.#keys.values()].filter(({ isActive }) => isActive);
    const isVerifier = [...this.#keys.values()].every(({ canMint }) => !canMint);
    if (active.length > 1 || (active.length === 0 && !isVerifier)) {
      throw invalidOptions(
        `keys must hold exactly one key with status "active", not ${active.length}`,
      );
    }
    this.#active = active[0];
  }

  /**
   * The key that makes new values.
   *
   * @throws {TokenError} `invalid_options` if these keys can only verify
   */
  get active(): Key {
    if (this.#active !== undefined) return this.#active;
    throw invalidOptions('these keys can only verify: this call needs a ring with an active key');
  }

  /** The key with this kid; `undefined` if there is none. */
  get(kid: string): Key | undefined {
    return this.#keys.get(kid);
  }

  /** All keys. */
  get all(): Iterable<Key> {
    return this.#keys.values();
  }

  /** The keys reduced to their checksum keys, which can neither reveal nor mint. */
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

/** A key and its subkeys (HKDF-SHA256, RFC 5869), one for each use. */
export class Key {
  readonly kid: string;
  readonly isActive: boolean;
  readonly canMint: boolean;
  readonly #checksumKey: Uint8Array;
  readonly #checksum: ShortHmac;
  // Key objects: raw bytes would be imported on every call, which is seven times slower.
  readonly #reveal: crypto.KeyObject | undefined;
  readonly #cursor: crypto.KeyObject | undefined;
  readonly #session: crypto.KeyObject | undefined;

  constructor(option: KeyOptions, path: string) {
    checkOption(option, path);
    this.kid = option.kid;
    this.isActive = option.status === 'active';
    const { bytes, isVerifier } = readSecret(option.secret, `${path}.secret`);
    if (isVerifier && this.isActive) {
      throw invalidOptions(`${path}.status must be "verify": its secret comes from verifierKeys()`);
    }
    this.canMint = !isVerifier;
    this.#checksumKey = isVerifier ? bytes : subkey(bytes, 'tag/v1');
    this.#checksum = new ShortHmac(this.#checksumKey, 'tag\0');
    this.#reveal = isVerifier ? undefined : crypto.createSecretKey(subkey(bytes, 'reveal/v1'));
    this.#cursor = isVerifier ? undefined : crypto.createSecretKey(subkey(bytes, 'cursor/v1'));
    this.#session = isVerifier ? undefined : crypto.createSecretKey(subkey(bytes, 'session/v1'));
  }

  /** Compares keys without exposing them. */
  get fingerprint(): string {
    return sha256(this.#checksumKey);
  }

  /**
   * The checksum of the first `length` characters of a text: the first 32 bits of HMAC-SHA256 under
   * the checksum key, big-endian, over `tag`, a zero byte and these characters, which must be ASCII.
   */
  checksum(text: string, length = text.length): number {
    return this.#checksum.digest(text, length);
  }

  /** Encrypts a text with AES-256-GCM and a random 96-bit nonce: nonce, ciphertext, authentication tag. */
  seal(text: string, bound: string): Uint8Array {
    const nonce = crypto.randomBytes(NONCE_BYTES);
    const cipher = crypto.createCipheriv('aes-256-gcm', this.#need(this.#reveal), nonce);
    cipher.setAAD(Buffer.from(bound));
    return new Uint8Array(
      Buffer.concat([nonce, cipher.update(text, 'latin1'), cipher.final(), cipher.getAuthTag()]),
    );
  }

  /** Decrypts the result of {@link seal}; `undefined` for another key or another binding. */
  open(box: Uint8Array, bound: string): string | undefined {
    if (this.#reveal === undefined || box.length <= SEAL_BYTES) return undefined;
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

  /** HMAC-SHA256 under the session key, as base64url. */
  signSession(text: string): string {
    return crypto.createHmac('sha256', this.#need(this.#session)).update(text).digest('base64url');
  }

  toVerifier(): KeyOptions {
    const secret = VERIFIER_MARK + Buffer.from(this.#checksumKey).toString('base64url');
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
    throw invalidOptions('these keys can only verify: this call needs the whole key');
  }
}

/**
 * Says why a value is not a list of keys; `undefined` for one. Suggests a new key only if there is none: with
 * other keys than theirs, all tokens are refused.
 */
export function keysFault(keys: unknown): string | undefined {
  if (Array.isArray(keys) && keys.length > 0) return undefined;
  return `keys must be a list of at least one key; got ${kindOf(keys)}${hintFor(keys)}`;
}

function hintFor(keys: unknown): string {
  if (keys === undefined || keys === null || keys === '') {
    return ': if you have keys, is the variable or the file with them read? generateKey() makes the first one';
  }
  if (Array.isArray(keys)) return ': generateKey() makes the first one';
  if (typeof keys === 'string') {
    return /^\s*[[{]/.test(keys)
      ? ': parse it, as JSON.parse(text)'
      : ': give an object with it, as [{ kid: "k1", secret, status: "active" }]';
  }
  if (keys instanceof Uint8Array) {
    return ': give an object with it, as [{ kid: "k1", secret, status: "active" }]';
  }
  if (typeof keys === 'object' && 'kid' in keys) return ': put your key into a list, as [key]';
  return kindOf(keys) === 'a promise' ? ': put await before it' : '';
}

function checkOption(option: KeyOptions, path: string): void {
  if (typeof option !== 'object' || option === null) {
    const hint = typeof option === 'function' ? ': call it' : '';
    throw invalidOptions(
      `${path} must be an object { kid, secret, status }; got ${kindOf(option)}${hint}`,
    );
  }
  if (Object.keys(option).some((name) => !['kid', 'secret', 'status'].includes(name))) {
    throw invalidOptions(`${path} holds an unknown option; known are kid, secret and status`);
  }
  checkKid(option.kid, `${path}.kid`);
  if (option.status !== 'active' && option.status !== 'verify') {
    throw invalidOptions(`${path}.status must be "active" or "verify"`);
  }
}

function checkKid(kid: unknown, path: string): void {
  if (typeof kid === 'string' && /^[0-9A-Za-z]{2}$/.test(kid)) return;
  throw invalidOptions(`${path} must be 2 characters of 0-9A-Za-z`);
}

function readSecret(secret: unknown, path: string): { bytes: Uint8Array; isVerifier: boolean } {
  const isVerifier = typeof secret === 'string' && secret.startsWith(VERIFIER_MARK);
  const bytes = toBytes(isVerifier ? secret.slice(VERIFIER_MARK.length) : secret, path);
  if (bytes.length < MIN_SECRET_BYTES) {
    throw invalidOptions(`${path} must be at least ${MIN_SECRET_BYTES} random bytes`);
  }
  if (isVerifier && bytes.length !== SUBKEY_BYTES) {
    throw invalidOptions(`${path} must be whole, as verifierKeys() gave it out`);
  }
  if (bytes.every((byte) => byte === bytes[0])) {
    throw invalidOptions(`${path} must be random bytes, not one byte repeated`);
  }
  return { bytes, isVerifier };
}

function toBytes(secret: unknown, path: string): Uint8Array {
  if (secret instanceof Uint8Array) return Uint8Array.from(secret);
  if (typeof secret === 'string' && /^[A-Za-z0-9_-]+={0,2}$/.test(secret)) {
    return Uint8Array.from(Buffer.from(secret, 'base64url'));
  }
  const rule = `${path} must be a Uint8Array or base64url text of at least 32 random bytes`;
  if (typeof secret !== 'string' || secret === '') {
    throw invalidOptions(`${rule}; got ${kindOf(secret)}`);
  }
  const isBase64 = /^[A-Za-z0-9+/]+={0,2}$/.test(secret);
  throw invalidOptions(
    isBase64
      ? `${rule}; got base64: give Buffer.from(text, "base64")`
      : `${rule}; got another text`,
  );
}

function subkey(secret: Uint8Array, info: string): Uint8Array {
  return new Uint8Array(crypto.hkdfSync('sha256', secret, SALT, info, SUBKEY_BYTES));
}
