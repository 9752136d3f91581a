// What the library gives out must not show a value of a token, a secret, a key or a password. Each of
// these is learned where it passes through, and each thing that comes out is looked through. Begun
// for every test by canary.setup.ts.
import type * as nodeCrypto from 'node:crypto';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { inspect } from 'node:util';
import { TokenError } from '../src/errors.ts';
import { Events } from '../src/events.ts';
import { HttpError } from '../src/http/errors.ts';
import { MemoryTokenStore } from '../src/stores/memory/index.ts';
import { Key } from '../src/values/keys.ts';

/** By what way something came out. */
export type Channel =
  | 'error'
  | 'event'
  | 'log line'
  | 'warning'
  | 'inspect output'
  | 'store call'
  | 'answer';

const isMethodName = (name: string) => name !== 'constructor';

type Kind = 'value' | 'secret' | 'key' | 'password';

interface Finding {
  readonly channel: Channel;
  readonly kind: Kind;
}

/** As long as the secret of a value. A key is longer, and known by its beginning. */
const WINDOW = 27;
/** Shorter ones would be found in ordinary words. */
const SHORTEST_PASSWORD = 8;
const MAX_DEPTH = 8;
const MAX_INSPECTED = 1000;
/**
 * Looking at a thousand errors takes 100 ms or more. In an outage test a service makes five thousand, and
 * must answer in time meanwhile.
 */
const MAX_ERRORS = 20_000;
const MAX_KNOWN = 20_000;
/** Each text is searched for each of them. */
const MAX_PASSWORDS = 100;
const LISTS = [Array, Map, Set, Headers];

const secrets = new Set<string>();
const keys = new Set<string>();
const passwords = new Set<string>();
const findings: Finding[] = [];
const errors: Error[] = [];
const inspected: object[] = [];
let isMuted = false;
let isUnseen = false;
let hasBegun = false;

/** Begins to learn and to listen; for another file in the same process, anew with what it makes itself. */
export function begin(): void {
  for (const list of [secrets, keys, passwords]) list.clear();
  for (const list of [findings, errors, inspected]) list.length = 0;
  if (hasBegun) return;
  hasBegun = true;
  learn();
  listen();
}

/** Learns keys and passwords from what is asked of `node:crypto`, and secrets from their tags. */
function learn(): void {
  // The module itself, whose members can be exchanged; its imports follow.
  const crypto = createRequire(import.meta.url)('node:crypto') as typeof nodeCrypto;
  wrap(crypto, 'hkdfSync', (derive, [, bytes]) => {
    const derived = derive();
    keepKey(bytes);
    keepKey(derived);
    return derived;
  });
  for (const name of ['scrypt', 'scryptSync']) {
    wrap(crypto, name, (derive, [password]) => {
      keepPassword(password);
      return derive();
    });
  }
  syncBuiltinESMExports();
  // Whoever makes a value or reads one asks for its tag, before it can come out.
  wrap(Key.prototype, 'checksum', (checksum, [text]) => {
    remember(secrets, String(text).slice(-WINDOW));
    return checksum();
  });
}

/** Looks through whatever comes out from now on. */
function listen(): void {
  class Listened extends Error {
    constructor(...args: ConstructorParameters<typeof Error>) {
      super(...args);
      if (isUnseen) return;
      errors.push(this);
      if (errors.length > MAX_ERRORS) look('error', errors.shift());
    }
  }
  for (const each of [TokenError, HttpError]) Object.setPrototypeOf(each, Listened);
  for (const name of Object.getOwnPropertyNames(Events.prototype).filter(isMethodName)) {
    wrap(Events.prototype, name, (emit, args) => {
      look('event', args);
      return emit();
    });
  }
  for (const name of ['insert', 'find', 'page', 'replace', 'revoke', 'revokeAll', 'purge']) {
    wrap(MemoryTokenStore.prototype, name, (call, args) => {
      look('store call', args);
      return call();
    });
  }
  for (const name of ['log', 'info', 'warn', 'error', 'debug', 'trace', 'dir']) {
    wrap(console, name, (print, args) => {
      look('log line', args);
      return isMuted || print();
    });
  }
  for (const stream of [process.stdout, process.stderr]) {
    wrap(stream, 'write', (write, [text]) => {
      look('log line', text);
      return isMuted || write();
    });
  }
  process.on('warning', (warning) => look('warning', warning));
  globalThis.Response = new Proxy(Response, {
    construct(target, args: ConstructorParameters<typeof Response>, newTarget) {
      const [body, { status = 200, headers } = {}] = args;
      const isOwners = status < 400;
      look('answer', typeof body === 'string' ? body : undefined, { isOwners });
      look('answer', headers, { isOwners });
      return Reflect.construct(target, args, newTarget);
    },
  });
}

