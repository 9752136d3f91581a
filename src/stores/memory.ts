import { TokenError } from '../errors.ts';
import type { PageQuery, Position, TokenStore } from '../store.ts';
import { copyMetadata, type JsonObject, type TokenId, type TokenRecord } from '../token.ts';

/**
 * Keeps tokens in this process: for tests, and for a single process that may forget everything when
 * it ends.
 *
 * Records with equal scopes share one frozen list, and every read hands out that very list.
 *
 * @example
 * const store = new MemoryTokenStore();
 * await store.insert(record);
 * const [found] = await store.find([record.id]);
 * found === record; // false: a copy
 */
export class MemoryTokenStore implements TokenStore {
  readonly local = true;
  readonly #records = new Map<TokenId, Kept>();
  /** Ascending by creation time, then id. */
  readonly #accounts = new Map<string, Kept[]>();
  readonly #lists = new SharedLists();
  /** Where the next purge goes on. The iterator of a map is live: it sees later inserts. */
  #sweep = this.#records.values();

  async insert(record: TokenRecord): Promise<void> {
    if (this.#records.has(record.id)) throw new TokenError('id_taken', 'this id is taken');
    const kept = this.#keep(record);
    this.#records.set(kept.id, kept);
    this.#place(kept);
  }

  async find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    return ids.map((id) => {
      const kept = this.#records.get(id);
      return kept === undefined ? undefined : handOut(kept);
    });
  }

  async page({ account, after, limit, liveAt }: PageQuery): Promise<TokenRecord[]> {
    const tokens = this.#accounts.get(account) ?? [];
    const now = liveAt.getTime();
    const found: TokenRecord[] = [];
    let index = after === undefined ? tokens.length : countBefore(tokens, place(after));
    while (index > 0 && found.length < limit) {
      index -= 1;
      const kept = tokens[index] as Kept;
      if (kept.revokedAt === undefined && kept.expiresAt > now) found.push(handOut(kept));
    }
    return found;
  }

  async replace(next: TokenRecord): Promise<boolean> {
    const kept = this.#unrevoked(next.id, next.account);
    if (kept?.version !== next.version - 1) return false;
    const fresh = this.#keep(next);
    this.#release(kept);
    const moves = fresh.createdAt !== kept.createdAt;
    if (moves) this.#displace(kept);
    Object.assign(kept, fresh);
    if (moves) this.#place(kept);
    return true;
  }

  async revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean> {
    const kept = this.#unrevoked(id, account);
    if (kept === undefined || (version !== undefined && version !== kept.version)) return false;
    kept.revokedAt = at.getTime();
    return true;
  }

  async revokeAll(account: string, at: Date): Promise<number> {
    const tokens = this.#accounts.get(account) ?? [];
    const open = tokens.filter((kept) => kept.revokedAt === undefined);
    for (const kept of open) kept.revokedAt = at.getTime();
    return open.length;
  }

  async purge(before: Date, limit: number): Promise<number> {
    const dead = new Set(this.#collect(before.getTime(), limit));
    for (const kept of dead) {
      this.#records.delete(kept.id);
      this.#release(kept);
    }
    // One pass per account: cutting out one by one would move the rest of a long list each time.
    const accounts = new Set(Array.from(dead, (kept) => kept.account));
    for (const account of accounts) this.#dropFrom(account, dead);
    return dead.size;
  }

  /** Looks at each record at most once, from where the last purge stopped and round the end. */
  #collect(before: number, limit: number): Kept[] {
    const dead: Kept[] = [];
    for (let left = this.#records.size; left > 0 && dead.length < limit; left -= 1) {
      const kept = this.#nextInSweep();
      if (kept.expiresAt < before || (kept.revokedAt ?? before) < before) dead.push(kept);
    }
    return dead;
  }

