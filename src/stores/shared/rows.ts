import {
  DEFAULT_LIST_BYTES,
  LONG_LIST_BYTES,
  MAX_LIST_BYTES,
  MIN_LIST_BYTES,
} from '../../bounds.ts';
import { TokenError } from '../../errors.ts';
import type { ScannedRecords, ScanQuery } from '../../ports/token-store.ts';
import { isAncestors } from '../../token/id.ts';
import type {
  JsonObject,
  TokenId,
  TokenLimits,
  TokenOrigin,
  TokenRecord,
} from '../../token/record.ts';
import { freezeMeasured } from '../../token/size.ts';
import { limitsText, readLimits } from './limits.ts';
import { type KnownLists, type KnownRow, ListMemory, type ListText } from './list-memory.ts';
import { readWholeNumber } from './options.ts';
import { originText, readOrigin } from './origin.ts';
import { type Pending, pendingText, readPending } from './pending.ts';

/** A value in a column: times as milliseconds, lists and metadata as JSON. */
export type RowValue = string | number | Uint8Array | null;

interface ColumnSpec {
  readonly type: 'text' | 'bytes' | 'integer';
  readonly isNullable?: true;
  /** The value of a record; null if undefined. */
  readonly of: (record: TokenRecord) => RowValue | undefined;
}

/** The columns of a row, in their order. The first two never change; `replace` leaves them out. */
export const COLUMN = {
  id: { type: 'text', of: ({ id }) => id },
  account: { type: 'text', of: ({ account }) => account },
  prefix: { type: 'text', of: ({ prefix }) => prefix },
  kid: { type: 'text', of: ({ kid }) => kid },
  digest: { type: 'bytes', of: ({ digest }) => digest },
  box: { type: 'bytes', isNullable: true, of: ({ box }) => box },
  scopes: { type: 'text', of: ({ scopes }) => JSON.stringify(scopes) },
  requested: { type: 'text', of: ({ requested }) => JSON.stringify(requested) },
  created_at: { type: 'integer', of: ({ createdAt }) => createdAt.getTime() },
  expires_at: { type: 'integer', of: ({ expiresAt }) => expiresAt.getTime() },
  version: { type: 'integer', of: ({ version }) => version },
  name: { type: 'text', isNullable: true, of: ({ name }) => name },
  metadata: {
    type: 'text',
    isNullable: true,
    of: ({ metadata }) => metadata && JSON.stringify(metadata),
  },
  revoked_at: { type: 'integer', isNullable: true, of: ({ revokedAt }) => revokedAt?.getTime() },
  previous_digest: { type: 'bytes', isNullable: true, of: ({ previousDigest }) => previousDigest },
  previous_until: {
    type: 'integer',
    isNullable: true,
    of: ({ previousUntil }) => previousUntil?.getTime(),
  },
  suspended_at: {
    type: 'integer',
    isNullable: true,
    of: ({ suspendedAt }) => suspendedAt?.getTime(),
  },
  scopes_changed_at: {
    type: 'integer',
    isNullable: true,
    of: ({ scopesChangedAt }) => scopesChangedAt?.getTime(),
  },
  rotated_at: { type: 'integer', isNullable: true, of: ({ rotatedAt }) => rotatedAt?.getTime() },
  pending: { type: 'text', isNullable: true, of: ({ pending }) => pendingText(pending) },
  limits: { type: 'text', isNullable: true, of: ({ limits }) => limitsText(limits) },
  ancestors: {
    type: 'text',
    isNullable: true,
    of: ({ ancestors }) => ancestors && JSON.stringify(ancestors),
  },
  // Columns of their own, so that each database can have an index of them.
  parent: { type: 'text', isNullable: true, of: ({ ancestors }) => ancestors?.at(-1) },
  root: { type: 'text', isNullable: true, of: ({ ancestors }) => ancestors?.[0] },
  format: { type: 'text', isNullable: true, of: ({ format }) => format },
  origin: { type: 'text', isNullable: true, of: ({ origin }) => originText(origin) },
} as const satisfies Readonly<Record<string, ColumnSpec>>;

export type Column = keyof typeof COLUMN;

export const COLUMNS = /* @__PURE__ */ Object.keys(COLUMN) as readonly Column[];

/** The position of each column in a row. */
const AT = /* @__PURE__ */ Object.fromEntries(
  COLUMNS.map((column, index) => [column, index]),
) as Readonly<Record<Column, number>>;

/** The positions of the lists in a row. */
export const SCOPES = /* @__PURE__ */ COLUMNS.indexOf('scopes');
export const REQUESTED = /* @__PURE__ */ COLUMNS.indexOf('requested');

/** In the order of {@link COLUMNS}. */
export function toValues(record: TokenRecord): RowValue[] {
  return VALUES.map((of) => of(record) ?? null);
}

const VALUES = /* @__PURE__ */ COLUMNS.map((column) => COLUMN[column].of);

