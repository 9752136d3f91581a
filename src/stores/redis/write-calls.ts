import { randomBytes } from 'node:crypto';
import type { PurgeQuery } from '../../ports/token-store.ts';
import type { TokenId, TokenRecord } from '../../token/record.ts';
import { idIn, type KeySpace, nameOf, parentIn, rootIn, type TokenName } from './layout.ts';
import { encodeRecord } from './record-codec.ts';
import {
  INSERT,
  REMOVE,
  REPLACE,
  REVOKE,
  type Script,
  type ScriptCall,
  UNLIST,
  type WriteCall,
} from './scripts.ts';

export interface Revocation {
  readonly writeId: string;
  readonly account: string;
  readonly at: Date;
  /** Any version if undefined. */
  readonly version: number | undefined;
}

export interface ListedToken extends TokenName {
  /** Only this generation of the token, not another one with the same id; any if undefined. */
  readonly generation?: string | undefined;
  /** The entry by which it was found in its account's list. */
  readonly entry?: string;
}

/** A token to remove, and the counted entry by which it was found. */
export interface EndedToken extends TokenName {
  readonly counted?: string;
}

/** Which tokens are removed. */
export type Removal = Pick<PurgeQuery, 'now' | 'minAgeMs'>;

/** A token in the lists by its parent and by its root. */
export interface ListedChild {
  readonly id: TokenId;
  readonly entry: string;
  /** Its parent and its root. */
  readonly ancestors: readonly TokenId[];
}

/** Reads what a removal says of tokens that were derived. */
export function childrenIn(answer: unknown): ListedChild[] {
  const parts = (answer as readonly unknown[]).slice(2).map(String);
  return Array.from({ length: parts.length / 2 }, (_, index) => {
    const [entry = '', ancestors = ''] = parts.slice(2 * index);
    return { id: idIn(entry), entry, ancestors: [rootIn(ancestors), parentIn(ancestors)] };
  });
}

/** Builds the calls of the scripts that write. */
export class WriteCalls {
  readonly #keys: KeySpace;
  readonly #idPrefix = randomBytes(9).toString('base64url');
  #idCount = 0;

  constructor(keys: KeySpace) {
    this.#keys = keys;
  }

  /** A script that finds this id in a record has run before: drivers may send a command twice. */
  newWriteId(): string {
    this.#idCount += 1;
    return `${this.#idPrefix}${this.#idCount.toString(36)}`;
  }

  insert(record: TokenRecord, writeId: string): WriteCall {
    const value = encodeRecord(record, writeId).join(writeId);
    return this.#callOf(INSERT, [record], [writeId, value, nameOf(record)]);
  }

  replace(next: TokenRecord, version: number, writeId: string, generation = ''): WriteCall {
    const values = [
      ...[writeId, ...encodeRecord(next, writeId), nameOf(next), String(version), generation],
      ...[this.#keys.channel, next.id, String(slackOf(next))],
    ];
    return this.#callOf(REPLACE, [next], values);
  }

  revoke(tokens: readonly ListedToken[], revocation: Revocation): WriteCall {
    const { writeId, account, at, version = '' } = revocation;
    return this.#callOf(REVOKE, tokens, [
      ...[writeId, String(at.getTime()), String(version), JSON.stringify(account)],
      ...[this.#keys.channel, tokens.map(({ id }) => id).join(' ')],
      ...tokens.flatMap((token) => [nameOf(token), token.generation ?? '', token.entry ?? '']),
    ]);
  }

  remove(tokens: readonly EndedToken[], { now, minAgeMs }: Removal): WriteCall {
    return this.#callOf(REMOVE, tokens, [
      ...[String(now.getTime()), String(minAgeMs)],
      ...tokens.flatMap((token) => [
        nameOf(token),
        JSON.stringify(token.account),
        token.counted ?? '',
      ]),
    ]);
  }

  /** Removes derived tokens from the lists by their parents and roots. */
  unlist(children: readonly ListedChild[]): ScriptCall {
    const keys = children.map(({ id, ancestors }) => this.#keys.ofDerived(id, ancestors));
    const values = children.flatMap(({ entry }, index) => (keys[index] ?? []).map(() => entry));
    return { script: UNLIST, keys: keys.flat(), values };
  }

  #callOf(script: Script, tokens: readonly TokenName[], values: readonly string[]): WriteCall {
    const keys = tokens.flatMap((token) => this.#keys.ofToken(token));
    return { slot: this.#keys.slotOf(tokens), script, keys, values };
  }
}

/** A token can be suspended like it can be revoked: also on a server whose memory is full. */
function slackOf({ suspendedAt }: TokenRecord): number {
  return suspendedAt === undefined ? 0 : SUSPENSION_BYTES;
}

/** A time, a longer version, and a longer id of the write. */
const SUSPENSION_BYTES = 28;
