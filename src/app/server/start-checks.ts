import { existsSync } from 'node:fs';
import type { IncomingMessage, Server } from 'node:http';
import { isIPv4 } from 'node:net';
import { SCANNED_BATCH } from '../../bounds.ts';
import { parameterHint } from '../../inputs/scope-hints.ts';
import type { TokenStore } from '../../ports/token-store.ts';
import type { Scope } from '../../scope/index.ts';
import type { KeyOptions } from '../../values/keys.ts';
import { inputError } from '../terminal/errors.ts';
import { firstAccountFile } from './files/account-files.ts';
import { keyFile } from './files/key-file.ts';
import { describeOpen, openToOthers } from './files/permissions.ts';
import { weakKeys } from './files/weak-keys.ts';
import { theLog } from './logs/log.ts';
import type { ServeSettings } from './settings.ts';
import type { StoreTarget } from './stores/open.ts';

/**
 * Refuses to start, as ssh does, while other users can read or change the keys or the account of
 * the data folder.
 *
 * @throws {CliError} naming the file, its mode and the command that fixes it
 */
export function refuseOpenSecrets({ data, keys, accounts, accountFile }: ServeSettings): void {
  const hasAccounts = accounts.length > 0 || accountFile !== undefined;
  const secrets = [
    ...(keys === undefined ? [keyFile(data)] : []),
    ...(hasAccounts ? [] : [firstAccountFile(data)]),
  ];
  for (const secret of secrets) {
    const open = openToOthers(secret);
    if (open !== undefined) throw inputError(describeOpen(open));
  }
}

/**
 * Refuses to make new keys while there are tokens: their values would stop working. If the old keys
 * were put back later, the values that were issued since would stop.
 *
 * @throws {CliError} that says where the keys belong
 */
export async function refuseLostKeys(
  path: string,
  { file, name }: StoreTarget,
  store: TokenStore,
): Promise<void> {
  // The store first: another process in this folder makes its keys before its first token.
  if (!(await holdsTokens(store)) || existsSync(path)) return;
  throw inputError(
    `there is no ${path}, but ${file ?? name} holds tokens, and only the keys they were issued with open them; put ${path} back from a backup, or give its place by --keys (TOKENWRIGHT_KEYS); if the keys are lost, tokenwright keys new makes others, with which all values are refused until their tokens are rotated`,
  );
}

/** Whether any token is not revoked. */
async function holdsTokens(store: TokenStore): Promise<boolean> {
  for (let after: string | undefined; ; ) {
    const step = await store.scan?.({ after, limit: SCANNED_BATCH });
    if (step?.records.some(({ revokedAt }) => revokedAt === undefined)) return true;
    after = step?.next;
    if (after === undefined) return false;
  }
}

/** The facts of a started service. */
export interface Started {
  readonly settings: ServeSettings;
  readonly keys: readonly KeyOptions[];
  /** The SQLite files; none for another database. */
  readonly files: readonly string[];
  /** The address on which it listens. */
  readonly address: string;
}

/** Lists risks that do not stop the service: their fix is a decision of its operator. */
export function startWarnings({ settings, keys, files, address }: Started): string[] {
  const paths = [...filesBeside(settings), ...files];
  const open = paths.map(openToOthers).filter((found) => found !== undefined);
  return [
    ...open.map(describeOpen),
    ...weakKeys(keys),
    ...plainHttpWarning(address),
    ...exampleWarning(settings, address),
  ];
}

/** Files that only cause a warning: the mode of a mounted secret often cannot be chosen. */
function filesBeside({ data, keys, accounts, accountFile, store }: ServeSettings): string[] {
  const isUsed = keys === undefined || store === undefined || accounts.length === 0;
  return [
    ...(isUsed ? [data] : []),
    ...(keys === undefined ? [] : [keys]),
    ...(accountFile === undefined ? [] : [accountFile]),
  ];
}

/**
 * Warns of the example catalog, unless this looks like a first look: on this machine, with SQLite.
 */
function exampleWarning({ catalog, store }: ServeSettings, address: string): string[] {
  if (catalog.length > 0 || (store === undefined && isLoopback(address))) return [];
  return [
    'tokens can have only the scopes of an example, acme.example, because no catalog is given; give yours with --catalog (TOKENWRIGHT_CATALOG)',
  ];
}

function isLoopback(address: string): boolean {
  return address === '::1' || (isIPv4(address) && address.startsWith('127.'));
}

function plainHttpWarning(address: string): string[] {
  if (isLoopback(address)) return [];
  return [
    `it listens on ${address}, which other machines can reach, and speaks plain HTTP; put a proxy with TLS in front of it`,
  ];
}

/**
 * Warns once of a request through a proxy if no setting says how it names its clients: all of them
 * then count as one. Stops listening after that.
 */
export function warnOfProxy(server: Server, { trustProxy, clientHeader }: ServeSettings): void {
  if (trustProxy.length > 0 || clientHeader !== undefined) return;
  const look = ({ headers }: IncomingMessage) => {
    const name = FORWARDED.find((header) => headers[header.toLowerCase()] !== undefined);
    if (name === undefined) return;
    server.off('request', look);
    warn(
      `a request came with the header ${name}, as behind a proxy; give --trust-proxy or --client-header, or wrong passwords of all its clients count as those of one`,
    );
  };
  server.on('request', look);
}

const FORWARDED = ['X-Forwarded-For', 'Forwarded'];

/** How many scopes get a warning of their own; `catalog lint` lists all. */
const MAX_WARNED = 3;

/** Warns of segments such as `:id`: in a router they match anything, in a scope only that text. */
export function warnOfParameters(scopes: Iterable<Scope>): void {
  const hints = [...scopes].flatMap((scope) => {
    const hint = parameterHint(scope);
    return hint === undefined ? [] : [`${scope}: ${hint}`];
  });
  for (const hint of hints.slice(0, MAX_WARNED)) warn(hint);
  const rest = hints.length - MAX_WARNED;
  if (rest > 0) warn(`${rest} more scopes are like that`);
}

/** Warns the operator. */
export function warn(message: string): void {
  theLog().warn(message);
}
