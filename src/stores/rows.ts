import { TokenError } from '../errors.ts';
import type { JsonObject, TokenId, TokenRecord } from '../token.ts';

/** In the order of {@link toValues}. The first two never change; `replace` leaves them out. */
export const COLUMNS = [
  'id',
  'account',
  'prefix',
  'kid',
  'digest',
  'box',
  'scopes',
  'requested',
  'created_at',
  'expires_at',
  'version',
  'name',
  'metadata',
  'revoked_at',
  'previous_digest',
  'previous_until',
] as const;

export type Column = (typeof COLUMNS)[number];

/** What goes into a column: times as milliseconds, lists and metadata as JSON. */
export type RowValue = string | number | Uint8Array | null;

/** In the order of {@link COLUMNS}. */
export function toValues(record: TokenRecord): RowValue[] {
  return [
    record.id,
    record.account,
    record.prefix,
    record.kid,
    record.digest,
    record.box ?? null,
    JSON.stringify(record.scopes),
    JSON.stringify(record.requested),
    record.createdAt.getTime(),
    record.expiresAt.getTime(),
    record.version,
    record.name ?? null,
    record.metadata === undefined ? null : JSON.stringify(record.metadata),
    record.revokedAt?.getTime() ?? null,
    record.previousDigest ?? null,
    record.previousUntil?.getTime() ?? null,
  ];
}

/** Makes records of the rows of a database, strictly: what is malformed is never handed out. */
export class RowReader {
  readonly #lists = new ListTexts();

  /**
   * Reads the cells of a row, in the order of {@link COLUMNS}; what comes after them is not looked
   * at. `null` for `requested` stands for the same as `scopes`.
   *
   * @throws {TokenError} `store_corrupt`
   */
  readCells(cells: readonly unknown[]): TokenRecord {
    return {
      id: text(cells[0], 'id') as TokenId,
      account: text(cells[1], 'account'),
      prefix: text(cells[2], 'prefix'),
      kid: text(cells[3], 'kid'),
      digest: digest(cells[4], 'digest'),
      box: optional(bytes, cells[5], 'box'),
      scopes: this.#lists.read(cells[6], 'scopes'),
      requested: this.#lists.read(cells[7] ?? cells[6], 'requested'),
      createdAt: instant(cells[8], 'created_at'),
      expiresAt: instant(cells[9], 'expires_at'),
      version: integer(cells[10], 'version'),
      name: optional(text, cells[11], 'name'),
      metadata: optional(object, cells[12], 'metadata'),
      revokedAt: optional(instant, cells[13], 'revoked_at'),
      previousDigest: optional(digest, cells[14], 'previous_digest'),
      previousUntil: optional(instant, cells[15], 'previous_until'),
    };
  }
}

function optional<Value>(
  read: (cell: unknown, column: Column) => Value,
  cell: unknown,
  column: Column,
): Value | undefined {
  return cell === null ? undefined : read(cell, column);
}

function text(cell: unknown, column: Column): string {
  if (typeof cell === 'string') return cell;
  // A column of bytes, which some databases need so that they compare byte by byte.
  if (Buffer.isBuffer(cell)) return cell.toString('utf8');
  throw corrupt(column);
}

/** As bytes or in hexadecimal: short ones cost drivers less to read as a text. */
function bytes(cell: unknown, column: Column): Uint8Array {
  if (typeof cell === 'string') {
    const read = Buffer.from(cell, 'hex');
    if (read.length * 2 === cell.length) return new Uint8Array(read);
  }
  if (!(cell instanceof Uint8Array)) throw corrupt(column);
  // Most drivers read a Buffer.
  return Buffer.isBuffer(cell) ? new Uint8Array(cell) : cell;
}

function digest(cell: unknown, column: Column): Uint8Array {
  const value = bytes(cell, column);
  if (value.length !== 32) throw corrupt(column);
  return value;
}

function integer(cell: unknown, column: Column): number {
  // Drivers read 64 bits as a number, a bigint or a text.
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

const MAX_LISTS = 1000;
const MAX_LIST_CHARACTERS = 4_000_000;

/** Equal texts give one frozen list, as long as they are among those read most recently anew. */
class ListTexts {
  readonly #byText = new Map<string, readonly string[]>();
  #characters = 0;

  read(cell: unknown, column: Column): readonly string[] {
    const key = text(cell, column);
    return this.#byText.get(key) ?? this.#add(key, parseList(key, column));
  }

  #add(key: string, list: readonly string[]): readonly string[] {
    this.#byText.set(key, list);
    this.#characters += key.length;
    // Two bounds: a thousand lists of 4096 scopes would fill the memory.
    while (this.#byText.size > MAX_LISTS || this.#characters > MAX_LIST_CHARACTERS) {
      this.#dropOldest();
    }
    return list;
  }

  #dropOldest(): void {
    const [oldest] = this.#byText.keys();
    this.#byText.delete(oldest as string);
    this.#characters -= (oldest as string).length;
  }
}

function parseList(cell: string, column: Column): readonly string[] {
  const list = json(cell, column);
  if (!Array.isArray(list)) throw corrupt(column);
  if (!list.every((item) => typeof item === 'string')) throw corrupt(column);
  return Object.freeze(list);
}
