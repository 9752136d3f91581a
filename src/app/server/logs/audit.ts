import { AsyncLocalStorage } from 'node:async_hooks';
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { SignIn } from '../../../http/index.ts';
import { type RequestEvent, systemClock, type TokenEvent } from '../../../index.ts';
import { clearTimeout, setTimeout } from '../../../time/timers.ts';
import { type CliError, inputError } from '../../terminal/errors.ts';
import { printable } from '../../terminal/layout.ts';
import { masked } from '../../terminal/masking.ts';
import { OWNER_ONLY } from '../files/private-file.ts';
import { LineWriter, outputSink, type Sink } from './log.ts';

/** Pairs of an account and an address that the audit log remembers. @bound */
export const MAX_AUDITED_SIGN_INS = 10_000;

/** Milliseconds for which an account that signs in again from the same address is not written again. @bound */
export const AUDIT_PAUSE_MS = 60_000;

/** Failed sign-ins, and other events that callers cause, in the audit log in one second. @bound */
export const MAX_AUDITED_FAILURES = 50;

const SECOND_MS = 1000;
const LINE_END = 10;
/** An address as a proxy may send it, with or without a port. */
const ADDRESS = /^[\w.:%[\]-]{1,100}$/;

/** The events to log. Accepted and refused values are left out: resource servers log those. */
const LOGGED: ReadonlySet<TokenEvent['type']> = new Set([
  'issued',
  'modified',
  'suspended',
  'resumed',
  'rotated',
  'activated',
  'revoked',
  'revoked_all',
  'revealed',
  'purged',
  'reused',
  'store_trouble',
  'clock_ahead',
]);

/** The events that callers can cause at any rate, so that the log limits their number. */
const LIMITED: ReadonlySet<TokenEvent['type']> = new Set(['reused', 'store_trouble']);

const SIGN_INS = {
  accepted: 'signed_in',
  refused: 'sign_in_refused',
  limited: 'sign_in_limited',
  unavailable: 'sign_in_unavailable',
} as const satisfies Record<SignIn['outcome'], string>;

/** What happens to a session of the console. */
export type SessionEvent = 'session_begun' | 'session_ended' | 'session_refused';

/** A session, for the log. */
export interface AuditedSession {
  /** Absent if the cookie is not one of this service. */
  readonly user: string | undefined;
  /** Names the session, and opens nothing. */
  readonly session: string | undefined;
  readonly address: string | undefined;
}

/**
 * Opens the audit log of `serve`.
 *
 * @param path a file, or `-` for standard output
 * @param onTrouble called when writing begins to fail; the service goes on
 * @throws {CliError} when the file cannot be opened
 */
export async function openAudit(
  path: string,
  onTrouble: (message: string) => void,
): Promise<Audit> {
  const sink = path === '-' ? outputSink() : await openLogFile(path);
  const name = path === '-' ? 'standard output' : path;
  const writer = new LineWriter(sink, {
    lostLine: (count) => lineOf(systemClock.now(), 'lines_lost', { count }),
    onTrouble: (error) =>
      onTrouble(
        `the audit log cannot be written to ${name} (${codeOf(error)}); its lines are lost until it can be`,
      ),
  });
  return new Audit(writer);
}

async function openLogFile(path: string): Promise<Sink> {
  try {
    return await fileSink(path);
  } catch (error) {
    throw notOpened(path, error);
  }
}

/**
 * Refuses a path that {@link openAudit} would refuse. Makes nothing.
 *
 * @throws {CliError}
 */
export function checkAudit(path: string): void {
  if (path === '-') return;
  try {
    const exists = existsSync(path);
    accessSync(exists ? path : dirname(path), constants.W_OK);
    if (exists && statSync(path).isDirectory()) {
      throw Object.assign(new Error(path), { code: 'EISDIR' });
    }
  } catch (error) {
    throw notOpened(path, error);
  }
}

function notOpened(path: string, error: unknown): CliError {
  return inputError(`${path} cannot be opened for --audit (TOKENWRIGHT_AUDIT): ${codeOf(error)}`);
}

/**
 * Logs sign-ins, failed sign-ins, sessions and changes of tokens, one JSON object per line. Never logs a
 * value, a cookie, a password, or an unknown user name, which may be a password.
 */
export class Audit {
  readonly #lines: Pick<LineWriter, 'write' | 'close'>;
  readonly #failures = new Allowance((count) => this.#writeNow('sign_ins_left_out', { count }));
  readonly #trouble = new Allowance((count) => this.#writeNow('events_left_out', { count }));
  readonly #users = new Set<string>();
  /** The session of the call in progress. */
  readonly #call = new AsyncLocalStorage<{ session?: string }>();
  /** The time of the last logged sign-in by account and address. */
  readonly #signedIn = new Map<string, number>();

  constructor(lines: Pick<LineWriter, 'write' | 'close'>) {
    this.#lines = lines;
  }

