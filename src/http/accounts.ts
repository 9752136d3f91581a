import * as crypto from 'node:crypto';
import { type Clock, systemClock } from '../clock.ts';
import { TokenError } from '../errors.ts';
import { isAccount } from '../token.ts';

/** What a caller of the service presents. */
export interface Credentials {
  /** What stands before the first colon. */
  readonly username: string;
  /** What stands behind it. */
  readonly password: string;
}

/** Turns credentials into the account that they open, or `null`. */
export type Authenticate = (
  credentials: Credentials,
  request: Request,
) => string | null | Promise<string | null>;

/** One entry of a fixed list. */
export interface FixedAccount {
  /** Without `:`, which Basic credentials cannot carry (RFC 7617 section 2). */
  readonly username: string;
  /** In the clear; only a hash of it is kept. Give this or `passwordHash`. */
  readonly password?: string | undefined;
  /** What {@link hashPassword} made, instead of the password. */
  readonly passwordHash?: string | undefined;
  /** Whom the tokens belong to. @default the user name */
  readonly account?: string | undefined;
}

const COST = 2 ** 14;
const BLOCK_SIZE = 8;
const SALT_BYTES = 16;
const HASH_BYTES = 32;
const REMEMBERED_MS = 60_000;

/**
 * Checks credentials against a fixed list.
 *
 * Keeps salted scrypt hashes (RFC 7914, N = 16384, r = 8, p = 1), compares in constant time and
 * costs the same for an unknown user. A password that was right is remembered for 60 seconds, as an
 * HMAC under a random key of this process, so that scrypt is not paid for on each call.
 *
 * @throws {TokenError} `invalid_options` for an empty list, a bad or repeated user name, an empty
 * password
 * @example
 * const authenticate = fixedAccounts([{ username: 'ada', password: process.env['ADA_PASSWORD'] }]);
 */
export function fixedAccounts(
  accounts: readonly FixedAccount[],
  { clock = systemClock }: { readonly clock?: Clock } = {},
): (credentials: Credentials) => Promise<string | null> {
  const known = readAccounts(accounts);
  const nobody = readHash(hashPassword(crypto.randomBytes(16).toString('hex')));
  const memory = new Map<KnownAccount, { readonly mac: Buffer; readonly until: number }>();
  // As bytes it would be made into such an object on each call, for seven times the price.
  const memoryKey = crypto.createSecretKey(crypto.randomBytes(32));
  /** What is being checked now: many calls of one client come at once, and wait for one hash. */
  const running = new Map<string, Promise<boolean>>();

  const authenticate = async ({ username, password }: Credentials): Promise<string | null> => {
    const entry = known.get(username);
    const mac = crypto.createHmac('sha256', memoryKey).update(password).digest();
    const now = clock.now().getTime();
    const remembered = entry && memory.get(entry);
    if (entry !== undefined && remembered !== undefined && now < remembered.until) {
      if (crypto.timingSafeEqual(mac, remembered.mac)) return entry.account;
    }
    const attempt = JSON.stringify([username, mac.toString('base64')]);
    let check = running.get(attempt);
    if (check === undefined) {
      check = matches(password, entry?.hash ?? nobody).finally(() => running.delete(attempt));
      running.set(attempt, check);
    }
    const isRight = await check;
    if (entry === undefined || !isRight) return null;
    // Not by the name as it was presented: that is a part of a text with the password in it.
    memory.set(entry, { mac, until: now + REMEMBERED_MS });
    return entry.account;
  };
  needNoRequest.add(authenticate);
  return authenticate;
}

const needNoRequest = new WeakSet<Authenticate>();

/** Whether a request has to be made for it: what is not known to do without gets one. */
export function needsRequest(authenticate: Authenticate): boolean {
  return !needNoRequest.has(authenticate);
}

/**
 * Hashes a password for keeping, in the PHC string format: `$scrypt$ln=14,r=8,p=1$salt$hash`.
 * Blocks for the time of one scrypt.
 *
 * @throws {TokenError} `invalid_options` for a password that is no text, is empty or has control
 * characters
 * @example
 * fixedAccounts([{ username: 'ada', passwordHash: hashPassword(password) }]);
 */
