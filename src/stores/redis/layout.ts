import { REDIS_BATCH } from '../../bounds.ts';
import { invalidOptions } from '../../errors.ts';
import { type Position, positionOf, type QuotaHolder } from '../../ports/token-store.ts';
import { ID_LENGTH } from '../../token/id.ts';
import type { ListedState, TokenId, TokenRecord } from '../../token/record.ts';

/*
 * All keys of a token are in one shard, which follows from its id, and a shard is in one slot of a
 * cluster. So one script can change all that belongs to a token:
 *
 *   {tag}:token:<id>         its record, which begins with the number of this layout
 *   {tag}:account:<account>  the account's list: an entry for each token that is not revoked
 *   {tag}:aside:<account>    likewise for each that is revoked, and each that is suspended
 *   {tag}:counted:<account>  an entry for each token of the account, by which quotas are counted, and a
 *                            further one for each that is derived, suspended or revoked: see EXPIRING
 *   {tag}:children:<id>      an entry for each token that was derived from that one
 *   {tag}:tree:<id>          likewise for each that was derived from that root, at any depth
 *   {tag}:ends               all tokens, by the time at which they end
 *   {tag}:usage:<id>         its counts, if usage is recorded here
 *   {tag}:lease:<n>:<key>    what was granted of a limit in window n; its shard follows from <key>
 *
 * An account has its lists in each shard; a page merges the tops of all of them. A lone server has the same
 * keys, but there one command reaches all shards. These keys, in the first shard, do not belong to a token:
 *
 *   {tag}:usage-start        the time from which usage is counted
 *   {tag}:requests           requests for tokens, by their ids
 *   {tag}:request-codes      their ids, by their user codes
 *   {tag}:request-ends       their ids, by the time at which they end
 *   {tag}:request-roots      an entry for each, which begins with its root and its end
 */

/** A record of a later layout begins with a larger number, one of a development version with none. */
export const LAYOUT = 1;

const SLOTS = 16_384;
const SHARD_COUNT = 64;

const CRC_OF_BYTE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = (crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0);
  return crc;
});

/** A part of all tokens, in one slot. */
export interface Shard {
  readonly tag: string;
  readonly slot: number;
}

/** Stored keys depend on this list: any change to it loses tokens. */
export const SHARDS: readonly Shard[] = evenShards();

/** One shard in each range of 256 slots: each server of a cluster holds ranges of slots. */
function evenShards(): Shard[] {
  const shards: Shard[] = [];
  for (let number = 0, missing = SHARD_COUNT; missing > 0; number += 1) {
    const tag = String(number);
    const slot = crc16(tag) % SLOTS;
    const range = Math.floor(slot / (SLOTS / SHARD_COUNT));
    if (shards[range] !== undefined) continue;
    shards[range] = { tag, slot };
    missing -= 1;
  }
  return shards;
}

/** The slot of a key that {@link KeySpace} made. */
export function slotOfKey(key: string): number {
  return crc16(key.slice(key.indexOf('{') + 1, key.indexOf('}'))) % SLOTS;
}

export function shardOf(id: string): Shard {
  return SHARDS[crc16(id) % SHARD_COUNT] as Shard;
}

/** CRC-16/XMODEM, with which Redis maps keys to slots. */
function crc16(text: string): number {
  let crc = 0;
  for (let index = 0; index < text.length; index += 1) {
    const top = (crc >> 8) ^ (text.charCodeAt(index) & 0xff);
    crc = ((crc << 8) & 0xffff) ^ (CRC_OF_BYTE[top] as number);
  }
  return crc;
}

const DEFAULT_KEY_PREFIX = 'tokenwright';
/** Without a brace: the first brace of a key begins its tag. */
const KEY_PREFIX = /^[A-Za-z0-9_.:-]{1,64}$/;

/** The lists that {@link KeySpace} has in each shard: `children` of a parent, and the `tree` of a root. */
type ListKind = 'account' | 'aside' | 'counted' | 'children' | 'tree';

/** The keys and the channel of a store, and which keys one command may name together. */
export class KeySpace {
  readonly channel: string;
  /** Shards that one command may name together. */
  readonly groups: readonly (readonly Shard[])[];
  readonly #prefix: string;
  readonly #isLone: boolean;
  readonly #prefixes: ReadonlyMap<Shard, string>;

