import { expect } from 'vitest';
import type { TokenStore } from '../../src/ports/token-store.ts';
import type { TokenRecord } from '../../src/token/record.ts';
import { revoked } from '../../src/token/revoked.ts';
import { newRecord } from './support.ts';

/** About 6 kB as JSON; the length is the same for every mark of one character. */
export function longList(mark: string): string[] {
  return Array.from(
    { length: 100 },
    (_, index) => `GET:shop.example/${'x'.repeat(40)}/${index}/${mark}`,
  );
}

/** A record with two long lists that differ. */
export function longRecord(mark: string, fields: Partial<TokenRecord> = {}): TokenRecord {
  return newRecord('long', { scopes: longList(mark), requested: longList(`${mark}?`), ...fields });
}

interface Setting {
  readonly store: TokenStore;
  /** A second store on the same table, as in another process. */
  readonly elsewhere: TokenStore;
  /** Changes only the lists of the row, without the store. */
  overwrite(record: TokenRecord): unknown;
  /** Removes the row without the store. */
  remove(record: TokenRecord): unknown;
  /** How many bytes of lists the database has sent to the store so far. */
  bytesRead(): number;
}

interface Case {
  readonly name: string;
  run(setting: Setting): Promise<void>;
}

async function found({ store }: Setting, { id }: TokenRecord): Promise<TokenRecord | undefined> {
  const [alone] = await store.find([id]);
  const [, among] = await store.find([newRecord('none').id, id]);
  expect(among).toEqual(alone);
  return alone;
}

/** Reads a record until its lists are cached. */
async function cached(setting: Setting, record: TokenRecord): Promise<TokenRecord | undefined> {
  await setting.elsewhere.insert(record);
  for (let times = 0; times < 3; times += 1) await setting.store.find([record.id]);
  return found(setting, record);
}

/** Cases for a database store that caches long lists. */
export const longListCases: readonly Case[] = [
  {
    name: 'does not read a cached list from the database again',
    async run(setting) {
      const record = longRecord('a');
      await setting.elsewhere.insert(record);
      const before = setting.bytesRead();
      const [first] = await setting.store.find([record.id]);
      expect(setting.bytesRead() - before).toBeGreaterThan(10_000);
      await setting.store.find([record.id]);

      const start = setting.bytesRead();
      const [again] = await setting.store.find([record.id]);
      expect(setting.bytesRead() - start).toBeLessThan(1000);
      expect(again).toEqual(first);
      expect(again?.scopes).toBe(first?.scopes);
      expect(again?.requested).toBe(first?.requested);
    },
  },
  {
    name: 'returns the new lists after another process changed them',
    async run(setting) {
      await cached(setting, longRecord('a'));
      const next = longRecord('b', { version: 2 });
      expect(await setting.elsewhere.replace(next)).toBe(true);
      expect(await found(setting, next)).toMatchObject({ scopes: next.scopes, version: 2 });
      expect((await found(setting, next))?.requested).toEqual(next.requested);
    },
  },
  {
    name: 'returns the new lists after it changed them itself',
    async run(setting) {
      await cached(setting, longRecord('a'));
      const next = longRecord('b', { version: 2 });
      expect(await setting.store.replace(next)).toBe(true);
      expect((await found(setting, next))?.scopes).toEqual(next.scopes);
    },
  },
  {
    name: 'returns one new list if only that one changed',
    async run(setting) {
      const record = longRecord('a');
      await cached(setting, record);
      await setting.elsewhere.replace({ ...record, scopes: longList('b'), version: 2 });
      const narrowed = await found(setting, record);
      expect([narrowed?.scopes, narrowed?.requested]).toEqual([longList('b'), record.requested]);
      await setting.elsewhere.replace({
        ...record,
        scopes: longList('b'),
        requested: longList('b'),
        version: 3,
      });
      const same = await found(setting, record);
      expect([same?.scopes, same?.requested]).toEqual([longList('b'), longList('b')]);
      expect(same?.requested).toBe(same?.scopes);
      await setting.elsewhere.replace({ ...record, requested: longList('b'), version: 4 });
      const widened = await found(setting, record);
      expect([widened?.scopes, widened?.requested]).toEqual([record.scopes, longList('b')]);
    },
  },
  {
    name: 'returns short lists that replaced long ones, and long ones that replaced those',
    async run(setting) {
      const record = longRecord('a');
      const short = newRecord('long', { version: 2 });
      await cached(setting, record);
      await setting.elsewhere.replace(short);
      expect(await found(setting, short)).toMatchObject({
        scopes: short.scopes,
        requested: short.requested,
      });
      await setting.elsewhere.replace({ ...record, version: 3 });
      expect(await found(setting, record)).toMatchObject({
        scopes: record.scopes,
        requested: record.requested,
      });
    },
  },
  {
    name: 'returns changed lists of the same id and version, as after a restore',
    async run(setting) {
      await cached(setting, longRecord('a'));
      await setting.overwrite(longRecord('b'));
      expect(await found(setting, longRecord('b'))).toMatchObject({
        scopes: longList('b'),
        requested: longList('b?'),
        version: 1,
      });
    },
  },
  {
    name: 'returns nothing after a removal, and the new lists if the id is reused',
    async run(setting) {
      const record = longRecord('a');
      await cached(setting, record);
      await setting.remove(record);
      expect(await setting.store.find([record.id])).toEqual([undefined]);
      await setting.elsewhere.insert(longRecord('b'));
      expect((await found(setting, record))?.scopes).toEqual(longList('b'));
      await setting.remove(record);
      await setting.store.insert(longRecord('c'));
      expect((await found(setting, record))?.scopes).toEqual(longList('c'));
    },
  },
  {
    name: 'returns the right lists for two tokens that swapped theirs',
    async run(setting) {
      const [one, two] = [longRecord('a'), longRecord('b', { id: newRecord('two').id })];
      await cached(setting, one);
      await cached(setting, two);
      await setting.elsewhere.replace({ ...one, scopes: two.scopes, version: 2 });
      await setting.elsewhere.replace({ ...two, scopes: one.scopes, version: 2 });
      const both = await setting.store.find([one.id, two.id]);
      expect(both.map((record) => record?.scopes)).toEqual([two.scopes, one.scopes]);
    },
  },
  {
    name: 'returns a revocation by another process',
    async run(setting) {
      const record = longRecord('a');
      const kept = await cached(setting, record);
      await setting.elsewhere.revoke(record.id, record.account, record.expiresAt);
      expect(await found(setting, record)).toEqual(kept && revoked(kept, record.expiresAt));
    },
  },
  {
    name: 'returns copies, so that callers cannot change its cache',
    async run(setting) {
      const bytes = () => new Uint8Array(32).fill(7);
      const record = longRecord('a', {
        box: bytes(),
        previousDigest: bytes(),
        previousUntil: new Date(5),
        metadata: { a: ['b'] },
      });
      await cached(setting, record);
      const [one] = await setting.store.find([record.id]);
      one?.box?.fill(0);
      one?.digest.fill(0);
      one?.previousDigest?.fill(0);
      one?.expiresAt.setTime(0);
      Reflect.set(one?.metadata ?? {}, 'a', 'c');
      expect(await found(setting, record)).toEqual({
        ...record,
        name: undefined,
        revokedAt: undefined,
      });
    },
  },
];
