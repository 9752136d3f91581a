import { DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { UsageDelta, UsageStore } from '../../src/ports/usage-store.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { MemoryUsage } from '../../src/stores/memory/usage.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { SqliteUsage } from '../../src/stores/sqlite/usage.ts';
import { manualClock, usageContract } from '../../src/testing/index.ts';
import type { TokenId } from '../../src/token/record.ts';
import { codeOf, refusalOf } from '../support.ts';
import { newFile, opened, PLACES } from './sqlite/handles.ts';

const ID = 'one'.padEnd(22, 'x') as TokenId;
const SCOPE = 'GET:shop.example/orders';

function useOf(uses: number, at = '2100-01-01T00:00:00.000Z'): UsageDelta {
  return { id: ID, scope: SCOPE, uses, lastUsedAt: new Date(at) };
}

async function usesIn(store: UsageStore): Promise<number | undefined> {
  return (await store.read([ID]))[0]?.scopes[0]?.uses;
}

describe('memory usage store', () => {
  it.each(usageContract)('$name', (promise) => promise.run(() => new MemoryTokenStore().usage));

  it('counts since it was created, by the clock it is given', async () => {
    const start = new Date('2026-01-01T00:00:00.000Z');
    const clock = manualClock(start);
    const store = new MemoryUsage(clock);
    clock.advance(86_400);

    expect(await store.since()).toEqual(start);
    expect(await new MemoryUsage(clock).since()).toEqual(clock.now());
  });

  it('refuses a clock that returns an invalid date', async () => {
    const clock = { now: () => new Date(Number.NaN) };

    expect(await codeOf(() => new MemoryUsage(clock))).toBe('invalid_options');
  });
});

describe.each(PLACES)('SQLite usage store %s', (_, make) => {
  it.each(usageContract)('$name', (promise) => promise.run(() => new SqliteUsage(make())));
});

/** Stores that each break one promise, and the cases that must fail. */
const BROKEN: [string, new () => UsageStore, RegExp][] = [
  [
    'keeps the last given time instead of the latest',
    class extends MemoryUsage {
      override async add(batch: readonly UsageDelta[]): Promise<void> {
        for (const delta of batch) {
          const [usage] = await this.read([delta.id]);
          await this.forget([delta.id]);
          const scopes = usage?.scopes ?? [];
          await super.add(
            scopes.map((used) => ({
              id: delta.id,
              ...used,
              lastUsedAt: delta.scope === used.scope ? new Date(0) : used.lastUsedAt,
            })),
          );
          const refusals = usage?.refusals ?? 0;
          await super.add(refusals > 0 ? [{ id: delta.id, refusals }, delta] : [delta]);
        }
      }
    },
    /never moves the time/,
  ],
  [
    'drops the uses after the first 256 of a batch',
    class extends MemoryUsage {
      override async add(batch: readonly UsageDelta[]): Promise<void> {
        for (const [index, delta] of batch.entries()) {
          if (index < 256 || delta.scope === undefined) await super.add([delta]);
        }
      }
    },
    /if they come in one batch/,
  ],
  [
    'loses refusals',
    class extends MemoryUsage {
      override add(batch: readonly UsageDelta[]): Promise<void> {
        return super.add(batch.filter(({ scope }) => scope !== undefined));
      }
    },
    /counts refusals separately/,
  ],
  [
    'ignores forget',
    class extends MemoryUsage {
      override async forget(): Promise<void> {}
    },
    /forget: removes uses and refusals/,
  ],
  [
    'counts refusals as uses in totals',
    class extends MemoryUsage {
      override async totals(ids: readonly TokenId[]) {
        const totals = await super.totals(ids);
        return totals.map((each) => each && { ...each, uses: each.uses + each.refusals });
      }
    },
    /totals: sums up what read returns/,
  ],
  [
    'leaves uses of the scope "other" out of totals',
    class extends MemoryUsage {
      override async totals(ids: readonly TokenId[]) {
        const usages = await super.read(ids);
        return usages.map((usage) => {
          const apart = usage?.scopes.filter(({ scope }) => scope !== 'other') ?? [];
          const uses = apart.reduce((sum, each) => sum + each.uses, 0);
          const last = Math.max(...apart.map(({ lastUsedAt }) => lastUsedAt.getTime()));
          if (usage === undefined) return undefined;
          const { refusals } = usage;
          return { uses, refusals, ...(uses > 0 && { lastUsedAt: new Date(last) }) };
        });
      }
    },
    /totals: counts all scopes/,
  ],
  [
    'ignores the case of scopes',
    class extends MemoryUsage {
      override add(batch: readonly UsageDelta[]): Promise<void> {
        return super.add(
          batch.map((delta) =>
            delta.scope === undefined ? delta : { ...delta, scope: delta.scope.toLowerCase() },
          ),
        );
      }
    },
    /compares scopes byte by byte/,
  ],
  [
    'returns usages in its own order',
    class extends MemoryUsage {
      override async read(ids: readonly TokenId[]) {
        return super.read([...new Set(ids)].sort());
      }
    },
    /in the order of the ids/,
  ],
  [
    'moves since with each batch',
    class extends MemoryUsage {
      #batches = 0;
      override async add(batch: readonly UsageDelta[]): Promise<void> {
        this.#batches += 1;
        await super.add(batch);
      }
      override async since() {
        return new Date(this.#batches);
      }
    },
    /since: stays the same/,
  ],
  [
    'returns an invalid date for since',
    class extends MemoryUsage {
      override async since() {
        return new Date(Number.NaN);
      }
    },
    /since: stays the same/,
  ],
];

describe('usageContract', () => {
  it.each(BROKEN)('fails a store that %s', async (_, Broken, expected) => {
    const failed: string[] = [];
    for (const { name, run } of usageContract) {
      await run(() => new Broken()).catch(() => failed.push(name));
    }

    expect(failed.some((name) => expected.test(name))).toBe(true);
    expect(failed.length).toBeLessThan(usageContract.length);
  });
});

describe('usage in SQLite', () => {
  it('keeps counts when the file is opened again', async () => {
    const file = newFile();
    const first = new SqliteUsage(file);
    await first.add([useOf(2)]);
    await first.close();

    const second = opened(new SqliteUsage(file));
    await second.add([useOf(3)]);
    expect(await usesIn(second)).toBe(5);
  });

  it('counts since its file was created, also when that is opened again', async () => {
    const file = newFile();
    const first = new SqliteUsage(file);
    const since = await first.since();
    await first.close();
    const handle = opened(new DatabaseSync(file));
    handle.exec('UPDATE counted_since SET since = since - 1000');

    const second = opened(new SqliteUsage(file));
    expect(await second.since()).toEqual(new Date(since.getTime() - 1000));
  });

  it('adds up the counts of several connections to one file', async () => {
    const file = newFile();
    const [one, two] = [opened(new SqliteUsage(file)), opened(new SqliteUsage(file))];
    await Promise.all(
      Array.from({ length: 20 }, (_, turn) => (turn % 2 ? one : two).add([useOf(1)])),
    );

    expect(await usesIn(one)).toBe(20);
    expect(await usesIn(two)).toBe(20);
  });

  it('waits for the lock of another connection without blocking the process', async () => {
    const file = newFile();
    const store = opened(new SqliteUsage(file));
    await store.since();
    const other = opened(new DatabaseSync(file));
    other.exec('BEGIN IMMEDIATE');
    const adding = store.add([useOf(1)]);
    await turn();
    expect(await usesIn(store)).toBeUndefined();
    other.exec('COMMIT');
    await adding;

    expect(await usesIn(store)).toBe(1);
  });

  it('refuses the database of a token store and leaves that usable', async () => {
    const file = newFile();
    await SqliteTokenStore.openFile(file).close();

    expect(await refusalOf(opened(new SqliteUsage(file)).since())).toMatchObject({
      code: 'store_unavailable',
      details: { reason: 'not_opened' },
    });
    expect(opened(SqliteTokenStore.openFile(file)).local).toBe(true);
  });

  it('has a database that a token store refuses and leaves usable', async () => {
    const file = newFile();
    await opened(new SqliteUsage(file)).since();

    expect(await codeOf(() => SqliteTokenStore.openFile(file))).toBe('invalid_options');
    expect(await usesIn(opened(new SqliteUsage(file)))).toBeUndefined();
  });

  it.each([
    ['version 2, which this one cannot use', 2 * 65_536 + 2, 'schema_newer'],
    ['version 2, which this one can use', 65_536 + 2, undefined],
    ['a development version', 2, 'schema_older'],
  ])('opens a database of %s', async (_, mark, reason) => {
    const file = newFile();
    await opened(new SqliteUsage(file)).since();
    const handle = opened(new DatabaseSync(file));
    handle.exec(`PRAGMA user_version = ${mark}`);

    const opening = opened(new SqliteUsage(file)).since();
    if (reason === undefined) expect(await opening).toBeInstanceOf(Date);
    else expect(await refusalOf(opening)).toMatchObject({ details: { reason } });
  });

  it('adds nothing of a batch if a part of it fails', async () => {
    const store = opened(new SqliteUsage(newFile()));
    await store.add([useOf(1)]);
    const broken = { id: ID, refusals: Number.NaN };

    expect(await codeOf(store.add([useOf(1), broken]))).toBe('store_unavailable');
    expect(await usesIn(store)).toBe(1);
    await store.add([useOf(1), { id: ID, refusals: 1 }]);
    expect(await usesIn(store)).toBe(2);
  });

  it('takes part in a transaction of the host', async () => {
    const handle = opened(new DatabaseSync(newFile()));
    const store = new SqliteUsage(handle);
    handle.exec('BEGIN');
    await store.add([useOf(1)]);
    handle.exec('ROLLBACK');

    expect(await usesIn(store)).toBeUndefined();
    await store.add([useOf(1)]);
    expect(await usesIn(store)).toBe(1);
  });

  it('rejects after close, but leaves a handle of the host open', async () => {
    const own = new SqliteUsage(newFile());
    await own.close();
    const handle = opened(new DatabaseSync(newFile()));
    const shared = new SqliteUsage(handle);
    await shared.close();

    expect(await codeOf(own.add([useOf(1)]))).toBe('store_unavailable');
    await expect(shared.add([useOf(1)])).resolves.toBeUndefined();
  });
});
