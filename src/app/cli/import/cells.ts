import { describeRounded, roundedNumberIn } from '../../../text/json.ts';
import { isObject, type JsonObject } from '../../../token/record.ts';
import { type Columns, plainName, refusal } from './rows.ts';

/** Reads the cells of one row. Empty ones count as absent. */
export class Cells {
  readonly #columns: Columns;

  constructor(columns: Columns) {
    this.#columns = columns;
  }

  /** The first of these columns that the row has, even if it is empty there. */
  #find(names: readonly string[]): unknown {
    const name = names.map(plainName).find((each) => this.#columns.has(each));
    const cell = name === undefined ? undefined : this.#columns.get(name);
    return cell === null || cell === '' ? undefined : cell;
  }

  has(...names: readonly string[]): boolean {
    return names.some((name) => this.#columns.has(plainName(name)));
  }

  /**
   * Refuses a row that has none of these columns. If a query forgot the expiry, for example, the
   * tokens would live longer.
   *
   * @throws {TokenError}
   */
  require(...names: readonly string[]): void {
    if (this.has(...names)) return;
    throw refusal(`the column ${names.join(' or ')} is missing: select it, even if it is empty`);
  }

  /** A text, or a number that JSON does not round. @throws {TokenError} */
  text(...names: readonly string[]): string | undefined {
    const cell = this.#find(names);
    if (cell === undefined || typeof cell === 'string') return cell;
    if (Number.isSafeInteger(cell)) return String(cell);
    if (typeof cell !== 'number') throw refusal(`${names[0]} must be a text or a whole number`);
    throw refusal(`${names[0]} is a number that JSON rounds: select it as a text`);
  }

  /** @throws {TokenError} */
  flag(...names: readonly string[]): boolean | undefined {
    const cell = this.#find(names);
    if (cell === undefined) return undefined;
    const text = String(cell).toLowerCase();
    if (['true', 't', '1'].includes(text)) return true;
    if (['false', 'f', '0'].includes(text)) return false;
    throw refusal(`${names[0]} must be true or false, or 1 or 0`);
  }

  /** A time as databases print it; without a zone it is UTC. @throws {TokenError} */
  time(...names: readonly string[]): Date | undefined {
    const cell = this.#find(names);
    if (cell === undefined) return undefined;
    const time = timeOf(cell);
    if (time !== undefined) return time;
    throw refusal(
      `${names[0]} must be a time, such as 2027-01-31 12:00:00, 2027-01-31T12:00:00Z, or UNIX seconds or milliseconds`,
    );
  }

  /** The value of a JSON text, or of a cell that is JSON already. @throws {TokenError} */
  json(...names: readonly string[]): unknown {
    const cell = this.#find(names);
    if (typeof cell !== 'string') return cell;
    let text = cell;
    let value: unknown;
    try {
      value = JSON.parse(cell);
      // Some adapters store text that was encoded as JSON twice.
      if (typeof value === 'string') {
        text = value;
        value = JSON.parse(text);
      }
    } catch {
      throw refusal(`${names[0]} is not JSON`);
    }
    const rounded = roundedNumberIn(text);
    if (rounded !== undefined) throw refusal(describeRounded([names[0] ?? '', ...rounded]));
    return value ?? undefined;
  }

  /** @throws {TokenError} */
  object(...names: readonly string[]): JsonObject | undefined {
    const value = this.json(...names);
    if (value === undefined) return undefined;
    if (isObject(value)) return value;
    throw refusal(`${names[0]} must be a JSON object`);
  }

  /** Names in a JSON list, or separated by spaces or commas. @throws {TokenError} */
  list(...names: readonly string[]): readonly string[] | undefined {
    const cell = this.#find(names);
    const isPlain = typeof cell === 'string' && !/^\s*["[]/.test(cell);
    const value = isPlain ? cell.split(/[\s,]+/).filter(Boolean) : this.json(...names);
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value;
    throw refusal(`${names[0]} must be a JSON list of texts`);
  }

  /** The other columns of the row. */
  others(known: readonly string[]): readonly string[] {
    const names = new Set(known.map(plainName));
    return [...this.#columns.keys()].filter((name) => !names.has(name));
  }
}

const SQL_TIME = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d{1,9})? ?(Z|[+-]\d\d(?::?\d\d)?)?$/i;

/** A number from here on is in milliseconds: as seconds it would be after the year 5138. */
const LEAST_MILLISECONDS = 100_000_000_000;

function timeOf(cell: unknown): Date | undefined {
  const text = String(cell);
  if (/^\d{1,15}(?:\.\d{1,9})?$/.test(text)) {
    const number = Number(text);
    return new Date(number < LEAST_MILLISECONDS ? number * 1000 : number);
  }
  const [, day, clock, fraction = '', zone = 'Z'] = SQL_TIME.exec(text) ?? [];
  if (day === undefined) return undefined;
  const offset = zone.length === 3 ? `${zone}:00` : zone.replace(/^([+-]\d\d)(\d\d)$/, '$1:$2');
  const time = new Date(`${day}T${clock}${fraction.slice(0, 4)}${offset.toUpperCase()}`);
  return Number.isNaN(time.getTime()) ? undefined : time;
}
