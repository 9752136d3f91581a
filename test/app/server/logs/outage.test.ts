import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { OutageLog } from '../../../../src/app/server/logs/outage.ts';
import {
  generateKey,
  MemoryTokenStore,
  type TokenEvent,
  TokenService,
} from '../../../../src/index.ts';
import { SqliteTokenStore } from '../../../../src/stores/sqlite/index.ts';
import { faults, withFaults } from '../../../../src/testing/index.ts';
import { ACCOUNT, call, newFolder, newLog, serve } from '../../cli/support.ts';

const FAILURE = { code: 'store_unavailable' };
const REASON = 'nothing listens there';
const NEED = { scope: 'GET:a.example/b' };

/** The log of a store whose diagnosis the test sets. */
function setUp() {
  const { clock, write, take } = newLog();
  let reason: string | undefined = REASON;
  const diagnose = async () => reason;
  const log = new OutageLog({ name: 'PostgreSQL at db', diagnose, write });
  const store = log.observed(new MemoryTokenStore());
  return {
    clock,
    fail: (times = 1) => {
      for (let i = 0; i < times; i++) log.recordTrouble(FAILURE);
    },
    corrupt: () => log.recordTrouble({ code: 'store_corrupt' }),
    answer: () => store.find([]),
    becomes: (next: string | undefined) => {
      reason = next;
    },
    async minute() {
      clock.advance(60);
      await turn();
    },
    async taken() {
      await turn();
      return take();
    },
    log,
  };
}

async function issuedBy(tokens: TokenService): Promise<string> {
  const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:a.example/b'] });
  return value;
}

async function turn(): Promise<void> {
  await new Promise(setImmediate);
}

