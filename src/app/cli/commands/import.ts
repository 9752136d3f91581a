import { closeSync, openSync, writeSync } from 'node:fs';
import {
  type ImportInput,
  type ImportReport,
  isTokenError,
  type RefusedRow,
  type TokenService,
} from '../../../index.ts';
import type { ScopeCatalog } from '../../../scope/index.ts';
import { count, shownName } from '../../../text/wording.ts';
import { systemClock } from '../../../time/clock.ts';
import { isFormatName, isObject } from '../../../token/record.ts';
import { generateKey } from '../../../values/keys.ts';
import { readCatalog } from '../../server/files/catalog-files.ts';
import { OWNER_ONLY } from '../../server/files/private-file.ts';
import {
  readSettings,
  SERVICE_SETTINGS,
  STORE_SETTINGS,
  serviceOptions,
} from '../../server/settings.ts';
import { storeTarget, withStore } from '../../server/stores/open.ts';
import { inputError, usageError } from '../../terminal/errors.ts';
import { parseMembers, quote, readJson } from '../../terminal/inputs.ts';
import { LIFETIME, readFlag } from '../../terminal/kinds.ts';
import { printable } from '../../terminal/layout.ts';
import { catalogPaths, refuseWildcards } from '../account/connect.ts';
import { command, type Outcome } from '../command.ts';
import { progressOn } from '../progress.ts';
import { COLUMNS, type OldRow, type OldToken, readRows, refusal } from './import-rows.ts';
import { STORE_CATALOG_FLAGS, STORE_FAULT, STORE_FLAGS } from './store-flags.ts';
import { readScopeFlags, SCOPE_FLAG } from './token-input.ts';

/** How many refused rows are printed; the file of --refused takes all. */
const MAX_PRINTED = 20;

/** Imports the tokens of another system. */
export const IMPORT = command({
  name: 'token import',
  summary: 'imports tokens from another system',
  about: `Existing values keep working. It reads rows from standard input: JSON, one object in each line, or CSV with the names of the
columns in the first line. The columns are ${COLUMNS.slice(0, 5).join(', ')},
${COLUMNS.slice(5, -1).join(', ')} and ${COLUMNS.at(-1)}. Only digest is required: the SHA-256 that the old
system has stored, in hex, base64 or base64url. The rows hold no values. Salted and slow hashes are
refused: nobody could find a token by them. The guide has a query for each system.

Scopes are taken as they are. What permissions mean is in the file of --map, a JSON object of lists of
scopes. A row with a permission that is not in it is refused. --scope is for rows that have neither.

Tokens that had expired there are left out. Disabled ones come suspended. Tokens that never expired, or
that would live longer than --max-ttl of serve allows, get an expiry.

It can be stopped and run again: a row that was imported before is skipped, and its token stays as it
is. Try with --dry-run first. It does not see rows that come twice, nor that an account would have
too many tokens.`,
  flags: {
    format: {
      type: 'string',
      value: 'NAME',
      isRequired: true,
      help: 'the format of the values, as in --foreign of serve, such as sanctum',
    },
    map: { type: 'string', value: 'FILE', help: 'the scopes of each permission, in JSON' },
    scope: { ...SCOPE_FLAG, help: 'the scopes of rows without scopes and permissions' },
    account: {
      type: 'string',
      value: 'NAME',
      help: 'the account of all rows; otherwise each row names its own',
    },
    ttl: {
      type: 'string',
      value: 'TIME',
      help: 'the lifetime of tokens that never expired, from now, such as 90d; default: the longest',
    },
    'dry-run': { type: 'boolean', help: 'check all rows, and write nothing' },
    refused: {
      type: 'string',
      value: 'FILE',
      help: `write all refused rows to this file, one JSON object in a line; otherwise ${MAX_PRINTED} are printed`,
    },
    ...STORE_FLAGS,
    ...STORE_CATALOG_FLAGS,
    patterns: {
      type: 'boolean',
      help: 'without --catalog: keep wildcards in scopes; otherwise they are refused',
    },
  },
  json: `{ store, dryRun, rows, imported, skipped, ended, suspended, shortened, refused, refusals } where skipped were imported before, ended had expired, and refusals are the first ${MAX_PRINTED}, each { line, code, message }`,
  exits: {
    0: 'all rows are imported, or left out as above',
    1: `${STORE_FAULT}, or standard input cannot be read`,
    3: 'some rows were refused',
  },
  example: {
    call: 'token import --format sanctum --map abilities.json --dry-run < tokens.jsonl',
    output: `would import 2 of 4 rows into SQLite in data/tokens.db; nothing was written
  left out   1, expired there
  refused    1
line 3: --map has no "orders:delete": add it, with [] if it grants nothing`,
  },
  async run(_, flags) {
    const { format = '' } = flags;
    if (!isFormatName(format)) {
      throw usageError(
        '--format must be the name of a format in --foreign of serve, such as sanctum',
      );
    }
    const settings = readSettings([...STORE_SETTINGS, ...SERVICE_SETTINGS], flags);
    const options = serviceOptions(settings);
    const { catalog, rights } = await rightsOf(flags);
    const { maxSeconds } = options.lifetime;
    const ttlSeconds = Math.min(readFlag(LIFETIME, 'ttl', flags.ttl) ?? maxSeconds, maxSeconds);
    if (process.stdin.isTTY) {
      throw usageError('rows are required on standard input; see tokenwright token import --help');
    }
    const target = storeTarget(settings);
    const report = new RefusalReport(flags.refused);
    const progress = progressOn(process.stderr);
    const dryRun = flags['dry-run'] === true;
    try {
      const imported = await withStore(target, async ({ store }) => {
        const { TokenService } = await import('../../../index.ts');
        // Any key will do: no value is read or made.
        const keys = [generateKey()];
        const foreign = [{ name: format, hashedPart: () => undefined }];
        const tokens = new TokenService({ ...options, store, keys, foreign, catalog });
        return importRows(readRows(process.stdin), {
          ...{ tokens, rights, format, dryRun, ttlSeconds, maxSeconds },
          account: flags.account,
          now: systemClock.now().getTime(),
          onRefused: report.add,
          onProgress: progress.of('read'),
        });
      });
      const isKnown = settings.foreign.some(({ name }) => name === format);
      const unknownFormat = isKnown ? undefined : format;
      return outcomeOf({ imported, dryRun, store: target.name, report, unknownFormat });
    } finally {
      progress.end();
      report.close();
    }
  },
});

