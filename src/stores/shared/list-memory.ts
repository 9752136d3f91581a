import { createHash } from 'node:crypto';
import { LONG_LIST_BYTES } from '../../bounds.ts';
import type { TokenId } from '../../token/record.ts';
import { listWeight } from '../../token/size.ts';

/** A list of scopes, and its text in the database. */
export interface ListText {
  readonly text: string;
  readonly list: readonly string[];
  /** Only of a long text: SHA-256, by which a database can tell whether it still holds the same text. */
  readonly digest: string | undefined;
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

/** The entry of an id. Its lists are digests. */
interface Remembered {
  readonly scopes: string | undefined;
  readonly requested: string | undefined;
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
    // V8 hashes strings of more than 16 383 characters by their length, so in a map they all collide.
    const isLong = text.length >= LONG_LIST_BYTES;
    const digest = isLong ? createHash('sha256').update(text).digest('hex') : undefined;
    const known = this.#lists.get(digest ?? text);
    if (known !== undefined) {
      if (isLong) this.#latest = known;
      return known;
    }
    const list = parse(text);
    const weight = text.length + listWeight(list);
    if (!this.#lists.makeRoom(weight)) return { text, list, digest };
    // V8 slices keep the parent string alive, which may be a whole row.
    const copy = Buffer.from(text).toString();
    const made = { text: copy, list, digest };
    this.#lists.add(digest ?? copy, made, weight);
    // A record's other list is read next, and often equals this one.
    if (isLong) this.#latest = made;
    return made;
  }

  known(id: TokenId): KnownLists | undefined {
    const remembered = this.#ids.get(id);
    if (remembered === undefined) return undefined;
    const scopes = this.#ofDigest(remembered.scopes);
    const requested = this.#ofDigest(remembered.requested);
    if (scopes === undefined && requested === undefined) return undefined;
    const isWhole =
      scopes?.digest === remembered.scopes && requested?.digest === remembered.requested;
    return { scopes, requested, row: isWhole ? remembered.row : undefined };
  }

  remember(id: TokenId, { scopes, requested, row }: KnownLists): void {
    const isRetained = [scopes, requested].some(
      (list) => this.#ofDigest(list?.digest) !== undefined,
    );
    this.forget(id);
    if (!isRetained) return;
    const weight = ID_BYTES + (row === undefined ? 0 : weightOf(row));
    if (!this.#ids.makeRoom(weight)) return;
    this.#ids.add(id, { scopes: scopes?.digest, requested: requested?.digest, row }, weight);
  }

  forget(id: TokenId): void {
    this.#ids.remove(id);
  }

  #ofDigest(digest: string | undefined): ListText | undefined {
    return digest === undefined ? undefined : this.#lists.get(digest);
  }
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

/**
 * Remembers values up to a weight. A new entry evicts the oldest only if that was not used since its
 * last turn. Otherwise, entries in a loop that is slightly too large would each be evicted right before
 * their next use.
 */
class BoundedMemory<Key, Value> {
  readonly #entries = new Map<Key, CacheEntry<Value>>();
  readonly #maxWeight: number;
  /** From the oldest on. The iterator of a map is live: it also visits later additions. */
  #turns = this.#entries.entries();
  #weight = 0;

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