  #nextInSweep(): Kept {
    const { value } = this.#sweep.next();
    if (value !== undefined) return value;
    this.#sweep = this.#records.values();
    return this.#sweep.next().value as Kept;
  }

  #dropFrom(account: string, dead: ReadonlySet<Kept>): void {
    const rest = (this.#accounts.get(account) ?? []).filter((kept) => !dead.has(kept));
    if (rest.length === 0) this.#accounts.delete(account);
    else this.#accounts.set(account, rest);
  }

  #unrevoked(id: TokenId, account: string): Kept | undefined {
    const kept = this.#records.get(id);
    return kept?.account === account && kept.revokedAt === undefined ? kept : undefined;
  }

  #place(kept: Kept): void {
    const tokens = this.#accounts.get(kept.account);
    if (tokens === undefined) this.#accounts.set(kept.account, [kept]);
    else tokens.splice(countBefore(tokens, kept), 0, kept);
  }

  #displace(kept: Kept): void {
    const tokens = this.#accounts.get(kept.account) ?? [];
    tokens.splice(countBefore(tokens, kept), 1);
  }

  #keep(record: TokenRecord): Kept {
    const scopes = this.#lists.take(record.scopes);
    return {
      id: record.id,
      // All tokens of an account share one string.
      account: this.#accounts.get(record.account)?.[0]?.account ?? record.account,
      prefix: record.prefix,
      kid: record.kid,
      digest: packed(record.digest),
      box: record.box && packed(record.box),
      scopes,
      requested: this.#lists.take(record.requested, scopes),
      createdAt: record.createdAt.getTime(),
      expiresAt: record.expiresAt.getTime(),
      version: record.version,
      name: record.name,
      metadata: record.metadata && copyMetadata(record.metadata),
      revokedAt: record.revokedAt?.getTime(),
      previousDigest: record.previousDigest && packed(record.previousDigest),
      previousUntil: record.previousUntil?.getTime(),
    };
  }

  #release(kept: Kept): void {
    this.#lists.release(kept.scopes);
    this.#lists.release(kept.requested);
  }
}

/** A record as it is kept: immutable parts only, and small ones (a typed array costs 200 bytes). */
interface Kept {
  readonly id: TokenId;
  readonly account: string;
  readonly prefix: string;
  readonly kid: string;
  readonly digest: string;
  readonly box: string | undefined;
  readonly scopes: SharedList;
  readonly requested: SharedList;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly version: number;
  readonly name: string | undefined;
  readonly metadata: JsonObject | undefined;
  revokedAt: number | undefined;
  readonly previousDigest: string | undefined;
  readonly previousUntil: number | undefined;
}

interface SharedList {
  readonly key: string;
  readonly list: readonly string[];
  uses: number;
}

/** Equal lists are one frozen list for as long as a record uses it. */
class SharedLists {
  readonly #byKey = new Map<string, SharedList>();

  /** @param likely what it may be equal to: mostly, what was granted is what was asked for */
  take(list: readonly string[], likely?: SharedList): SharedList {
    if (likely !== undefined && isSame(list, likely.list)) {
      likely.uses += 1;
      return likely;
    }
    const key = JSON.stringify(list);
    const shared = this.#byKey.get(key) ?? { key, list: Object.freeze([...list]), uses: 0 };
    if (shared.uses === 0) this.#byKey.set(key, shared);
    shared.uses += 1;
    return shared;
  }

  release(shared: SharedList): void {
    shared.uses -= 1;
    if (shared.uses === 0) this.#byKey.delete(shared.key);
  }
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, place) => text === other[place]);
}

function handOut(kept: Kept): TokenRecord {
  // Always the same fields in the same order: one hidden class for whatever reads records.
  return {
    id: kept.id,
    account: kept.account,
    prefix: kept.prefix,
    kid: kept.kid,
    digest: unpacked(kept.digest),
    box: kept.box === undefined ? undefined : unpacked(kept.box),
    scopes: kept.scopes.list,
    requested: kept.requested.list,
    createdAt: new Date(kept.createdAt),
    expiresAt: new Date(kept.expiresAt),
    version: kept.version,
    name: kept.name,
    metadata: kept.metadata,
    revokedAt: kept.revokedAt === undefined ? undefined : new Date(kept.revokedAt),
    previousDigest: kept.previousDigest === undefined ? undefined : unpacked(kept.previousDigest),
    previousUntil: kept.previousUntil === undefined ? undefined : new Date(kept.previousUntil),
  };
}

interface Place {
  readonly createdAt: number;
  readonly id: TokenId;
}

function place({ createdAt, id }: Position): Place {
  return { createdAt: createdAt.getTime(), id };
}

/** How many of the tokens come before a place in ascending order. */
function countBefore(tokens: readonly Kept[], { createdAt, id }: Place): number {
  let low = 0;
  let high = tokens.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const kept = tokens[middle] as Kept;
    if (kept.createdAt < createdAt || (kept.createdAt === createdAt && kept.id < id)) {
      low = middle + 1;
    } else high = middle;
  }
  return low;
}

function packed(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

function unpacked(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) bytes[index] = text.charCodeAt(index);
  return bytes;
}
