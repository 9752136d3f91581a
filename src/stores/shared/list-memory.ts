import { hash } from 'node:crypto';
import { LONG_LIST_BYTES } from '../../bounds.ts';
import type { TokenId } from '../../token/record.ts';
import { listWeight } from '../../token/size.ts';

/** A list of scopes, and its text in the database. */
export interface ListText {
  readonly text: string;
  readonly list: readonly string[];
  /** Only if it is long and remembered. */
  readonly name: ListName | undefined;
}

/** Names a long list that is remembered. */
interface ListName {
  /** Finds it. */
  readonly key: string;
  /** SHA-256, by which a database can tell whether it still holds the same text. */
  readonly digest: string;
}

/** The long lists of a record when it was last read, as far as they are remembered. */
export interface KnownLists {
  readonly scopes: ListText | undefined;
  readonly requested: ListText | undefined;
  /** The rest of the record, for a store that can tell whether it is still the same. */
  readonly row: KnownRow | undefined;
}

/** The cells of a row, and the state of the database in which they were read. */
export interface KnownRow {
  readonly state: string;
  /** With `undefined` for the lists. */
  readonly cells: readonly unknown[];
}

/** The entry of an id. */
interface Remembered {
  readonly scopes: ListName | undefined;
  readonly requested: ListName | undefined;
  readonly row: KnownRow | undefined;
}

/** The part of the memory for ids. */
const ID_SHARE = 1 / 4;
/** Measured: an id with its entry, and its share of the digests. */
const ID_BYTES = 250;

/**
 * Remembers parsed lists, so that equal texts share one frozen list, and the long lists of each
 * record, so that a store need not read them again. It is bounded by the estimated memory of the lists
 * and of the sets that are compiled from them.
 */
export class ListMemory {
  readonly #lists: BoundedMemory<string, ListText>;
  readonly #ids: BoundedMemory<TokenId, Remembered>;
  /** The last long list: if most are equal, the next one is probably the same. */
  #latest: ListText | undefined;

  constructor(maxBytes: number) {
    this.#lists = new BoundedMemory(maxBytes * (1 - ID_SHARE));
    this.#ids = new BoundedMemory(maxBytes * ID_SHARE);
  }