interface RightsFlags {
  readonly map?: string | undefined;
  readonly scope?: readonly string[] | undefined;
  readonly catalog?: readonly string[] | undefined;
  readonly patterns?: boolean | undefined;
}

async function rightsOf(
  flags: RightsFlags,
): Promise<{ readonly catalog: ScopeCatalog | undefined; readonly rights: Rights }> {
  const paths = catalogPaths(flags);
  const scopes = (await readScopeFlags(flags.scope ?? [], 'scope')).map(String);
  const map = flags.map === undefined ? undefined : readPermissionMap(flags.map);
  const catalog = paths.length === 0 ? undefined : await readCatalog(paths, flags);
  const allowsWildcards = flags.patterns === true || catalog !== undefined;
  if (!allowsWildcards) refuseWildcards([...scopes, ...[...(map?.values() ?? [])].flat()]);
  return { catalog, rights: { map, scopes, allowsWildcards } };
}

/** The scopes of each permission of the old system. */
type PermissionMap = ReadonlyMap<string, readonly string[]>;

/** What rows may do here. */
export interface Rights {
  readonly map: PermissionMap | undefined;
  /** The scopes of rows that have neither scopes nor permissions. */
  readonly scopes: readonly string[];
  readonly allowsWildcards: boolean;
}

/**
 * Reads a JSON object of permissions, each with a list of scopes.
 *
 * @throws {CliError} naming the permission whose scopes are wrong
 */
export function readPermissionMap(path: string): PermissionMap {
  const map = readJson(path);
  if (!isObject(map) || Object.keys(map).length === 0) {
    throw inputError(
      `${path} must be a JSON object, such as {"orders:read":["GET:shop.example/orders"]}`,
    );
  }
  const entries = Object.entries(map).map(
    ([name, scopes]) =>
      [name, parseMembers(scopes, `${path}: ${quote(name)}`).map(String)] as const,
  );
  return new Map(entries);
}

/**
 * The scopes of a row. Refuses a permission that the map does not have: if the token lost a right
 * without a word, its bearer would break.
 *
 * @throws {TokenError}
 */