describe('the outage log', () => {
  it('has a line when the store begins to fail, one a minute, and one when it recovers', async () => {
    const { clock, fail, answer, minute, taken } = setUp();

    fail(3);
    expect(await taken()).toEqual([`PostgreSQL at db fails: ${REASON}`]);
    await minute();
    fail();
    await minute();
    expect(await taken()).toEqual([
      'PostgreSQL at db still fails: 3 calls failed in a minute',
      'PostgreSQL at db still fails: 1 call failed in a minute, 4 in all',
    ]);
    clock.advance(5);
    await answer();
    expect(await taken()).toEqual(['PostgreSQL at db works again after 125 s; 4 calls failed']);
    await minute();
    await answer();
    expect(await taken()).toEqual([]);
  });

  it('reports the failure before the recovery, even if the diagnosis takes longer', async () => {
    const { clock, write, take } = newLog();
    const diagnosis = Promise.withResolvers<string>();
    const diagnose = () => diagnosis.promise;
    const log = new OutageLog({ name: 'Redis', diagnose, write });
    const store = log.observed(new MemoryTokenStore());
    log.recordTrouble(FAILURE);
    clock.advance(6);
    await store.find([]);
    await turn();
    expect(take()).toEqual([]);
    diagnosis.resolve(REASON);
    await turn();
    await store.find([]);
    await turn();

    expect(take()).toEqual([
      `Redis fails: ${REASON}`,
      'Redis works again after 6 s; 1 call failed',
    ]);
  });

  it('has no line while the store works', async () => {
    const { answer, minute, taken } = setUp();

    await answer();
    await minute();

    expect(await taken()).toEqual([]);
  });

  it('has no line for other trouble or an ordinary refusal', async () => {
    const { write, take } = newLog();
    const store = new MemoryTokenStore();
    const diagnose = async () => REASON;
    const log = new OutageLog({ name: 'the store', diagnose, write });
    const onEvent = (event: TokenEvent) => {
      if (event.type === 'store_trouble') log.recordTrouble(event);
    };
    const tokens = new TokenService({
      store: log.observed(store),
      keys: [generateKey()],
      prefix: 'tw',
      onEvent,
    });

    const value = await issuedBy(tokens);
    await tokens.verify('tw_wrong', NEED);
    await tokens.verify(value, { scope: 'GET:b.example/b' });
    await expect(tokens.patch('ada', 'unknown', { name: 'ci' })).rejects.toThrow();
    log.recordTrouble({ code: 'durability_unconfirmed' });
    await turn();
    expect(take()).toEqual([]);

    store.find = () => Promise.reject(new Error());
    await expect(tokens.verify(value, NEED)).rejects.toThrow();
    await turn();
    expect(take()).toEqual([`the store fails: ${REASON}`]);
  });

  it('has a line when the store becomes corrupt, and one when it recovers', async () => {
    const { clock, corrupt, answer, becomes, taken } = setUp();
    becomes('the database file was replaced');

    corrupt();
    corrupt();
    expect(await taken()).toEqual(['PostgreSQL at db fails: the database file was replaced']);
    clock.advance(5);
    await answer();
    expect(await taken()).toEqual(['PostgreSQL at db works again after 5 s; 2 calls failed']);
  });

  it('treats repeated reads of one corrupt record as one outage, until a minute without them', async () => {
    const { clock, corrupt, answer, becomes, taken } = setUp();
    becomes(undefined);
    corrupt();
    expect(await taken()).toEqual([
      expect.stringContaining('fails: it returns something that is not a record'),
    ]);
    for (let i = 0; i < 4; i++) {
      clock.advance(50);
      await answer();
      corrupt();
    }
    expect(await taken()).toEqual(Array(3).fill(expect.stringContaining('still fails')));

    clock.advance(60);
    await answer();
    expect((await taken()).at(-1)).toBe('PostgreSQL at db works again after 260 s; 5 calls failed');
  });

  it('treats failures between answers as one outage', async () => {
    const { clock, fail, answer, taken } = setUp();
    fail();
    for (let i = 0; i < 10; i++) {
      clock.advance(4);
      await answer();
      fail();
    }
    expect(await taken()).toHaveLength(1);

    clock.advance(4);
    await answer();
    expect(await taken()).toEqual([]);
    clock.advance(1);
    await answer();
    expect(await taken()).toEqual(['PostgreSQL at db works again after 45 s; 11 calls failed']);
  });

  it('notices the end of an outage without calls, and has no lines until then', async () => {
    const { fail, becomes, minute, taken } = setUp();
    fail();
    await minute();
    await taken();

    await minute();
    expect(await taken()).toEqual([]);
    becomes(undefined);
    await minute();
    expect(await taken()).toEqual(['PostgreSQL at db works again after 180 s; 1 call failed']);
    fail();
    expect(await taken()).toEqual([
      expect.stringContaining('calls fail or are not answered in time'),
    ]);
  });

  it('does not treat a failed call as a recovery', async () => {
    const { clock, fail, log, taken } = setUp();
    const failing = withFaults(new MemoryTokenStore(), faults.lostRequest());
    fail();
    await taken();

    clock.advance(5);
    await log
      .observed(failing)
      .find([])
      .catch(() => {});

    expect(await taken()).toEqual([]);
  });
});

describe('serve on an SQLite file that is replaced', () => {
  it('logs it in one line, and uses the new file', async () => {
    const data = newFolder();
    const other = join(newFolder(), 'other.db');
    await SqliteTokenStore.openFile(other).close();
    const service = await serve(['--data', data, ...ACCOUNT]);
    expect((await call(service, '/token')).status).toBe(200);

    renameSync(other, join(data, 'tokens.db'));
    expect((await call(service, '/token')).status).toBe(503);
    expect((await call(service, '/token')).status).toBe(200);

    const { stderr } = await service.stop();
    const lines = stderr.split('\n').filter((line) => line.includes(' fails: '));
    expect(lines).toEqual([expect.stringMatching(/^tokenwright: SQLite in \S+ fails: .+replaced/)]);
  });
});
