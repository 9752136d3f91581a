import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { OutageLog, outageLog } from '../../src/ports/outage-log.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { ACCOUNT, call, newFolder, newLog, serve } from '../app/cli/support.ts';

const at = new Date(0);
const FAILURE = {
  type: 'store_trouble',
  code: 'store_unavailable',
  reason: 'timeout',
  at,
} as const;
const ANSWER = {
  type: 'store_recovered',
  reason: 'timeout',
  durationMs: 0,
  failed: 1,
  at,
} as const;
const REASON = 'nothing listens there';

/** The log of a store whose diagnosis the test sets. */
function setUp(diagnosis: { diagnose?: () => Promise<string | undefined> } = {}) {
  const { clock, write, take } = newLog();
  let reason: string | undefined = REASON;
  const log = new OutageLog({
    name: 'PostgreSQL at db',
    diagnose: async () => reason,
    write,
    ...diagnosis,
  });
  return {
    fail: (times = 1) => {
      for (let i = 0; i < times; i++) log.record(FAILURE);
    },
    corrupt: () => log.record({ type: 'store_trouble', code: 'store_corrupt', at }),
    answer: () => log.record(ANSWER),
    becomes: (next: string | undefined) => {
      reason = next;
    },
    /** Second by second, since what a timer starts takes turns. */
    async pass(seconds: number) {
      for (let second = 0; second < seconds; second++) {
        clock.advance(1);
        await turn();
      }
    },
    async taken() {
      await turn();
      return take();
    },
    log,
  };
}

async function turn(): Promise<void> {
  await new Promise(setImmediate);
}

describe('the outage log', () => {
  it.each([2, 120])(
    'has the right lines for an outage of %i s under a call a second',
    async (seconds) => {
      const { fail, answer, pass, taken } = setUp();
      for (let second = 0; second < seconds; second++) {
        fail();
        await pass(1);
      }
      answer();
      await pass(10);

      const minutes = Math.floor(seconds / 60);
      const reports = Array.from({ length: minutes }, (_, minute) =>
        minute === 0 ? / still fails: \d+ calls failed in a minute$/ : / still fails: 60 calls/,
      );
      const lines = await taken();
      expect(lines).toHaveLength(2 + minutes);
      expect(lines[0]).toBe(`PostgreSQL at db fails: ${REASON}`);
      for (const [index, pattern] of reports.entries()) expect(lines[index + 1]).toMatch(pattern);
      expect(lines.at(-1)).toBe(
        `PostgreSQL at db works again after ${seconds} s; ${seconds} calls failed`,
      );
    },
  );

  it('tells the truth about a store that nobody calls', async () => {
    const { fail, becomes, pass, taken } = setUp();
    fail(3);
    await pass(2);
    becomes(undefined);
    await pass(120);

    expect(await taken()).toEqual([
      `PostgreSQL at db fails: ${REASON}`,
      'PostgreSQL at db works again after 3 s; 3 calls failed',
    ]);
  });

  it('says why by the reason of the event if there is no diagnosis, or if it finds nothing', async () => {
    for (const diagnose of [undefined, async () => undefined]) {
      const { fail, taken } = setUp({ diagnose } as object);
      fail();
      expect(await taken()).toEqual([
        'PostgreSQL at db fails: the store did not answer in time; try again later',
      ]);
    }
  });

  it('reports the failure before the recovery, even if the diagnosis takes longer', async () => {
    const diagnosis = Promise.withResolvers<string>();
    const { fail, answer, pass, taken } = setUp({ diagnose: () => diagnosis.promise });
    fail();
    await pass(6);
    answer();
    expect(await taken()).toEqual([]);
    diagnosis.resolve(REASON);
    await turn();
    await pass(6);

    expect(await taken()).toEqual([
      `PostgreSQL at db fails: ${REASON}`,
      'PostgreSQL at db works again after 6 s; 1 call failed',
    ]);
  });

  it('has no line while the store works, and none for what is no outage', async () => {
    const { answer, log, pass, taken } = setUp();
    answer();
    log.record({ type: 'store_trouble', code: 'durability_unconfirmed', at });
    await pass(120);

    expect(await taken()).toEqual([]);
  });

  it('treats failures between answers as one outage', async () => {
    const { fail, answer, pass, taken } = setUp();
    fail();
    for (let i = 0; i < 10; i++) {
      await pass(4);
      answer();
      fail();
    }
    expect(await taken()).toHaveLength(1);
    await pass(4);
    answer();
    await pass(6);
    expect(await taken()).toEqual(['PostgreSQL at db works again after 44 s; 11 calls failed']);
  });

  it.each([
    ['with', {}],
    ['without', { diagnose: undefined }],
  ] as const)(
    'treats repeated reads of one corrupt record as one outage, %s a diagnosis',
    async (_, diagnosis) => {
      const { corrupt, becomes, pass, taken } = setUp(diagnosis as object);
      becomes(undefined);
      for (let i = 0; i < 4; i++) {
        corrupt();
        await pass(30);
      }
      const lines = await taken();
      expect(lines[0]).toMatch(/ fails: it returns something that is not a record/);
      expect(lines.slice(1)).toEqual(
        Array(2).fill(expect.stringContaining(' still fails: 2 calls')),
      );
      await pass(60);
      expect((await taken()).at(-1)).toMatch(/works again after 9\d s; 4 calls failed/);
    },
  );

  it('goes on after an error of what takes its lines', async () => {
    const lines: string[] = [];
    const listen = outageLog((line) => {
      lines.push(line);
      throw new Error('the log is full');
    });
    listen(FAILURE);
    listen({ ...FAILURE, store: 'usage' });
    await turn();

    expect(lines).toHaveLength(2);
  });

  it('names the part of a store that fails', async () => {
    const { write, take } = newLog();
    const listen = outageLog(write);
    listen(FAILURE);
    listen({ ...FAILURE, store: 'leases', reason: 'schema_missing' });
    listen({ type: 'clock_ahead', at });
    await turn();

    expect(take()).toEqual([
      'the token store fails: the store did not answer in time; try again later',
      expect.stringMatching(/^the lease store fails: a table of the store does not exist; /),
    ]);
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