export function scopesOf(
  { scopes, permissions }: Pick<OldToken, 'scopes' | 'permissions'>,
  rights: Rights,
): readonly string[] {
  if (scopes === undefined && permissions === undefined) {
    if (rights.scopes.length > 0) return rights.scopes;
    throw refusal('the row has no scopes and no permissions: give --scope for such rows');
  }
  const mapped = permissions?.flatMap((name) => ofPermission(name, rights.map)) ?? [];
  const all = [...new Set([...(scopes ?? []), ...mapped])];
  if (rights.allowsWildcards || !all.some((scope) => scope.includes('*'))) return all;
  throw refusal('one of its scopes has a wildcard: give --catalog, or --patterns to keep it');
}

function ofPermission(name: string, map: PermissionMap | undefined): readonly string[] {
  if (map === undefined) throw refusal('the row has permissions: give --map');
  const scopes = map.get(name);
  if (scopes !== undefined) return scopes;
  // Unlike other names, a permission may hold colons and stars.
  const shown = /^[\w.:*/-]{1,64}$/.test(name) ? `"${name}"` : shownName(name);
  throw refusal(`--map has no ${shown}: add it, with [] if it grants nothing`);
}

/** A row that was refused. */
export interface Refusal {
  /** Where it begins in the input. */
  readonly line: number;
  readonly code: string;
  readonly message: string;
}

/** What an import did, or would do. */
export interface Imported extends ImportReport {
  /** Rows that had expired in the old system, and were left out. */
  readonly ended: number;
  /** Rows that were not refused and were disabled in the old system, so that their tokens are suspended. */
  readonly suspended: number;
  /** Rows that were not refused, with tokens that expire earlier than there, or never expired there. */
  readonly shortened: number;
}

export interface ImportOptions {
  readonly tokens: Pick<TokenService, 'importMany'>;
  readonly rights: Rights;
  readonly format: string;
  /** The account of all rows; otherwise each row names its own. */
  readonly account: string | undefined;
  readonly now: number;
  /** The lifetime, from now, of tokens that never expired in the old system. */
  readonly ttlSeconds: number;
  /** The longest lifetime from now. */
  readonly maxSeconds: number;
  readonly dryRun: boolean;
  readonly onRefused: (refused: Refusal) => void;
  readonly onProgress: (rows: number) => void;
}

/**
 * Imports the rows of another system as they are read, and keeps none of them.
 *
 * @throws {CliError} if the store fails, with the number of rows that were imported before
 */
export async function importRows(
  rows: AsyncIterable<OldRow>,
  options: ImportOptions,
): Promise<Imported> {
  const run = new ImportRun(options);
  const { tokens, dryRun } = options;
  try {
    const { onRefused, onProgress } = run;
    const report = await tokens.importMany(run.inputs(rows), { dryRun, onRefused, onProgress });
    return { ...report, ...run.counts };
  } catch (error) {
    if (!isTokenError(error) || run.done === undefined) throw error;
    throw inputError(
      `${error.message}; ${run.done.imported} rows were imported before: run it again, and it goes on`,
    );
  }
}

/** One import. */
class ImportRun {
  readonly counts = { rows: 0, ended: 0, suspended: 0, shortened: 0, refused: 0 };
  /** The report on the steps that the service has finished. */
  done: ImportReport | undefined;
  readonly #options: ImportOptions;
  /** The rows of the step that the service works on, without those that it has refused. */
  readonly #step = new Map<number, { readonly line: number; readonly old: OldToken }>();
  #sent = 0;

  constructor(options: ImportOptions) {
    this.#options = options;
  }

