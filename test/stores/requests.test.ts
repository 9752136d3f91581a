import { copyFileSync, existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  isRequestRecord,
  type RequestBounds,
  type RequestKey,
  type RequestRecord,
  type RequestStore,
} from '../../src/ports/request-store.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { MemoryRequests } from '../../src/stores/memory/requests.ts';
import { readRequest, requestRow } from '../../src/stores/shared/request-rows.ts';
import { SqliteLeases } from '../../src/stores/sqlite/leases.ts';
import { SqliteRequests } from '../../src/stores/sqlite/requests.ts';
import { manualClock, requestContract } from '../../src/testing/index.ts';
import { bytesOf, idOf } from '../../src/testing/records.ts';
import { codeOf, refusalOf } from '../support.ts';
import { newFile, opened, PLACES } from './sqlite/handles.ts';
import { newRequest, REQUEST_BOUNDS } from './support.ts';

const FAR = new Date('2100-01-01T00:00:00.000Z');
const ELEVATES = [{ id: idOf('root'), version: 3 }];

describe('memory request store', () => {
  it.each(requestContract)('$name', (promise) =>
    promise.run(() => new MemoryTokenStore().requests),
  );

  it('purges by the clock that it is given', async () => {
    const clock = manualClock(new Date('2001-01-01T00:00:00.000Z'));
    const store = new MemoryTokenStore({ clock }).requests;
    const expiresAt = new Date('2001-01-01T00:00:10.000Z');
    await store.insert(newRequest(1, { expiresAt }), REQUEST_BOUNDS);
    clock.advance(10);
    expect(await store.purge(FAR, 10)).toBe(0);
    clock.advance(0.001);
    expect(await store.purge(FAR, 10)).toBe(1);
  });
});

describe.each(PLACES)('requests in SQLite %s', (_, make) => {
  it.each(requestContract)('$name', (promise) => promise.run(() => new SqliteRequests(make())));
});