  /** Adds users whose names may be logged. */
  addUsers(users: Iterable<{ readonly username: string }>): void {
    for (const { username } of users) this.#users.add(username);
  }

  /** Logs a change of tokens or a failure of the store. */
  readonly recordEvent = (event: TokenEvent): void => {
    const { type, at, ...about } = event;
    if (!LOGGED.has(type)) return;
    if (LIMITED.has(type) && !this.#trouble.take()) return;
    const session = this.#call.getStore()?.session;
    this.#write(at, type, session === undefined ? about : { ...about, session });
  };

  /** Logs what happens to a request for a token. */
  readonly recordRequest = ({ type, at, id, ...about }: RequestEvent): void => {
    if (type === 'requested' && !this.#trouble.take()) return;
    const session = this.#call.getStore()?.session;
    this.#write(at, type, { request: id, ...about, ...(session !== undefined && { session }) });
  };

  /** Does the work of one call, whose session may be named meanwhile. */
  inCall(work: () => void): void {
    this.#call.run({}, work);
  }

  /** Names the session of this call, for the changes that it makes. */
  nameSession(session: string): void {
    const call = this.#call.getStore();
    if (call !== undefined) call.session = session;
  }

  /** Logs what happens to a session. */
  recordSession(event: SessionEvent, { user, session, address }: AuditedSession): void {
    if (event === 'session_refused' && !this.#failures.take()) return;
    this.#writeNow(event, { user: user ?? null, session, ...addressIn(address) });
  }

  /** Logs a sign-in or its failure. */
  readonly recordSignIn = ({ outcome, username, address, account, at }: SignIn): void => {
    const from = addressIn(address);
    if (outcome === 'accepted') {
      if (this.#isNew(`${account}\n${address}`, at.getTime())) {
        this.#write(at, SIGN_INS.accepted, { account, ...from });
      }
    } else if (this.#failures.take()) {
      const user = this.#users.has(username) ? username : null;
      this.#write(at, SIGN_INS[outcome], { user, ...from });
    }
  };

  /** Resolves when everything is written. */
  async close(): Promise<void> {
    this.#failures.flush();
    this.#trouble.flush();
    await this.#lines.close();
  }

  #isNew(name: string, now: number): boolean {
    const before = this.#signedIn.get(name);
    if (before !== undefined && Math.abs(now - before) < AUDIT_PAUSE_MS) return false;
    this.#signedIn.delete(name);
    const [oldest] = this.#signedIn.keys();
    if (this.#signedIn.size >= MAX_AUDITED_SIGN_INS) this.#signedIn.delete(oldest ?? '');
    this.#signedIn.set(name, now);
    return true;
  }

  #writeNow(event: string, about: Readonly<Record<string, unknown>>): void {
    this.#write(systemClock.now(), event, about);
  }

  #write(at: Date, event: string, about: Readonly<Record<string, unknown>>): void {
    this.#lines.write(lineOf(at, event, about));
  }
}

function addressIn(address: string | undefined): { readonly address?: string | null } {
  return address === undefined ? {} : { address: ADDRESS.test(address) ? address : null };
}

/** Allows some lines in each second, and counts the others. */
class Allowance {
  readonly #report: (dropped: number) => void;
  #taken = 0;
  #end: ReturnType<typeof setTimeout> | undefined;

  /** @param report called at the end of a second in which lines were dropped */
  constructor(report: (dropped: number) => void) {
    this.#report = report;
  }

  /** Returns whether one more line is allowed. */
  take(): boolean {
    this.#end ??= setTimeout(() => this.flush(), SECOND_MS).unref();
    this.#taken += 1;
    return this.#taken <= MAX_AUDITED_FAILURES;
  }

  /** Ends the second, and reports the lines that were dropped in it. */
  flush(): void {
    clearTimeout(this.#end);
    const dropped = this.#taken - MAX_AUDITED_FAILURES;
    this.#end = undefined;
    this.#taken = 0;
    if (dropped > 0) this.#report(dropped);
  }
}

/** Appends to a file. If it is missing, makes it for its owner only. */
export async function fileSink(path: string): Promise<Sink> {
  const file = await open(path, 'a', OWNER_ONLY);
  /** Whether the last line was cut off, such as by a full disk. The next text begins a new line. */
  let isCut = false;
  return {
    async write(text) {
      const bytes = Buffer.from(isCut ? `\n${text}` : text);
      let written = 0;
      try {
        while (written < bytes.length) {
          written += (await file.write(bytes, written)).bytesWritten;
        }
        isCut = false;
      } catch (error) {
        if (written > 0) isCut = bytes[written - 1] !== LINE_END;
        throw error;
      }
    },
    close: () => file.close(),
  };
}

function lineOf(at: Date, event: string, about: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ at: at.toISOString(), event, ...about }, (_, value) =>
    typeof value === 'string' ? masked(printable(value)) : value,
  );
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
