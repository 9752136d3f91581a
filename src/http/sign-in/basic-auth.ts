import * as crypto from 'node:crypto';
import { invalidOptions } from '../../errors.ts';
import { notify } from '../../events.ts';
import { describeUnknown } from '../../inputs/names.ts';
import { once } from '../../inputs/once.ts';
import { callback, checkOptions, readOption } from '../../inputs/schemas.ts';
import { kindOf } from '../../text/wording.ts';
import { type Clock, systemClock } from '../../time/clock.ts';
import { isAccount } from '../../token/record.ts';
import { newMarker } from '../../values/hmac.ts';
import { ownForms } from '../request.ts';
import { KnownNetworks } from './known-networks.ts';
import { type PasswordQueue, processQueue, type Signer } from './password-queue.ts';

/** Milliseconds for which a correct password is remembered. @bound */
export const PASSWORD_REMEMBERED_MS = 60_000;

/** The Basic credentials of a call. */
export interface Credentials {
  /** The text before the first colon. */
  readonly username: string;
  /** The text after it. */
  readonly password: string;
}

/**
 * An account, alone or with who calls for it, as you name people: 1 to 255 bytes of text. Tokens that they
 * issue have the name as `createdBy`.
 */
export type CallerAccount =
  | string
  | {
      /** The account. */
      readonly account: string;
      /** Who calls for it. */
      readonly user: string;
    };

/** Returns the account that the credentials open, or `null`. */
export type Authenticate = (
  credentials: Credentials,
  request: Request,
) => CallerAccount | null | Promise<CallerAccount | null>;

/** One entry of a fixed list. */
export interface FixedAccount {
  /** Without `:`, which Basic credentials cannot carry (RFC 7617 section 2). */
  readonly username: string;
  /** The password in plain text; only its hash is stored. Give this or `passwordHash`. */
  readonly password?: string | undefined;
  /** The result of {@link hashPassword}, instead of the password. */
  readonly passwordHash?: string | undefined;
  /** The account that the tokens belong to. @default the user name */
  readonly account?: string | undefined;
}

/** How a list of {@link fixedAccounts} works. */
export interface FixedAccountsOptions {
  /** The clock by which right passwords are remembered. @default the time of the machine */
  readonly clock?: Clock | undefined;
  /**
   * Called with a new hash of a right password, if its `passwordHash` is weaker than the ones that
   * {@link hashPassword} makes today. Store it instead of the old one. Its exceptions are ignored.
   * @default none: renewed in memory only
   */
  readonly onRenew?: ((username: string, passwordHash: string) => void) | undefined;
}

const COST = 2 ** 14;
const BLOCK_SIZE = 8;
const PARALLELIZATION = 5;
const SALT_BYTES = 16;
const HASH_BYTES = 32;

/**
 * Checks credentials against a fixed list.
 *
 * Keeps salted scrypt hashes (RFC 7914) with N = 16384, r = 8, p = 5, one of the minimum settings of
 * the OWASP Password Storage Cheat Sheet. Compares in constant time and takes the same time for an
 * unknown user. A right password is remembered for 60 seconds, as an HMAC under a random key of this
 * process, so that not every call pays for scrypt. Hashes with p = 1, which earlier versions made,
 * still work and are renewed with the next right password; see `onRenew`.
 *
 * All lists of a process share one queue. It computes up to four hashes concurrently, one fewer than
 * there are processors, for up to 64 checks. Addresses take turns, and so do the users of one address;
 * users who have signed in from their address before come first in every second turn. Any further check
 * rejects with an error of the code `overloaded`, which `tokenHandler` answers with 503; so does a check
 * that takes longer than 30 seconds. The addresses come from `clientAddress`: pass the function itself to
 * `tokenHandler`, since it cannot learn the address inside a wrapper.
 *
 * Each `password` of the list is hashed immediately, which blocks; for a long list give
 * `passwordHash`.
 *
 * @throws {TokenError} `invalid_options` for an empty list, a bad or repeated user name, an empty
 * password
 * @example
 * const authenticate = fixedAccounts([{ username: 'ada', password: process.env['ADA_PASSWORD'] }]);
 */
export function fixedAccounts(
  accounts: readonly FixedAccount[],
  options: FixedAccountsOptions = {},
): (credentials: Credentials) => Promise<string | null> {
  return accountsIn(processQueue(), accounts, options);
}

/** {@link fixedAccounts} with another queue for its hashes. */
export function accountsIn(
  queue: PasswordQueue,
  accounts: readonly FixedAccount[],
  options: FixedAccountsOptions = {},
): (credentials: Credentials) => Promise<string | null> {
  const list = readOption(
    'accounts or its options',
    () => new AccountList(queue, readAccounts(accounts), options),
  );
  const authenticate = (credentials: Credentials) => list.check(credentials, '');
  ownForms.set(authenticate, {
    check: (credentials, network) => list.check(credentials, network),
    remembered: (credentials) => list.remembered(credentials),
  });
  return authenticate;
}

