import { closeSync, openSync, writeSync } from 'node:fs';
import type { ScopeCatalog } from '../../../scope/index.ts';
import { systemClock } from '../../../time/clock.ts';
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
import { usageError } from '../../terminal/errors.ts';
import { choice, LIFETIME, readFlag } from '../../terminal/kinds.ts';
import { count, printable } from '../../terminal/layout.ts';
import { catalogPaths, refuseWildcards } from '../account/connect.ts';
import { command, type Outcome } from '../command.ts';
import { type Imported, importRows, type Refusal } from '../import/import.ts';
import { Rights, readPermissionMap } from '../import/rights.ts';
import { readRows } from '../import/rows.ts';
import { type OldSystem, SYSTEMS } from '../import/systems.ts';
import { progressOn } from '../progress.ts';
import { STORE_CATALOG_FLAGS, STORE_FAULT, STORE_FLAGS } from './store-flags.ts';
import { readScopeFlags, SCOPE_FLAG } from './token-input.ts';

const SYSTEM = choice('sanctum', 'better-auth', 'unkey-export', 'keypal', 'csv');

/** How many refused rows are printed; the file of --refused takes all. */
const MAX_PRINTED = 20;

/** Brings the tokens of another system. */
export const IMPORT = command({
  name: 'import',
  summary: 'brings the tokens of another system, whose bearers go on using the same values',
  about: `It reads rows of the old system from standard input: JSON, one object in each line, or CSV with
the names of the columns in the first line. The rows hold SHA-256 hashes, never values. Salted and slow
hashes are refused: nobody could find a token by them. The guide for each system has its query.

What the old permissions mean is in the file of --map, a JSON object of lists of scopes. A row with a
permission that is not in it is refused. Instead, --scope gives all rows the same scopes, or, beside
--map, those rows that have no permissions.

Tokens that had expired or were revoked there are left out. Disabled ones come suspended. Tokens that
never expired, or that would live longer than --max-ttl of serve allows, get an expiry.

It can be stopped and run again: a row that was imported before is skipped, and its token stays as it
is. Try with --dry-run first. It does not see rows that come twice, nor that an account would have
too many tokens.`,
  flags: {
    from: {
      type: 'string',
      value: 'SYSTEM',
      isRequired: true,
      help: `${SYSTEM.values}; csv is a table of your own, with the columns account, digest, scopes, expires_at, created_at, enabled, revoked_at, name and metadata, of which only digest is required`,
    },
    format: {
      type: 'string',
      value: 'NAME',
      help: 'with csv: the format of the values, as in --foreign of serve, such as prefixed-api-key',
    },
    map: { type: 'string', value: 'FILE', help: 'the scopes of each old permission, in JSON' },
    scope: {
      ...SCOPE_FLAG,
      help: 'the scopes of rows without permissions, or without --map of all',
    },
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
  json: `{ store, dryRun, rows, imported, skipped, ended, suspended, shortened, refused, refusals } where skipped were imported before, ended had expired or were revoked, and refusals are the first ${MAX_PRINTED}, each { line, code, message }`,
  exits: {
    0: 'all rows are imported, or left out as above',
    1: `${STORE_FAULT}, or standard input cannot be read`,
    3: 'some rows were refused',
  },
  example: {
    call: 'import --from sanctum --map abilities.json --dry-run < tokens.jsonl',
    output: `would import 2 of 4 rows into SQLite in data/tokens.db; nothing was written
  left out   1, expired or revoked there
  refused    1
line 3: --map has no "orders:delete": add it, with [] if it grants nothing`,
  },
  async run(_, flags) {
    const { format, read } = systemOf(flags);
    const settings = readSettings([...STORE_SETTINGS, ...SERVICE_SETTINGS], flags);
    const options = serviceOptions(settings);
    const { catalog, rights } = await rightsOf(flags);
    const { maxSeconds } = options.lifetime;
    const ttlSeconds = Math.min(readFlag(LIFETIME, 'ttl', flags.ttl) ?? maxSeconds, maxSeconds);
    if (process.stdin.isTTY) {
      throw usageError('rows are required on standard input; see tokenwright import --help');
    }
    const target = storeTarget(settings);
    const report = new RefusalReport(flags.refused);
    const progress = progressOn(process.stderr);
    const dryRun = flags['dry-run'] === true;
    try {
      const imported = await withStore(target, async ({ store }) => {
        const { TokenService } = await import('../../../service.ts');
        // Any key will do: no value is read or made.
        const keys = [generateKey()];
        const foreign = [{ name: format, hashedPart: () => undefined }];
        const tokens = new TokenService({ ...options, store, keys, foreign, catalog });
        return importRows(readRows(process.stdin), {
          ...{ tokens, read, rights, format, dryRun, ttlSeconds, maxSeconds },
          account: flags.account,
          now: systemClock.now().getTime(),
          onRefused: report.add,
          onProgress: progress.of('read'),
        });
      });
      const isAccepted = settings.foreign.some(({ name }) => name === format);
      return outcomeOf({ imported, dryRun, store: target.name, report, format, isAccepted });
    } finally {
      progress.end();
      report.close();
    }
  },
});

interface SystemFlags {
  readonly from?: string | undefined;
  readonly format?: string | undefined;
}

function systemOf(flags: SystemFlags) {
  const name = SYSTEM.read(flags.from, '--from');
  const system: OldSystem = SYSTEMS[name];
  if (system.format !== undefined) {
    if (flags.format === undefined) return { format: system.format, read: system.reader() };
    throw usageError(`--format is for --from csv: ${name} has its own`);
  }
  if (flags.format !== undefined && /^[a-z0-9-]{1,32}$/.test(flags.format)) {
    return { format: flags.format, read: system.reader() };
  }
  throw usageError(
    '--format is required with --from csv: the name of a format in --foreign of serve, such as prefixed-api-key',
  );
}

interface RightsFlags {
  readonly from?: string | undefined;
  readonly map?: string | undefined;
  readonly scope?: readonly string[] | undefined;
  readonly catalog?: readonly string[] | undefined;
  readonly patterns?: boolean | undefined;
}

async function rightsOf(
  flags: RightsFlags,
): Promise<{ readonly catalog: ScopeCatalog | undefined; readonly rights: Rights }> {
  const { map: path, patterns = false } = flags;
  const paths = catalogPaths(flags);
  const scopes = await readScopeFlags(flags.scope ?? [], 'scope');
  if (path === undefined && scopes.length === 0 && flags.from !== 'csv') {
    throw usageError('--map or --scope is required: what the tokens may do here');
  }
  const map = path === undefined ? undefined : readPermissionMap(path);
  const catalog = paths.length === 0 ? undefined : await readCatalog(paths, flags);
  const isFree = patterns || catalog !== undefined;
  const granted = scopes.map(String);
  if (!isFree) refuseWildcards([...granted, ...[...(map?.values() ?? [])].flat()]);
  const refuses = (scope: string) => !isFree && scope.includes('*');
  return { catalog, rights: new Rights({ map, scopes: granted, refuses }) };
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
  readonly format: string;
  /** Whether the settings accept values of the format. */
  readonly isAccepted: boolean;
}

function outcomeOf({ imported, dryRun, store, report, format, isAccepted }: Result): Outcome {
  const { rows, skipped, ended, suspended, shortened, refused } = imported;
  // Within a batch, some rows are refused here and others later by the service.
  const refusals = report.first.toSorted((one, other) => one.line - other.line);
  const isNew = imported.imported > 0;
  const facts = [
    ['skipped', skipped, ', imported before'],
    ['left out', ended, ', expired or revoked there'],
    // On a second run, their tokens may have been changed since.
    ['suspended', isNew ? suspended : 0, ', disabled there'],
    ['shortened', isNew ? shortened : 0, ', with an earlier expiry than there, or a first one'],
    ['refused', refused, ''],
  ] as const;
  const lines = [
    dryRun
      ? `would import ${imported.imported} of ${count(rows, 'row')} into ${store}; nothing was written`
      : `imported ${imported.imported} of ${count(rows, 'row')} into ${store}`,
    ...facts.flatMap(([label, rows, what]) =>
      rows === 0 ? [] : [`  ${label.padEnd(9)}  ${rows}${what}`],
    ),
    ...refusals.map((each) => `line ${each.line}: ${printable(each.message)}`),
    ...(refused > refusals.length ? [moreOf(refused - refusals.length, report.path)] : []),
  ];
  const notes = isAccepted ? undefined : noteOf(format);
  return {
    text: lines.join('\n'),
    json: { store, dryRun, ...imported, refusals },
    ...(notes !== undefined && { notes }),
    isNegative: refused > 0,
  };
}

function moreOf(rest: number, path: string | undefined): string {
  return path === undefined
    ? `and ${rest} more: give --refused FILE to see all`
    : `and ${rest} more in ${printable(path)}`;
}

function noteOf(format: string): string {
  return `serve accepts their values with --foreign (TOKENWRIGHT_FOREIGN) ${format}, with their prefix; see tokenwright serve --help`;
}
