import { describe, expect, it } from 'vitest';
import { OutageLog } from '../../src/cli/outage-log.ts';
import { MemoryTokenStore } from '../../src/index.ts';
import { newLog } from './support.ts';

const FAILURE = { code: 'store_unavailable' };
const REASON = 'nothing listens there';

/** A log of a store whose diagnosis is what the test says. */
function setUp() {
  const { clock, write, schedule, runLater, take } = newLog();
  let reason: string | undefined = REASON;
  const diagnose = async () => reason;
  const log = new OutageLog({ name: 'PostgreSQL at db', diagnose, write, clock, schedule });
  const store = log.observed(new MemoryTokenStore());
  return {
    clock,
    fail: (times = 1) => {
      for (let i = 0; i < times; i++) log.recordTrouble(FAILURE);
    },
    answer: () => store.find([]),
    becomes: (next: string | undefined) => {
      reason = next;
    },
    async minute() {
      clock.advance(60);
      runLater();
      await turn();
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

describe('the log of outages', () => {
  it('has a line when the store begins to fail, one a minute, and one when it works again', async () => {
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

  it('has no line while the store works', async () => {
    const { answer, log, minute, taken } = setUp();

    await answer();
    log.recordTrouble({ code: 'store_corrupt' });
    await minute();

    expect(await taken()).toEqual([]);
  });

  it('takes failures between answers for one outage', async () => {
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

  it('notices the end without calls, and says nothing while it goes on', async () => {
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

  it('counts no failure as an answer', async () => {
    const { clock, fail, log, taken } = setUp();
    const failing = Object.assign(new MemoryTokenStore(), {
      find: () => Promise.reject(new Error()),
    });
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