export function hashPassword(password: string): string {
  if (!isPassword(password)) throw invalid(`password must be ${PASSWORD}`);
  const salt = crypto.randomBytes(SALT_BYTES);
  const hash = crypto.scryptSync(password, salt, HASH_BYTES, { N: COST, r: BLOCK_SIZE, p: 1 });
  const [saltText, hashText] = [salt, hash].map((bytes) => bytes.toString('base64url'));
  return `$scrypt$ln=${Math.log2(COST)},r=${BLOCK_SIZE},p=1$${saltText}$${hashText}`;
}

/**
 * Reads Basic credentials (RFC 7617) in UTF-8; `undefined` for anything else, two headers included,
 * which the platform joins with a comma.
 */
export function readBasic(header: string | null | undefined): Credentials | undefined {
  const encoded = /^basic +([A-Za-z0-9+/]{1,4096}={0,2})$/i.exec(header ?? '')?.[1];
  if (encoded === undefined) return undefined;
  try {
    const bytes = Buffer.from(encoded, 'base64');
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    const colon = text.indexOf(':');
    if (colon === -1 || /\p{Cc}/u.test(text)) return undefined;
    return { username: text.slice(0, colon), password: text.slice(colon + 1) };
  } catch {
    return undefined;
  }
}

interface KnownAccount {
  readonly account: string;
  readonly hash: PasswordHash;
}

interface PasswordHash {
  readonly salt: Buffer;
  readonly hash: Buffer;
}

function readAccounts(accounts: readonly FixedAccount[]): ReadonlyMap<string, KnownAccount> {
  if (!Array.isArray(accounts) || accounts.length === 0) {
    throw invalid('accounts must be a list of at least one { username, password }');
  }
  const known = new Map<string, KnownAccount>();
  for (const [place, entry] of accounts.entries()) {
    if (typeof entry !== 'object' || entry === null) {
      throw invalid(`accounts[${place}] must be an object`);
    }
    const { username, password, passwordHash, account = username } = entry;
    if (!isAccount(username) || username.includes(':')) {
      throw invalid(`accounts[${place}].username must be 1 to 255 bytes of text without ":"`);
    }
    if (!isAccount(account)) {
      throw invalid(`accounts[${place}].account must be 1 to 255 bytes of text`);
    }
    if (known.has(username)) throw invalid(`accounts[${place}].username is used twice`);
    known.set(username, { account, hash: hashOf(password, passwordHash, place) });
  }
  return known;
}

function hashOf(
  password: string | undefined,
  passwordHash: string | undefined,
  place: number,
): PasswordHash {
  if ((password === undefined) === (passwordHash === undefined)) {
    throw invalid(`accounts[${place}] must have either a password or a passwordHash`);
  }
  if (passwordHash !== undefined) return readHash(passwordHash, place);
  if (!isPassword(password)) throw invalid(`accounts[${place}].password must be ${PASSWORD}`);
  return readHash(hashPassword(password));
}

const PASSWORD = 'a text that is not empty and has no control characters';

/** Whether Basic credentials can carry it. */
function isPassword(password: unknown): password is string {
  return typeof password === 'string' && password !== '' && !/\p{Cc}/u.test(password);
}

function readHash(text: string, place = 0): PasswordHash {
  const [, salt, hash] =
    /^\$scrypt\$ln=14,r=8,p=1\$([\w-]{22})\$([\w-]{43})$/.exec(String(text)) ?? [];
  if (salt === undefined || hash === undefined) {
    throw invalid(`accounts[${place}].passwordHash must be one that hashPassword() made`);
  }
  return { salt: Buffer.from(salt, 'base64url'), hash: Buffer.from(hash, 'base64url') };
}

function matches(password: string, { salt, hash }: PasswordHash): Promise<boolean> {
  return new Promise((resolve, reject) => {
    crypto.scrypt(
      password,
      salt,
      HASH_BYTES,
      { N: COST, r: BLOCK_SIZE, p: 1 },
      (error, derived) => {
        // Bun says `undefined` where Node says `null`.
        if (error) reject(error);
        else resolve(crypto.timingSafeEqual(derived, hash));
      },
    );
  });
}

function invalid(message: string): TokenError {
  return new TokenError('invalid_options', message);
}