const renewal = once(() =>
  callback<(username: string, passwordHash: string) => void>('onRenew must be a function'),
);

class AccountList {
  readonly #queue: PasswordQueue;
  readonly #known: ReadonlyMap<string, KnownAccount>;
  readonly #clock: Clock;
  readonly #onRenew: (username: string, passwordHash: string) => void;
  readonly #memory = new Map<KnownAccount, { readonly mark: string; readonly until: number }>();
  readonly #markOf = newMarker();
  readonly #networks = new KnownNetworks();
  readonly #unknownUserHash = randomHash();

  constructor(
    queue: PasswordQueue,
    known: ReadonlyMap<string, KnownAccount>,
    { clock = systemClock, onRenew = () => {} }: FixedAccountsOptions,
  ) {
    this.#queue = queue;
    this.#known = known;
    this.#clock = clock;
    this.#onRenew = checkOptions(renewal(), onRenew);
  }

  async check({ username, password }: Credentials, network: string): Promise<string | null> {
    const entry = this.#known.get(username);
    const mark = this.#markOf(password);
    const now = this.#clock.now().getTime();
    if (entry !== undefined && this.#isRemembered(entry, mark, now)) return entry.account;
    const isKnown = this.#networks.has(username, network);
    const signer = { network, username, isKnown };
    // Concurrent calls with the same credentials wait for one hash.
    const key = JSON.stringify(['check', username, mark]);
    const hash = entry?.hash ?? this.#unknownUserHash;
    const isRight = await this.#queue.run(key, signer, () => isPasswordOf(hash, password));
    if (entry === undefined || !isRight) return null;
    // Not keyed by the presented name: V8 slices keep the parent string alive, password included.
    this.#memory.set(entry, { mark, until: now + PASSWORD_REMEMBERED_MS });
    this.#networks.add(entry.username, network);
    if (isWeak(entry.hash)) this.#renew(key, entry, password, signer);
    return entry.account;
  }

  /** The account of credentials that were right a moment ago. */
  remembered({ username, password }: Credentials): string | undefined {
    const entry = this.#known.get(username);
    const now = this.#clock.now().getTime();
    const isRemembered = entry && this.#isRemembered(entry, this.#markOf(password), now);
    return isRemembered === true ? entry?.account : undefined;
  }

  #isRemembered(entry: KnownAccount, mark: string, now: number): boolean {
    const remembered = this.#memory.get(entry);
    if (remembered === undefined || now >= remembered.until) return false;
    return crypto.timingSafeEqual(bytesOf(mark), bytesOf(remembered.mark));
  }

  /** Runs in the background. If the queue has no room, the next sign-in tries again. */
  #renew(key: string, entry: KnownAccount, password: string, signer: Signer): void {
    const renewal = this.#queue.run(`renew ${key}`, signer, async () => {
      const salt = crypto.randomBytes(SALT_BYTES);
      const hash = await derive(password, salt, PARALLELIZATION);
      entry.hash = { salt, hash, parallelization: PARALLELIZATION };
      notify((text) => this.#onRenew(entry.username, text), formatHash(entry.hash));
      return true;
    });
    renewal.catch(() => {});
  }
}

/** A mark has one character for each byte. */
function bytesOf(mark: string): Buffer {
  return Buffer.from(mark, 'latin1');
}

/**
 * Hashes a password for storage, in the PHC string format: `$scrypt$ln=14,r=8,p=5$salt$hash`. These
 * scrypt settings (RFC 7914) are among the minimum settings of the OWASP Password Storage Cheat Sheet.
 * Blocks for the time of one scrypt, some 0.1 to 0.3 seconds.
 *
 * @throws {TokenError} `invalid_options` for a password that is not a text, is empty or has control
 * characters
 * @example
 * fixedAccounts([{ username: 'ada', passwordHash: hashPassword(password) }]);
 */
export function hashPassword(password: string): string {
  if (!isPassword(password)) throw invalidOptions(`password must be ${PASSWORD_RULE}`);
  const salt = crypto.randomBytes(SALT_BYTES);
  const hash = crypto.scryptSync(password, salt, HASH_BYTES, scryptSettings(PARALLELIZATION));
  return formatHash({ salt, hash, parallelization: PARALLELIZATION });
}

/**
 * Parses Basic credentials (RFC 7617) in UTF-8; `undefined` for anything else, such as two headers,
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
  readonly username: string;
  readonly account: string;
  /** Replaced when it is renewed. */
  hash: PasswordHash;
}

interface PasswordHash {
  readonly salt: Buffer;
  readonly hash: Buffer;
  /** The p of scrypt: how many times its work is done. */
  readonly parallelization: number;
}