/** From now on, this password must not be shown. */
export function keepPassword(password: unknown): void {
  if (typeof password === 'string' && password.length >= SHORTEST_PASSWORD) {
    remember(passwords, password, MAX_PASSWORDS);
  }
}

/** At the end of the test, this is inspected as a careless log would do. */
export function keepInspected(thing: object): void {
  if (inspected.length < MAX_INSPECTED) inspected.push(thing);
}

/** What is logged in between is looked through, and not printed. */
export async function mute(work: () => unknown): Promise<void> {
  isMuted = true;
  try {
    await work();
  } finally {
    isMuted = false;
  }
}

/** An error that a test makes itself, with what an error of the library must not hold. */
export function unseen<Result>(make: () => Result): Result {
  isUnseen = true;
  try {
    return make();
  } finally {
    isUnseen = false;
  }
}

/** Looks through something that comes out. An owner's answer may hold a value. */
function look(channel: Channel, thing: unknown, { isOwners = false } = {}): void {
  visit(thing, MAX_DEPTH, (text) => {
    const kind = kindIn(text);
    if (kind !== undefined && !(isOwners && (kind === 'value' || kind === 'secret'))) {
      findings.push({ channel, kind });
    }
  });
}

/** What was shown since the last time somebody asked. */
export function takeFindings(): Finding[] {
  lookAtErrors();
  for (const thing of inspected.splice(0)) {
    look('inspect output', inspect(thing, { depth: MAX_DEPTH, showHidden: true }));
  }
  return findings.splice(0);
}

/**
 * Looks through the errors made so far, and lets go of them: later than when they are made, since only then
 * do they have all their members.
 */
export function lookAtErrors(): void {
  for (const error of errors.splice(0)) look('error', error);
}

/** Remembers so many; the oldest leave first. Tests that make a hundred thousand need not be kept whole. */
function remember(known: Set<string>, text: string, most = MAX_KNOWN): void {
  known.add(text);
  if (known.size <= most) return;
  for (const oldest of known) {
    known.delete(oldest);
    return;
  }
}

function kindIn(text: string): Kind | undefined {
  for (const password of passwords) if (text.includes(password)) return 'password';
  if (text.length < WINDOW) return undefined;
  if (/[a-z0-9]_1[0-9A-Za-z]{57}/.test(text)) return 'value';
  for (const [run] of text.matchAll(/[0-9A-Za-z_+/-]{27,}/g)) {
    for (let start = 0; start + WINDOW <= run.length; start++) {
      const part = run.slice(start, start + WINDOW);
      if (keys.has(part)) return 'key';
      if (secrets.has(part)) return 'secret';
    }
  }
  return undefined;
}

/** Each text in a thing, the names of its members included. Getters are not called. */
function visit(thing: unknown, depth: number, tell: (text: string) => void): void {
  if (typeof thing === 'string') tell(thing);
  if (typeof thing !== 'object' || thing === null || depth === 0) return;
  if (thing instanceof Uint8Array) {
    tell(Buffer.from(thing).toString('latin1'));
    return;
  }
  if (thing instanceof Error) for (const text of [thing.message, thing.stack ?? '']) tell(text);
  if (LISTS.some((list) => thing instanceof list)) {
    for (const item of thing as Iterable<unknown>) visit(item, depth - 1, tell);
    return;
  }
  for (const name of Object.getOwnPropertyNames(thing)) {
    tell(name);
    const { value } = Object.getOwnPropertyDescriptor(thing, name) ?? {};
    visit(value, depth - 1, tell);
  }
}

function keepKey(bytes: unknown): void {
  if (!(bytes instanceof Uint8Array) && !(bytes instanceof ArrayBuffer)) return;
  const buffer = Buffer.from(bytes as Uint8Array);
  if (buffer.length < WINDOW) return;
  for (const form of ['base64url', 'base64', 'hex', 'latin1'] as const) {
    remember(keys, buffer.toString(form).slice(0, WINDOW));
  }
}

/** Puts `around` in the place of a method; it is given what the method did. */
function wrap(
  owner: object,
  name: string,
  around: (inner: () => unknown, args: unknown[]) => unknown,
) {
  const members = owner as Record<string, (...args: unknown[]) => unknown>;
  const inner = members[name];
  if (inner === undefined) throw new Error(`there is no ${name} to listen to`);
  members[name] = function (this: unknown, ...args: unknown[]) {
    return around(() => inner.apply(this, args), args);
  };
}