/** The answer of a step that reads records in the order of their ids. */
export function scanned(records: TokenRecord[], { limit }: ScanQuery): ScannedRecords {
  const last = records.length < limit ? undefined : records.at(-1);
  return { records, ...(last !== undefined && { next: last.id }) };
}

/** The remembered lists of records, by id. */
export type KnownListsById = ReadonlyMap<string, KnownLists>;

/**
 * For each record its id, followed by the digest of its remembered list. A database leaves out a list
 * only if it computes the same digest. A version would not do: after a restore, the same version may
 * have other scopes.
 */
export function digestsOf(known: KnownListsById, list: 'scopes' | 'requested'): string[] {
  return Array.from(known).flatMap(([id, { [list]: text }]) =>
    text?.name ? id + text.name.digest : [],
  );
}

/** Reads rows of a database as records. A malformed row is an error, never a record. */
export class RowReader {
  readonly #lists: ListMemory;

  /** @throws {TokenError} `invalid_options` */
  constructor({
    maxListBytes = DEFAULT_LIST_BYTES,
  }: { readonly maxListBytes?: number | undefined }) {
    readWholeNumber('maxListBytes', maxListBytes, [MIN_LIST_BYTES, MAX_LIST_BYTES]);
    this.#lists = new ListMemory(maxListBytes);
  }

  /** The remembered long lists of a record, which need not be read again. */
  known(id: TokenId): KnownLists | undefined {
    return this.#lists.known(id);
  }

  /** The same for several records; undefined if none of them has any. */
  knownOf(ids: readonly TokenId[]): KnownListsById | undefined {
    let known: Map<TokenId, KnownLists> | undefined;
    for (const id of ids) {
      const lists = this.#lists.known(id);
      if (lists !== undefined) known = (known ?? new Map()).set(id, lists);
    }
    return known;
  }

  forget(id: TokenId): void {
    this.#lists.forget(id);
  }

  /**
   * Reads the cells of a row, in the order of {@link COLUMNS}; further cells are ignored. An
   * `undefined` list is the one in `known`, and a `requested` of `null` equals `scopes`. Long lists are
   * remembered, and with a `state` the row as well.
   *
   * @throws {TokenError} `store_corrupt`
   */
  readCells(cells: readonly unknown[], known?: KnownLists, state?: string): TokenRecord {
    const id = text(cells[AT.id], 'id') as TokenId;
    const { [SCOPES]: granted, [REQUESTED]: asked } = cells;
    const before = known ?? (isLongCell(granted) || isLongCell(asked) ? this.known(id) : undefined);
    const scopes = this.#readList(granted, 'scopes', before?.scopes);
    const requested =
      asked === null
        ? scopes
        : this.#readList(asked, 'requested', before?.requested, before?.requested ?? scopes);
    if (known !== undefined || scopes.name !== undefined || requested.name !== undefined) {
      const lists = { scopes, requested };
      const isAsBefore =
        scopes.name === before?.scopes?.name && requested.name === before?.requested?.name;
      const row = state === undefined ? undefined : rowOf(state, cells, lists);
      if (!isAsBefore || row !== undefined) this.#lists.remember(id, { ...lists, row });
    }
    return {
      id,
      account: text(cells[AT.account], 'account'),
      prefix: text(cells[AT.prefix], 'prefix'),
      kid: text(cells[AT.kid], 'kid'),
      digest: digest(cells[AT.digest], 'digest'),
      box: optional(bytes, cells[AT.box], 'box'),
      scopes: scopes.list,
      requested: requested.list,
      createdAt: instant(cells[AT.created_at], 'created_at'),
      expiresAt: instant(cells[AT.expires_at], 'expires_at'),
      version: integer(cells[AT.version], 'version'),
      name: optional(text, cells[AT.name], 'name'),
      metadata: optional(object, cells[AT.metadata], 'metadata'),
      revokedAt: optional(instant, cells[AT.revoked_at], 'revoked_at'),
      previousDigest: optional(digest, cells[AT.previous_digest], 'previous_digest'),
      previousUntil: optional(instant, cells[AT.previous_until], 'previous_until'),
      suspendedAt: optional(instant, cells[AT.suspended_at], 'suspended_at'),
      scopesChangedAt: optional(instant, cells[AT.scopes_changed_at], 'scopes_changed_at'),
      rotatedAt: optional(instant, cells[AT.rotated_at], 'rotated_at'),
      pending: optional(pending, cells[AT.pending], 'pending'),
      limits: optional(limits, cells[AT.limits], 'limits'),
      ancestors: ancestorsIn(cells[AT.ancestors], cells[AT.parent], cells[AT.root]),
      format: optional(text, cells[AT.format], 'format'),
      origin: optional(origin, cells[AT.origin], 'origin'),
    };
  }