  async *inputs(rows: AsyncIterable<OldRow>): AsyncGenerator<ImportInput> {
    for await (const { line, token } of rows) {
      this.counts.rows += 1;
      try {
        if (isTokenError(token)) throw token;
        if (token.expiresAt !== undefined && token.expiresAt.getTime() <= this.#options.now) {
          this.counts.ended += 1;
          continue;
        }
        const input = inputOf(token, this.#options);
        this.#sent += 1;
        this.#step.set(this.#sent, { line, old: token });
        yield input;
      } catch (error) {
        if (!isTokenError(error)) throw error;
        this.#refuse(line, error);
      }
    }
  }

  readonly onRefused = ({ row, code, message }: RefusedRow): void => {
    const { line = 0 } = this.#step.get(row) ?? {};
    this.#step.delete(row);
    this.#refuse(line, { code, message });
  };

  readonly onProgress = (report: ImportReport): void => {
    for (const { old } of this.#step.values()) {
      if (old.isDisabled) this.counts.suspended += 1;
      if (old.expiresAt?.getTime() !== expiryOf(old, this.#options)) this.counts.shortened += 1;
    }
    this.#step.clear();
    this.done = report;
    this.#options.onProgress(this.counts.rows);
  };

  #refuse(line: number, { code, message }: Omit<Refusal, 'line'>): void {
    this.counts.refused += 1;
    this.#options.onRefused({ line, code, message });
  }
}

function inputOf(old: OldToken, options: ImportOptions): ImportInput {
  const { digest, name, metadata, createdAt, isDisabled: suspended } = old;
  const { rights, format, account = old.account } = options;
  if (account === undefined) throw refusal('the row has no account: give --account, or select one');
  if (digest === undefined) throw refusal('the row has no digest');
  const scopes = scopesOf(old, rights);
  const expiresAt = new Date(expiryOf(old, options));
  return { account, digest, format, scopes, expiresAt, name, metadata, createdAt, suspended };
}

function expiryOf({ expiresAt }: OldToken, { now, ttlSeconds, maxSeconds }: ImportOptions): number {
  const latest = now + (expiresAt === undefined ? ttlSeconds : maxSeconds) * 1000;
  return Math.min(expiresAt?.getTime() ?? latest, latest);
}

/** Keeps the first refused rows to print them, and writes all of them to a file if one is given. */
class RefusalReport {
  readonly first: Refusal[] = [];
  readonly path: string | undefined;
  readonly #file: number | undefined;

  /** @param path of the file, which is replaced */
  constructor(path: string | undefined) {
    this.path = path;
    this.#file = path === undefined ? undefined : openSync(path, 'w', OWNER_ONLY);
  }

  readonly add = (refused: Refusal): void => {
    if (this.first.length < MAX_PRINTED) this.first.push(refused);
    if (this.#file !== undefined) writeSync(this.#file, `${JSON.stringify(refused)}\n`);
  };

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
  }
}

interface Result {
  readonly imported: Imported;
  readonly dryRun: boolean;
  /** The name of the store. */
  readonly store: string;
  readonly report: RefusalReport;
  /** The format of the values, unless the settings accept it. */
  readonly unknownFormat: string | undefined;
}

function outcomeOf({ imported, dryRun, store, report, unknownFormat }: Result): Outcome {
  const { rows, skipped, ended, suspended, shortened, refused } = imported;
  // Within a batch, some rows are refused here and others later by the service.
  const refusals = report.first.toSorted((one, other) => one.line - other.line);
  const isNew = imported.imported > 0;
  const facts = [
    ['skipped', skipped, ', imported before'],
    ['left out', ended, ', expired there'],
    // On a second run, their tokens may have been changed since.
    ['suspended', isNew ? suspended : 0, ', disabled there'],
    ['shortened', isNew ? shortened : 0, ', with an earlier expiry than there, or a first one'],
    ['refused', refused, ''],
  ] as const;
  const done = `${imported.imported} of ${count(rows, 'row')} into ${store}`;
  const lines = [
    dryRun ? `would import ${done}; nothing was written` : `imported ${done}`,
    ...facts.flatMap(([label, rows, what]) =>
      rows === 0 ? [] : [`  ${label.padEnd(9)}  ${rows}${what}`],
    ),
    ...refusals.map((each) => `line ${each.line}: ${printable(each.message)}`),
    ...(refused > refusals.length ? [moreOf(refused - refusals.length, report.path)] : []),
  ];
  return {
    text: lines.join('\n'),
    json: { store, dryRun, ...imported, refusals },
    ...(unknownFormat !== undefined && {
      notes: `serve accepts their values with --foreign (TOKENWRIGHT_FOREIGN) ${unknownFormat}, with their prefix; see tokenwright serve --help`,
    }),
    isNegative: refused > 0,
  };
}

function moreOf(rest: number, path: string | undefined): string {
  return path === undefined
    ? `and ${rest} more: give --refused FILE to see all`
    : `and ${rest} more in ${printable(path)}`;
}