  /** `likely` is the probable list of the text: to compare is cheaper than to look up. */
  read(
    text: string,
    likely: ListText | undefined,
    parse: (text: string) => readonly string[],
  ): ListText {
    if (likely?.text === text) return likely;
    if (this.#latest?.text === text) return this.#latest;
    const isLong = text.length >= LONG_LIST_BYTES;
    const key = isLong ? this.#keyOfLong(text) : text;
    const known = this.#lists.get(key);
    if (known !== undefined) {
      if (isLong) this.#latest = known;
      return known;
    }
    const list = parse(text);
    const weight = text.length + listWeight(list);
    if (!this.#lists.makeRoom(weight)) return { text, list, name: undefined };
    // V8 slices keep the parent string alive, which may be a whole row.
    const copy = Buffer.from(text).toString();
    const name = isLong ? { key, digest: digestOf(text) } : undefined;
    const made = { text: copy, list, name };
    this.#lists.add(isLong ? key : copy, made, weight);
    // A record's other list is read next, and often equals this one.
    if (isLong) this.#latest = made;
    return made;
  }

  known(id: TokenId): KnownLists | undefined {
    const remembered = this.#ids.get(id);
    if (remembered === undefined) return undefined;
    const scopes = this.#named(remembered.scopes);
    const requested = this.#named(remembered.requested);
    if (scopes === undefined && requested === undefined) return undefined;
    const isWhole = scopes?.name === remembered.scopes && requested?.name === remembered.requested;
    return { scopes, requested, row: isWhole ? remembered.row : undefined };
  }

  remember(id: TokenId, { scopes, requested, row }: KnownLists): void {
    const isRetained = [scopes, requested].some((list) => this.#named(list?.name) !== undefined);
    this.forget(id);
    if (!isRetained) return;
    const weight = ID_BYTES + (row === undefined ? 0 : weightOf(row));
    if (!this.#ids.makeRoom(weight)) return;
    this.#ids.add(id, { scopes: scopes?.name, requested: requested?.name, row }, weight);
  }

  forget(id: TokenId): void {
    this.#ids.remove(id);
  }

  #named(name: ListName | undefined): ListText | undefined {
    const list = name && this.#lists.get(name.key);
    return list?.name === name ? list : undefined;
  }

  /** A hash of some characters takes a fraction of the time of a digest, and nearly all lists differ in it. */
  #keyOfLong(text: string): string {
    const key = sampleOf(text);
    const known = this.#lists.get(key);
    return known === undefined || known.text === text ? key : digestOf(text);
  }
}

const SAMPLED_EVERY = 64;
const FACTOR = 0x9e3779b1;

/** V8 hashes strings of more than 16 383 characters by their length, so in a map they all collide. */
function sampleOf(text: string): string {
  let sample = text.length;
  for (let at = 0; at < text.length; at += SAMPLED_EVERY) {
    sample = Math.imul(sample ^ text.charCodeAt(at), FACTOR);
  }
  return String(sample);
}

function digestOf(text: string): string {
  return hash('sha256', text);
}

function weightOf({ cells }: KnownRow): number {
  return cells.reduce<number>((sum, cell) => sum + 16 + lengthOf(cell), 0);
}

function lengthOf(cell: unknown): number {
  return typeof cell === 'string' || cell instanceof Uint8Array ? cell.length : 0;
}

interface CacheEntry<Value> {
  value: Value;
  weight: number;
  isUsed: boolean;
}

/** Of this many new entries that do not fit, one may evict others. */
const ADMITTED_OF = 16;

/**
 * Remembers values up to a weight. A new entry evicts the oldest only if that was not used since its
 * last turn. Otherwise, entries in a loop that is slightly too large would each be evicted right before
 * their next use. If far more entries take turns than fit, most would be evicted before their next use.
 * So most of them evict nothing; one that is used often soon gets in.
 */
class BoundedMemory<Key, Value> {
  readonly #entries = new Map<Key, CacheEntry<Value>>();
  readonly #maxWeight: number;
  /** From the oldest on. The iterator of a map is live: it also visits later additions. */
  #turns = this.#entries.entries();
  #weight = 0;
  /** How many new entries did not fit since the last one that was admitted. */
  #late = 0;

  constructor(maxWeight: number) {
    this.#maxWeight = maxWeight;
  }

  get(key: Key): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    entry.isUsed = true;
    return entry.value;
  }

  /** Call it only for a missing key, and after {@link makeRoom}. */
  add(key: Key, value: Value, weight: number): void {
    this.#entries.set(key, { value, weight, isUsed: false });
    this.#weight += weight;
  }

  remove(key: Key): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#weight -= entry.weight;
  }

  /** Evicts old entries, and returns whether a new one fits now. */
  makeRoom(weight: number): boolean {
    // An entry that would evict most others is not worth it.
    if (weight > this.#maxWeight / 2) return false;
    if (this.#weight + weight > this.#maxWeight) {
      this.#late = (this.#late + 1) % ADMITTED_OF;
      if (this.#late !== 0) return false;
    }
    while (this.#weight + weight > this.#maxWeight) {
      const [key, entry] = this.#next();
      if (entry.isUsed) {
        entry.isUsed = false;
        this.#entries.delete(key);
        this.#entries.set(key, entry);
        return false;
      }
      this.remove(key);
    }
    return true;
  }

  #next(): [Key, CacheEntry<Value>] {
    const { value } = this.#turns.next();
    if (value !== undefined) return value;
    this.#turns = this.#entries.entries();
    return this.#turns.next().value as [Key, CacheEntry<Value>];
  }
}