describe('requests in SQLite', () => {
  it('makes the file with the first request, for its owner, and finds it again', async () => {
    const file = newFile();
    const store = opened(new SqliteRequests(file));
    expect(await store.find({ id: newRequest(1).id })).toBeUndefined();
    expect(await store.replace(newRequest(1, { version: 2 }))).toBe(false);
    expect([await store.purge(FAR, 1), await store.doctor()]).toEqual([0, []]);
    expect(existsSync(file)).toBe(false);
    await store.insert(newRequest(1), REQUEST_BOUNDS);
    await store.close();
    await store.close();

    expect(statSync(file).mode & 0o777).toBe(0o600);
    const again = opened(new SqliteRequests(file));
    expect(await again.find({ id: newRequest(1).id })).toEqual(newRequest(1));
    expect(await codeOf(store.insert(newRequest(2), REQUEST_BOUNDS))).toBe('store_unavailable');
  });

  it.each([
    ['removed', (file: string) => rmSync(file)],
    [
      'replaced by a copy',
      (file: string) => {
        copyFileSync(file, `${file}.new`);
        renameSync(`${file}.new`, file);
      },
    ],
  ])('decides nothing in a file that was %s', async (_, change) => {
    const file = newFile();
    const store = opened(new SqliteRequests(file));
    await store.insert(newRequest(1), REQUEST_BOUNDS);
    change(file);
    const replacing = () => store.replace(newRequest(1, { version: 2, state: 'denied' }));

    if (existsSync(file)) expect(await codeOf(replacing())).toBe('store_corrupt');
    expect(await codeOf(store.insert(newRequest(2), REQUEST_BOUNDS))).toBe('store_corrupt');
  });

  it('keeps what others write in the same turn as a refused request', async () => {
    const handle = opened(new DatabaseSync(newFile()));
    const sent: string[] = [];
    const exec = handle.exec.bind(handle);
    const store = new SqliteRequests(handle);
    handle.exec = (sql) => {
      sent.push(sql);
      exec(sql);
    };
    const calls = [1, 1, 2].map((seed) => store.insert(newRequest(seed), REQUEST_BOUNDS));

    const settled = await Promise.allSettled(calls);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(sent).toEqual(['SAVEPOINT tokenwright', 'RELEASE tokenwright']);
  });

  it('counts exactly over two connections', async () => {
    const file = newFile();
    const stores = [1, 2].map(() => opened(new SqliteRequests(file)));
    const bounds = { ...REQUEST_BOUNDS, maxOfRoot: 10 };
    const inserts = Array.from({ length: 64 }, (_, index) =>
      stores[index % 2]?.insert(newRequest(index, { elevates: ELEVATES }), bounds),
    );
    const settled = await Promise.allSettled(inserts);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
  });

  it('waits for the lock of another connection, and rejects if it is held too long', async () => {
    const file = newFile();
    const store = opened(new SqliteRequests(file));
    await store.insert(newRequest(1), REQUEST_BOUNDS);
    const other = opened(new DatabaseSync(file));
    other.exec('BEGIN IMMEDIATE');
    const inserting = store.insert(newRequest(2), REQUEST_BOUNDS);
    await turn();
    other.exec('COMMIT');
    await inserting;

    other.exec('BEGIN IMMEDIATE');
    expect(await codeOf(store.insert(newRequest(3), REQUEST_BOUNDS))).toBe('store_unavailable');
    other.exec('COMMIT');
  });

  it('refuses a database with leases', async () => {
    const file = newFile();
    await opened(new SqliteLeases(file)).giveBack([{ key: 'x', window: 0, amount: 1 }]);
    const inserting = opened(new SqliteRequests(file)).insert(newRequest(1), REQUEST_BOUNDS);
    expect(await refusalOf(inserting)).toMatchObject({
      code: 'store_unavailable',
      details: { reason: 'not_opened' },
    });
  });

  it('sets synchronous = FULL', () => {
    const handle = opened(new DatabaseSync(newFile()));
    new SqliteRequests(handle);
    expect(handle.prepare('PRAGMA synchronous').get()).toEqual({ synchronous: 2 });
  });

  it.each([
    ['is no JSON', 'body', 'x'],
    ['has a member that is not known', 'body', (body: string) => body.replace('{', '{"later":1,')],
    ['has its members in another form', 'body', (body: string) => body.replace(':', ': ')],
    ['has no scopes', 'body', (body: string) => body.replace(/\["[^\]]*\]/, '[]')],
    ['has an unknown state', 'body', (body: string) => body.replace('"pending"', '"open"')],
    ['has version 0', 'version', 0],
    ['has an expiry that is no time', 'expires_at', 9e15],
  ])('rejects with store_corrupt if a request %s', async (_, column, change) => {
    const handle = opened(new DatabaseSync(newFile()));
    const store = new SqliteRequests(handle);
    const { id, userCode } = newRequest(1);
    await store.insert(newRequest(1), REQUEST_BOUNDS);
    const { value } = handle.prepare(`SELECT ${column} AS value FROM requests`).get() ?? {};
    const changed = typeof change === 'function' ? change(String(value)) : change;
    expect(changed).not.toBe(value);
    handle.prepare(`UPDATE requests SET ${column} = ?`).run(changed);

    for (const key of [{ id }, { userCode }]) {
      expect(await codeOf(store.find(key))).toBe('store_corrupt');
    }
  });
});

const FAULTS: readonly [what: string, fields: Readonly<Record<string, unknown>>][] = [
  ['an id of 21 characters', { id: 'x'.repeat(21) }],
  ['a user code with a vowel', { userCode: 'ABCDFGHJ' }],
  ['a user code in small letters', { userCode: 'bcdfghjk' }],
  ['a digest of 31 bytes', { digest: new Uint8Array(31) }],
  ['version 0', { version: 0 }],
  ['an unknown state', { state: 'expired' }],
  ['an empty client', { client: '' }],
  ['a client of 101 characters', { client: 'é'.repeat(101) }],
  ['an address that is no text', { address: 7 }],
  ['no scopes', { scopes: [] }],
  ['4097 scopes', { scopes: Array(4097).fill('GET:a.example/') }],
  ['a scope that is no text', { scopes: [7] }],
  ['an empty purpose', { purpose: '' }],
  ['a purpose of 201 characters', { purpose: 'p'.repeat(201) }],
  ['a life of 0 s', { ttlSeconds: 0 }],
  ['an empty account', { account: '' }],
  ['a person of 256 bytes', { by: 'é'.repeat(128) }],
  ['no ancestors', { elevates: [] }],
  ['nine ancestors', { elevates: Array(9).fill(ELEVATES[0]) }],
  ['an ancestor without a version', { elevates: [{ id: idOf('root') }] }],
  ['an ancestor with one member more', { elevates: [{ ...ELEVATES[0], name: 'x' }] }],
  ['a creation that is no time', { createdAt: new Date(Number.NaN) }],
  ['an expiry that is a number', { expiresAt: 7 }],
  ['a member that is not known', { later: true }],
];

describe('isRequestRecord', () => {
  it('accepts a request with each member, and one with the fewest', () => {
    expect(isRequestRecord(newRequest(1))).toBe(true);
    const full = {
      client: '😀'.repeat(100),
      purpose: 'p'.repeat(200),
      address: '192.0.2.1',
      account: 'acme',
      by: 'é'.repeat(127),
      elevates: Array.from({ length: 8 }, (_, index) => ({ id: idOf(`t${index}`), version: 1 })),
      scopes: Array(4096).fill('GET:a.example/'),
    };
    expect(isRequestRecord(newRequest(1, full))).toBe(true);
  });

  it.each(FAULTS)('refuses %s', (_, fields) => {
    expect(isRequestRecord({ ...newRequest(1), ...fields })).toBe(false);
  });

  it.each([undefined, null, 7, 'x', [], {}])('refuses %j', (value) => {
    expect(isRequestRecord(value)).toBe(false);
  });
});

describe('requestRow', () => {
  it('comes back as the same request, and holds no bytes of the digest as they are', () => {
    const record = newRequest(1, { elevates: ELEVATES, digest: bytesOf(200) });
    const row = requestRow(record);
    expect(readRequest(row)).toEqual(record);
    expect(row.root).toBe(idOf('root'));
    expect(requestRow(newRequest(1)).root).toBe('');
  });

  it.each(FAULTS)('refuses %s', async (_, fields) => {
    const record = { ...newRequest(1), ...fields } as RequestRecord;
    expect((await refusalOf(() => requestRow(record))).code).toBe('invalid_request');
  });
});

const UNBOUNDED = { ...REQUEST_BOUNDS, maxPending: 1e9, maxOfRoot: 1e9 };

/** Counts first, and inserts later. */
class CountsThenInserts extends MemoryRequests {
  readonly #inserted: RequestRecord[] = [];

  override async insert(record: RequestRecord, bounds: RequestBounds) {
    const copy = new MemoryRequests();
    for (const each of this.#inserted) await copy.insert(each, UNBOUNDED);
    await copy.insert(record, bounds);
    await turn();
    await super.insert(record, UNBOUNDED);
    this.#inserted.push(record);
  }
}

/** Stores that each break one promise, and the cases that must fail. */
const BROKEN: [string, new () => RequestStore, RegExp][] = [
  [
    'counts first and inserts later',
    CountsThenInserts,
    /never stores more than .* at the same time$/,
  ],
  [
    'forgets who has decided',
    class extends MemoryRequests {
      override replace({ by: _, ...next }: RequestRecord) {
        return super.replace(next);
      }
    },
    /replace: stores what may change/,
  ],
  [
    'trims texts',
    class extends MemoryRequests {
      override insert(record: RequestRecord, bounds: RequestBounds) {
        return super.insert({ ...record, client: record.client.trim() }, bounds);
      }
    },
    /stores text as it is/,
  ],
  [
    'hands out what it was given',
    class extends MemoryRequests {
      readonly #given = new Map<string, RequestRecord>();
      override async insert(record: RequestRecord, bounds: RequestBounds) {
        await super.insert(record, bounds);
        this.#given.set(record.id, record);
      }
      override async find(key: RequestKey) {
        const found = await super.find(key);
        return found?.version === 1 || found?.version === 7 ? this.#given.get(found.id) : found;
      }
    },
    /keeps a copy, and changes nothing|find: returns a copy/,
  ],
  [
    'takes a user code twice',
    class extends MemoryRequests {
      override async insert(record: RequestRecord, bounds: RequestBounds) {
        const other = await this.find({ userCode: record.userCode });
        if (other?.id === record.id) return super.insert(record, bounds);
        const userCode = other === undefined ? record.userCode : 'ZZZZZZZZ';
        return super.insert({ ...record, userCode }, bounds);
      }
    },
    /refuses a user code that is taken/,
  ],
  [
    'gives the code of an expired request to another one',
    class extends MemoryRequests {
      override async insert(record: RequestRecord, bounds: RequestBounds) {
        await super.purge(new Date(), 1000);
        return super.insert(record, bounds);
      }
    },
    /user code of an expired request/,
  ],
  [
    'knows no bound of all',
    class extends MemoryRequests {
      override insert(record: RequestRecord, bounds: RequestBounds) {
        const isElevation = record.elevates !== undefined;
        return super.insert(record, isElevation ? { ...bounds, maxPending: 1e9 } : bounds);
      }
    },
    /refuses more than maxPending/,
  ],
  [
    'lets those that elevate nothing fill all',
    class extends MemoryRequests {
      override insert(record: RequestRecord, bounds: RequestBounds) {
        const maxPending = record.elevates ? bounds.maxPending : 2 * bounds.maxPending;
        return super.insert(record, { ...bounds, maxPending });
      }
    },
    /fill half of maxPending/,
  ],
  [
    'knows no bound of a root',
    class extends MemoryRequests {
      override insert(record: RequestRecord, bounds: RequestBounds) {
        return super.insert(record, { ...bounds, maxOfRoot: 1e9 });
      }
    },
    /refuses more than maxOfRoot/,
  ],
  [
    'counts at the instant of the end',
    class extends MemoryRequests {
      override insert(record: RequestRecord, bounds: RequestBounds) {
        const liveAt = new Date(bounds.liveAt.getTime() - 1);
        return super.insert(record, { ...bounds, liveAt });
      }
    },
    /counts no request from the instant of its end on/,
  ],
  [
    'counts until the first end of a request',
    class extends MemoryRequests {
      override replace(next: RequestRecord) {
        return super.replace({ ...next, expiresAt: new Date(0) });
      }
    },
    /counts decided requests until they expire/,
  ],
  [
    'ignores the case of user codes',
    class extends MemoryRequests {
      override find(key: RequestKey) {
        return super.find('id' in key ? key : { userCode: key.userCode.toUpperCase() });
      }
    },
    /find: returns undefined for what is not there/,
  ],
  [
    'hides expired requests',
    class extends MemoryRequests {
      override async find(key: RequestKey) {
        const found = await super.find(key);
        return found && found.expiresAt < new Date() ? undefined : found;
      }
    },
    /find: returns an expired request/,
  ],
  [
    'replaces any version',
    class extends MemoryRequests {
      override async replace(next: RequestRecord) {
        const found = await this.find(next);
        if (found === undefined) return false;
        for (let version = found.version + 1; version <= next.version; version += 1) {
          await super.replace({ ...next, version });
        }
        return true;
      }
    },
    /replace: changes only the version before/,
  ],
  [
    'reads first and replaces later',
    class extends MemoryRequests {
      override async replace(next: RequestRecord) {
        const found = await this.find(next);
        await turn();
        if (found?.version !== next.version - 1) return false;
        await super.replace(next);
        return true;
      }
    },
    /replace: lets one of many/,
  ],
  [
    'makes what it should replace',
    class extends MemoryRequests {
      override async replace(next: RequestRecord) {
        if ((await this.find(next)) !== undefined) return super.replace(next);
        await this.insert(next, { ...REQUEST_BOUNDS });
        return true;
      }
    },
    /replace: makes no request/,
  ],
  [
    'purges one that ends at the instant',
    class extends MemoryRequests {
      override purge(before: Date, limit: number) {
        return super.purge(new Date(before.getTime() + 1), limit);
      }
    },
    /purge: removes only what ended before/,
  ],
  [
    'purges by the clock of the caller',
    class extends MemoryRequests {
      constructor() {
        super({ now: () => new Date(8.64e15) });
      }
    },
    /purge: keeps what has not ended/,
  ],
  [
    'purges more than it should',
    class extends MemoryRequests {
      override purge(before: Date) {
        return super.purge(before, 1000);
      }
    },
    /purge: removes at most limit/,
  ],
];

describe('requestContract', () => {
  it.each(BROKEN)('fails a store that %s', async (_, Broken, expected) => {
    const failed: string[] = [];
    for (const { name, run } of requestContract) {
      await run(() => new Broken()).catch(() => failed.push(name));
    }

    expect(failed.some((name) => expected.test(name))).toBe(true);
    expect(failed.length).toBeLessThan(requestContract.length);
  });

  it('has a unique name for each case', () => {
    const names = requestContract.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});