function readAccounts(accounts: readonly FixedAccount[]): ReadonlyMap<string, KnownAccount> {
  if (!Array.isArray(accounts) || accounts.length === 0) {
    throw invalidOptions(
      `accounts must be a list of at least one { username, password }; got ${kindOf(accounts)}`,
    );
  }
  const known = new Map<string, KnownAccount>();
  for (const [index, entry] of accounts.entries()) {
    if (typeof entry !== 'object' || entry === null) {
      throw invalidOptions(
        `accounts[${index}] must be an object { username, password }; got ${kindOf(entry)}`,
      );
    }
    const { username, account = username } = entry;
    if (!isAccount(username) || username.includes(':')) {
      const rule = `accounts[${index}].username must be 1 to 255 bytes of text without ":"`;
      const fault = faultOf(entry, `got ${kindOf(username)}`);
      throw invalidOptions(typeof username === 'string' ? rule : `${rule}; ${fault}`);
    }
    if (!isAccount(account)) {
      throw invalidOptions(
        `accounts[${index}].account must be 1 to 255 bytes of text; got ${kindOf(account)}`,
      );
    }
    if (known.has(username)) throw invalidOptions(`accounts[${index}].username is used twice`);
    known.set(username, { username, account, hash: hashOf(entry, index) });
  }
  return known;
}

/** Says what an entry has instead of a member that it needs. @param got what else it may be */
function faultOf(entry: FixedAccount, got: string): string {
  const known = ['username', 'password', 'passwordHash', 'account'];
  const unknown = Object.keys(entry).filter((name) => !known.includes(name));
  return unknown.length > 0 ? describeUnknown(unknown, known, '').message : got;
}

function hashOf(entry: FixedAccount, index: number): PasswordHash {
  const { password, passwordHash } = entry;
  if ((password === undefined) === (passwordHash === undefined)) {
    const neither = faultOf(entry, 'got neither: is the variable set?');
    const got = password === undefined ? neither : 'got both';
    throw invalidOptions(
      `accounts[${index}] must have either a password or a passwordHash; ${got}`,
    );
  }
  if (passwordHash !== undefined) return readHash(passwordHash, index);
  if (!isPassword(password))
    throw invalidOptions(`accounts[${index}].password must be ${PASSWORD_RULE}`);
  return readHash(hashPassword(password));
}

const PASSWORD_RULE = 'a text that is not empty and has no control characters';

/** Whether it is a password that Basic credentials can carry. */
function isPassword(password: unknown): password is string {
  return typeof password === 'string' && password !== '' && !/\p{Cc}/u.test(password);
}

function readHash(text: string, index = 0): PasswordHash {
  const [, parallelization, salt, hash] =
    /^\$scrypt\$ln=14,r=8,p=([15])\$([\w-]{22})\$([\w-]{43})$/.exec(String(text)) ?? [];
  if (salt === undefined || hash === undefined) {
    throw invalidOptions(`accounts[${index}].passwordHash must be one that hashPassword() made`);
  }
  return {
    salt: Buffer.from(salt, 'base64url'),
    hash: Buffer.from(hash, 'base64url'),
    parallelization: Number(parallelization),
  };
}

function formatHash({ salt, hash, parallelization }: PasswordHash): string {
  const [saltText, hashText] = [salt, hash].map((bytes) => bytes.toString('base64url'));
  return `$scrypt$ln=${Math.log2(COST)},r=${BLOCK_SIZE},p=${parallelization}$${saltText}$${hashText}`;
}

/** The hash for unknown users. No password matches it, and a check takes as long as for a known user. */
function randomHash(): PasswordHash {
  return {
    salt: crypto.randomBytes(SALT_BYTES),
    hash: crypto.randomBytes(HASH_BYTES),
    parallelization: PARALLELIZATION,
  };
}

function isWeak({ parallelization }: PasswordHash): boolean {
  return parallelization < PARALLELIZATION;
}

/** Takes the same time for every user name, so that timing does not reveal which users exist. */
async function isPasswordOf(known: PasswordHash, password: string): Promise<boolean> {
  const { salt, hash, parallelization } = known;
  const derived = await derive(password, salt, parallelization);
  const isRight = crypto.timingSafeEqual(derived, hash);
  if (!isRight && isWeak(known)) await derive(password, salt, PARALLELIZATION - parallelization);
  return isRight;
}

function derive(password: string, salt: Buffer, parallelization: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    crypto.scrypt(password, salt, HASH_BYTES, scryptSettings(parallelization), (error, derived) => {
      // Without an error, Bun passes `undefined` and Node `null`.
      if (error) reject(error);
      else resolve(derived);
    });
  });
}

function scryptSettings(parallelization: number): crypto.ScryptOptions {
  return { N: COST, r: BLOCK_SIZE, p: parallelization };
}