  #readList(
    cell: unknown,
    column: 'scopes' | 'requested',
    known: ListText | undefined,
    likely = known,
  ): ListText {
    if (cell !== undefined) return this.#lists.read(text(cell, column), likely, PARSERS[column]);
    if (known === undefined) throw corrupt(column);
    return known;
  }
}

function isLongCell(cell: unknown): boolean {
  return (typeof cell === 'string' || Buffer.isBuffer(cell)) && cell.length >= LONG_LIST_BYTES;
}

/** `undefined` if a long list is not remembered: the row would hold its text. */
function rowOf(
  state: string,
  cells: readonly unknown[],
  { scopes, requested }: { readonly scopes: ListText; readonly requested: ListText },
): KnownRow | undefined {
  const isHeld = ({ text, name }: ListText) => name !== undefined || text.length < LONG_LIST_BYTES;
  if (!isHeld(scopes) || !isHeld(requested)) return undefined;
  // Each read of a row must copy its bytes, and `bytes` copies only a Buffer.
  const retained = COLUMNS.map((_, index) => {
    const cell = cells[index];
    return cell instanceof Uint8Array ? Buffer.from(cell) : cell;
  });
  if (scopes.name !== undefined) retained[SCOPES] = undefined;
  if (requested === scopes) retained[REQUESTED] = null;
  else if (requested.name !== undefined) retained[REQUESTED] = undefined;
  return { state, cells: retained };
}

const PARSERS = {
  scopes: (cell: string) => parseList(cell, 'scopes'),
  requested: (cell: string) => parseList(cell, 'requested'),
};

function optional<Value>(
  read: (cell: unknown, column: Column) => Value,
  cell: unknown,
  column: Column,
): Value | undefined {
  return cell === null ? undefined : read(cell, column);
}

function text(cell: unknown, column: Column): string {
  if (typeof cell === 'string') return cell;
  // Some databases compare byte by byte only in a column of bytes.
  if (Buffer.isBuffer(cell)) return cell.toString('utf8');
  throw corrupt(column);
}

/** Bytes, or hexadecimal text: drivers read short bytes faster as text. */
function bytes(cell: unknown, column: Column): Uint8Array {
  if (typeof cell === 'string') {
    const read = Buffer.from(cell, 'hex');
    if (read.length * 2 === cell.length) return new Uint8Array(read);
  }
  if (!(cell instanceof Uint8Array)) throw corrupt(column);
  // Most drivers give a Buffer.
  return Buffer.isBuffer(cell) ? new Uint8Array(cell) : cell;
}

function digest(cell: unknown, column: Column): Uint8Array {
  const value = bytes(cell, column);
  if (value.length !== 32) throw corrupt(column);
  return value;
}

function integer(cell: unknown, column: Column): number {
  // Drivers read 64-bit integers as a number, a bigint or text.
  const number = typeof cell === 'bigint' || isWholeText(cell) ? Number(cell) : cell;
  if (typeof number !== 'number' || !Number.isSafeInteger(number)) throw corrupt(column);
  return number;
}

function isWholeText(cell: unknown): boolean {
  return typeof cell === 'string' && /^-?[0-9]{1,16}$/.test(cell);
}

function instant(cell: unknown, column: Column): Date {
  const date = new Date(integer(cell, column));
  if (Number.isNaN(date.getTime())) throw corrupt(column);
  return date;
}

function object(cell: unknown, column: Column): JsonObject {
  const value = json(cell, column);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw corrupt(column);
  return value as JsonObject;
}

function pending(cell: unknown, column: Column): Pending {
  const value = readPending(text(cell, column));
  if (value === undefined) throw corrupt(column);
  return value;
}

function limits(cell: unknown, column: Column): TokenLimits {
  const value = readLimits(text(cell, column));
  if (value === undefined) throw corrupt(column);
  return value;
}

function origin(cell: unknown, column: Column): TokenOrigin {
  const value = readOrigin(text(cell, column));
  if (value === undefined) throw corrupt(column);
  return value;
}

/** If the columns do not agree, lists of descendants and quotas would lack the record. */
function ancestorsIn(
  cell: unknown,
  parent: unknown,
  root: unknown,
): readonly TokenId[] | undefined {
  if (cell === null && parent === null && root === null) return undefined;
  const value = json(cell, 'ancestors');
  const agrees =
    isAncestors(value) &&
    text(parent, 'parent') === value.at(-1) &&
    text(root, 'root') === value[0];
  if (!agrees) throw corrupt('ancestors');
  return value;
}

function json(cell: unknown, column: Column): unknown {
  const value = text(cell, column);
  try {
    return JSON.parse(value);
  } catch {
    throw corrupt(column);
  }
}

function corrupt(column: Column): TokenError {
  return new TokenError('store_corrupt', `a token record in the database is malformed: ${column}`);
}

function parseList(cell: string, column: Column): readonly string[] {
  const list = json(cell, column);
  if (!Array.isArray(list) || Number.isNaN(freezeMeasured(list))) throw corrupt(column);
  return list;
}
