import type { JsonObject } from '../../../token/record.ts';
import { Cells } from './cells.ts';
import { type Columns, plainName, refusal } from './rows.ts';

/** A token of the old system, as its row describes it. */
export interface OldToken {
  readonly account: string | undefined;
  readonly digest: string | undefined;
  /** Its permissions, as the old system names them; absent if the row does not say. */
  readonly permissions: readonly string[] | undefined;
  readonly createdAt: Date | undefined;
  /** Absent if it never expires. */
  readonly expiresAt: Date | undefined;
  readonly isDisabled: boolean;
  /** Whether it ended for good: it cannot be enabled again in the old system. */
  readonly isRevoked: boolean;
  readonly name: string | undefined;
  readonly metadata: JsonObject | undefined;
}

/** Reads one row. A reader may remember the rows before it. @throws {TokenError} */
export type ReadOldToken = (columns: Columns) => OldToken;

/** A system whose tokens can be imported. */
export interface OldSystem {
  /** The name of the format of its values; absent if `--format` has to name it. */
  readonly format?: string;
  /** Makes a reader for one import. */
  reader(): ReadOldToken;
}

/** By the name in `--from`. A column `account` wins over the columns of the system. */
export const SYSTEMS = {
  sanctum: { format: 'sanctum', reader: sanctumReader },
  'better-auth': { format: 'better-auth', reader: () => readBetterAuth },
  'unkey-export': { format: 'unkey', reader: () => readUnkey },
  keypal: { format: 'keypal', reader: () => readKeypal },
  csv: { reader: () => readCsv },
} as const satisfies Readonly<Record<string, OldSystem>>;

export type SystemName = keyof typeof SYSTEMS;

/** The table `personal_access_tokens`. */
function sanctumReader(): ReadOldToken {
  let first: string | undefined;
  const checkType = (type: string | undefined) => {
    first ??= type;
    if (type === first) return;
    // Owners of two types may have the same number, and would become one account.
    throw refusal(
      'its tokenable_type is another one than that of the first row: select a column account that tells their owners apart',
    );
  };
  return (columns) => {
    const cells = new Cells(columns);
    for (const name of ['token', 'abilities', 'expires_at']) cells.require(name);
    if (!cells.has('account')) checkType(cells.text('tokenable_type'));
    return {
      ...DEFAULTS,
      account: cells.text('account', 'tokenable_id'),
      digest: cells.text('token'),
      permissions: cells.list('abilities'),
      createdAt: cells.time('created_at'),
      expiresAt: cells.time('expires_at'),
      name: cells.text('name'),
    };
  };
}

/** The table `apikey`. */
function readBetterAuth(columns: Columns): OldToken {
  const cells = new Cells(columns);
  for (const name of ['key', 'permissions', 'enabled', 'expiresAt']) cells.require(name);
  return {
    ...DEFAULTS,
    account: cells.text('account', 'referenceId', 'userId'),
    digest: cells.text('key'),
    permissions: pairsOf(cells.object('permissions'), 'permissions'),
    createdAt: cells.time('createdAt'),
    expiresAt: cells.time('expiresAt'),
    isDisabled: cells.flag('enabled') === false,
    name: cells.text('name'),
    metadata: cells.object('metadata'),
  };
}

/** The table `keys`, with the permissions of each key. */
function readUnkey(columns: Columns): OldToken {
  const cells = new Cells(columns);
  for (const name of ['hash', 'permissions', 'enabled', 'expires']) cells.require(name);
  cells.require('deleted_at_m', 'deleted_at');
  return {
    ...DEFAULTS,
    account: cells.text('account', 'external_id', 'owner_id'),
    digest: cells.text('hash'),
    permissions: cells.list('permissions'),
    createdAt: cells.time('created_at_m', 'created_at'),
    expiresAt: cells.time('expires'),
    isDisabled: cells.flag('enabled') === false,
    isRevoked: cells.time('deleted_at_m', 'deleted_at') !== undefined,
    name: cells.text('name'),
    metadata: cells.object('meta'),
  };
}

/** A record of keypal: most of it is in one object. */
function readKeypal(columns: Columns): OldToken {
  const cells = new Cells(columns);
  for (const name of ['key_hash', 'metadata']) cells.require(name);
  const of = new Cells(new Map(Object.entries(cells.object('metadata') ?? {}).map(plainEntry)));
  const scopes = of.list('scopes');
  const resources = pairsOf(of.object('resources'), 'resources');
  return {
    ...DEFAULTS,
    account: cells.text('account') ?? of.text('ownerId'),
    digest: cells.text('key_hash'),
    permissions: scopes || resources ? [...(scopes ?? []), ...(resources ?? [])] : undefined,
    createdAt: of.time('createdAt'),
    expiresAt: of.time('expiresAt'),
    isDisabled: of.flag('enabled') === false,
    isRevoked: of.time('revokedAt') !== undefined,
    name: of.text('name'),
  };
}

function plainEntry([name, value]: readonly [string, unknown]): readonly [string, unknown] {
  return [plainName(name), value];
}

const CSV_COLUMNS = [
  ...['account', 'digest', 'scopes', 'expires_at', 'created_at', 'enabled', 'revoked_at'],
  ...['name', 'metadata'],
];

/** A table with our own names of columns. Refuses any other, since it may be a misspelled one. */
function readCsv(columns: Columns): OldToken {
  const cells = new Cells(columns);
  cells.require('digest');
  if (cells.others(CSV_COLUMNS).length > 0) {
    throw refusal(`the columns may be ${CSV_COLUMNS.join(', ')}: there is another one`);
  }
  return {
    account: cells.text('account'),
    digest: cells.text('digest'),
    permissions: cells.list('scopes'),
    createdAt: cells.time('created_at'),
    expiresAt: cells.time('expires_at'),
    isDisabled: cells.flag('enabled') === false,
    isRevoked: cells.time('revoked_at') !== undefined,
    name: cells.text('name'),
    metadata: cells.object('metadata'),
  };
}

const DEFAULTS = { isDisabled: false, isRevoked: false, metadata: undefined } as const;

/** `{ orders: ['read'] }` as `orders:read`. */
function pairsOf(object: JsonObject | undefined, name: string): readonly string[] | undefined {
  if (object === undefined) return undefined;
  return Object.entries(object).flatMap(([resource, actions]) => {
    const isList = Array.isArray(actions) && actions.every((each) => typeof each === 'string');
    if (!isList) throw refusal(`${name} must be an object of lists, as {"orders":["read"]}`);
    return (actions as readonly string[]).map((action) => `${resource}:${action}`);
  });
}