  /** @throws {TokenError} `invalid_options` for a bad prefix */
  constructor(prefix = DEFAULT_KEY_PREFIX, topology: 'lone' | 'cluster' = 'lone') {
    if (typeof prefix !== 'string' || !KEY_PREFIX.test(prefix)) {
      throw invalidOptions(
        'keyPrefix must have 1 to 64 characters of A-Z, a-z, 0-9, _, -, . and :',
      );
    }
    this.#prefix = prefix;
    this.channel = `${prefix}:changes`;
    this.#isLone = topology === 'lone';
    this.groups = this.#isLone ? [SHARDS] : SHARDS.map((shard) => [shard]);
    this.#prefixes = new Map(SHARDS.map((shard) => [shard, `${prefix}:{${shard.tag}}:`]));
  }

  record(id: string): string {
    return `${this.#prefixes.get(shardOf(id))}token:${id}`;
  }

  /** A list of an account, or of the tokens in the shard that were derived from one. */
  list(shard: Shard, kind: ListKind, of: string): string {
    return `${this.#prefixes.get(shard)}${kind}:${of}`;
  }

  ends(shard: Shard): string {
    return `${this.#prefixes.get(shard)}ends`;
  }

  usage(id: string): string {
    return `${this.#prefixes.get(shardOf(id))}usage:${id}`;
  }

  /** Matches the keys of all counts, and no others: no prefix holds a brace. */
  allUsage(): string {
    return `${this.#prefix}:{*}:usage:*`;
  }

  lease(key: string, window: number): string {
    return `${this.#prefixes.get(shardOf(key))}lease:${window}:${key}`;
  }

  usageStart(): string {
    return `${this.#prefixes.get(SHARDS[0] as Shard)}usage-start`;
  }

