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
export type Row = { readonly [column in Column]: unknown };

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

  /** @throws {TokenError} `store_corrupt` */
  read(row: Row): TokenRecord {
    return {
      id: text(row, 'id') as TokenId,
      account: text(row, 'account'),
      prefix: text(row, 'prefix'),
      kid: text(row, 'kid'),
      digest: digest(row, 'digest'),
      box: optional(bytes, row, 'box'),
      scopes: this.#lists.read(row, 'scopes'),
      requested: this.#lists.read(row, 'requested'),
      createdAt: instant(row, 'created_at'),
      expiresAt: instant(row, 'expires_at'),
      version: integer(row, 'version'),
      name: optional(text, row, 'name'),
      metadata: optional(object, row, 'metadata'),
      revokedAt: optional(instant, row, 'revoked_at'),
      previousDigest: optional(digest, row, 'previous_digest'),
      previousUntil: optional(instant, row, 'previous_until'),
    };
  }
}

function optional<Value>(
  read: (row: Row, column: Column) => Value,
  row: Row,
  column: Column,
): Value | undefined {
  return row[column] === null ? undefined : read(row, column);
}

function text(row: Row, column: Column): string {
  const value = row[column];
  if (typeof value === 'string') return value;
  // A column of bytes, which some databases need so that they compare byte by byte.
  if (Buffer.isBuffer(value)) return value.toString('utf8');
  throw corrupt(column);
}

function bytes(row: Row, column: Column): Uint8Array {
  const value = row[column];
  if (!(value instanceof Uint8Array)) throw corrupt(column);
  // Most drivers read a Buffer.
  return Buffer.isBuffer(value) ? new Uint8Array(value) : value;
}

function digest(row: Row, column: Column): Uint8Array {
  const value = bytes(row, column);
  if (value.length !== 32) throw corrupt(column);
  return value;
}

function integer(row: Row, column: Column): number {
  const value = row[column];
  // Drivers read 64 bits as a number, a bigint or a text.
  const number = isWholeText(value) || typeof value === 'bigint' ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isSafeInteger(number)) throw corrupt(column);
  return number;
}

function isWholeText(value: unknown): boolean {
  return typeof value === 'string' && /^-?[0-9]{1,16}$/.test(value);
}

function instant(row: Row, column: Column): Date {
  const date = new Date(integer(row, column));
  if (Number.isNaN(date.getTime())) throw corrupt(column);
  return date;
}

function object(row: Row, column: Column): JsonObject {
  const value = json(row, column);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw corrupt(column);
  return value as JsonObject;
}

function json(row: Row, column: Column): unknown {
  const value = text(row, column);
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

  read(row: Row, column: Column): readonly string[] {
    const key = text(row, column);
    return this.#byText.get(key) ?? this.#add(key, parseList(row, column));
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

function parseList(row: Row, column: Column): readonly string[] {
  const list = json(row, column);
  if (!Array.isArray(list)) throw corrupt(column);
  if (!list.every((item) => typeof item === 'string')) throw corrupt(column);
  return Object.freeze(list);
}