  /** The keys of all requests, in the order that their scripts expect, and their slot. */
  requests(): { readonly names: readonly string[]; readonly slot: number } {
    const [shard] = SHARDS as readonly [Shard];
    const prefix = this.#prefixes.get(shard);
    const kinds = ['requests', 'request-codes', 'request-ends', 'request-roots'];
    const names = kinds.map((kind) => `${prefix}${kind}`);
    return { names, slot: this.#isLone ? 0 : shard.slot };
  }

  /** The lists that have a derived token by its parent and by its root. */
  ofDerived(id: string, ancestors: readonly TokenId[]): readonly string[] {
    const shard = shardOf(id);
    const [root = '', parent = root] = [ancestors[0], ancestors.at(-1)];
    return [this.list(shard, 'children', parent), this.list(shard, 'tree', root)];
  }

  /** All keys that a write of a token touches, in the order that the scripts expect. */
  ofToken({ id, account, ancestors }: TokenName): readonly string[] {
    const shard = shardOf(id);
    const lists = (['account', 'aside', 'counted'] as const).map((kind) =>
      this.list(shard, kind, account),
    );
    const derived = ancestors === undefined ? [] : this.ofDerived(id, ancestors);
    return [this.record(id), ...lists, this.ends(shard), ...derived];
  }

  /** The slot of tokens that one command may name together. A lone server counts as one slot. */
  slotOf([token]: readonly Pick<TokenName, 'id'>[]): number {
    return this.#isLone || token === undefined ? 0 : shardOf(token.id).slot;
  }

  /** Splits tokens into lists that one command may name. */
  grouped<Item extends { readonly id: string }>(items: readonly Item[]): Item[][] {
    if (this.#isLone) return items.length === 0 ? [] : [[...items]];
    const groups = new Map<Shard, Item[]>();
    for (const item of items) {
      const shard = shardOf(item.id);
      const group = groups.get(shard);
      if (group === undefined) groups.set(shard, [item]);
      else group.push(item);
    }
    return [...groups.values()];
  }

  /** Splits tokens into lists that one script may change. */
  batched<Item extends { readonly id: string }>(items: readonly Item[]): Item[][] {
    return this.grouped(items).flatMap((group) =>
      Array.from({ length: Math.ceil(group.length / REDIS_BATCH) }, (_, index) =>
        group.slice(index * REDIS_BATCH, (index + 1) * REDIS_BATCH),
      ),
    );
  }
}

export interface TokenName {
  readonly id: string;
  readonly account: string;
  /** Given if a write may add the token to the lists of those from which it was derived. */
  readonly ancestors?: readonly TokenId[] | undefined;
}

/** The member for a token in the set of ends. */
export function nameOf({ id, account }: TokenName): string {
  return `${id} ${account}`;
}

export function readName(name: string): TokenName {
  const space = name.indexOf(' ');
  return { id: name.slice(0, space), account: name.slice(space + 1) };
}

/**
 * A token's entry in its account's list. Sorted as text, entries are in order of creation time and
 * then id. They end with the expiry, so that a page can skip expired tokens without reading them.
 */
export function entryOf(record: TokenRecord): string {
  return `${childEntryOf(positionOf(record))}${record.expiresAt.getTime()}`;
}

/**
 * The marks in the entries of what is set aside, before the expiry: such an entry is in the same place as in
 * the other list.
 */
export const REVOKED = 'r';
export const SUSPENDED = 's';

/** Reads the end of an entry of either list. */
export function endIn(entry: string): { readonly mark: string; readonly expiresAt: number } {
  const end = expiryIn(entry);
  const mark = end.startsWith(REVOKED) || end.startsWith(SUSPENDED) ? end.charAt(0) : '';
  return { mark, expiresAt: Number(end.slice(mark.length)) };
}

/** A token's entry in the list of its parent's children, or its place in a list by expiry. */
export function childEntryOf(position: Position): string {
  return `${entryPrefixOf(position)} `;
}

/**
 * The states with which entries begin that are counted. The root follows from which the token was derived,
 * when it ends, or would, and its id. So the live or ended ones of a holder of a quota are ranges, whose
 * lengths Redis knows.
 */
export const UNREVOKED = '0';
export const ENDED_EARLY = '1';
/** Revoked, and never pruned: a repeated import must find it. */
export const TOMBSTONE = '2';

/**
 * The states with which further entries begin in the list of what is counted: derived and not revoked,
 * suspended or not, from whichever root; suspended; and revoked. When the token would expire and its id follow.
 */
export const DERIVED = 'd';

/**
 * In which ranges the tokens of a state are, by expiry and id. Those that were not derived are counted by their
 * expiry, so they need no further entry. Entries do not say which tokens are active.
 */
export const EXPIRING: Readonly<Record<ListedState, readonly string[]>> = {
  active: [UNREVOKED, DERIVED],
  live: [UNREVOKED, DERIVED],
  suspended: [SUSPENDED],
  expired: [UNREVOKED, DERIVED],
  revoked: [REVOKED],
  all: [UNREVOKED, DERIVED, REVOKED],
};

/** What the entries of a holder of a quota begin with, after their state. */
export function holderText({ root = '' as TokenId }: Pick<QuotaHolder, 'root'>): string {
  return `${root} `;
}

/** The end and the id in a counted entry: entries of one holder sort by it. */
export function endAndId(counted: string): string {
  return counted.slice(counted.indexOf(' ') + 1);
}

export function idInCounted(counted: string): TokenId {
  return endAndId(counted).slice(TIME_LENGTH) as TokenId;
}

/** The part of an entry that decides its position. */
export function entryPrefixOf({ id, at }: Position): string {
  return `${sortable(at.getTime())}${id}`;
}

export function idIn(entry: string): TokenId {
  return entry.slice(TIME_LENGTH, entry.lastIndexOf(' ')) as TokenId;
}

/** The last id in the line of ancestors. */
export function parentIn(ancestors: string): TokenId {
  return ancestors.slice(-ID_LENGTH - 2, -2) as TokenId;
}

/** The first id in the line of ancestors. */
export function rootIn(ancestors: string): TokenId {
  return ancestors.slice(2, ID_LENGTH + 2) as TokenId;
}

/** The expiry in an entry, in milliseconds. */
export function expiryIn(entry: string): string {
  return entry.slice(entry.lastIndexOf(' ') + 1);
}

/** The creation time in an entry, in milliseconds. */
export function creationIn(entry: string): string | number {
  const digits = entry.slice(1, TIME_LENGTH);
  return entry.startsWith('1') ? digits : Number(digits) + EARLIEST;
}

/** The length of a time in an entry. */
export const TIME_LENGTH = 17;
export const EARLIEST = -8_640_000_000_000_000;

/** A time as 17 characters that sort as text. */
export function sortable(ms: number): string {
  const [sign, digits] = ms < 0 ? ['0', ms - EARLIEST] : ['1', ms];
  return sign + String(digits).padStart(TIME_LENGTH - 1, '0');
}
