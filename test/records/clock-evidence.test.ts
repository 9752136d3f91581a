import { describe, expect, it } from 'vitest';
import { CheckedStore } from '../../src/records/checked-store.ts';
import { ClockEvidence } from '../../src/records/clock-evidence.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { newRecord } from '../stores/support.ts';
import { DatedStore, QUIET } from '../support.ts';

const DAY = 86_400_000;
const HOUR = 3_600_000;
const NOW = Date.parse('2100-06-01T00:00:00.000Z');

/** Clocks that a test moves, and a store with records of these ages. */
async function setUp({
  ages = [],
  lead = 0,
  store = new DatedStore() as MemoryTokenStore,
}: Setting) {
  const write = async (label: string, at: number) =>
    store.insert(newRecord(label, { createdAt: new Date(at), expiresAt: new Date(at + DAY) }));
  for (const [index, age] of ages.entries()) await write(`n${index}`, NOW - age);
  const clock = { ranMs: 0, lead };
  const checked = new CheckedStore(store, { isLocal: true, deadlineMs: 1000, health: QUIET });
  const evidence = new ClockEvidence(checked, () => clock.ranMs);
  const now = () => NOW + clock.ranMs + clock.lead;
  return {
    clock,
    confirms: () => evidence.confirms(now()),
    /** Writes by the clock of this process. */
    write: (label: string) => write(label, now()),
    /** Writes by a clock that is right. */
    writeRight: (label: string) => write(label, NOW + clock.ranMs),
  };
}

interface Setting {
  readonly ages?: readonly number[];
  readonly lead?: number;
  readonly store?: MemoryTokenStore;
}

describe('the evidence of the store for a clock', () => {
  it.each([
    ['a record of this moment', [1], 0, true],
    ['a record of yesterday', [DAY], 0, true],
    ['an older one', [DAY + 1], 0, false],
    ['an older one and a newer one', [3 * DAY, HOUR], 0, true],
    ['a record of this moment, and a clock that is almost a day ahead', [1], DAY - 1, true],
    ['and one that is further ahead', [1], DAY, false],
    ['and one that is a year ahead', [1], 365 * DAY, false],
    ['and one that is years behind', [0], -1000 * DAY, true],
    ['no record', [], 365 * DAY, true],
  ])('is %s: %4$s', async (_, ages, lead, expected) => {
    expect(await (await setUp({ ages, lead })).confirms()).toBe(expected);
  });

  it('is none in a store that does not know the time', async () => {
    const store = new MemoryTokenStore();

    expect(await (await setUp({ ages: [9 * DAY], store })).confirms()).toBe(true);
  });

  it('is nothing that the process may have written itself', async () => {
    const { clock, confirms, write } = await setUp({ ages: [1], lead: 365 * DAY });
    clock.ranMs = 1;
    await write('own');
    clock.ranMs = HOUR;

    expect(await confirms()).toBe(false);
  });

  it('is not asked for again while both clocks go on alike', async () => {
    const { clock, confirms } = await setUp({ ages: [1] });
    expect(await confirms()).toBe(true);
    clock.ranMs = 400 * DAY;
    expect(await confirms()).toBe(true);
    clock.lead = DAY;
    expect(await confirms()).toBe(true);
    clock.lead = DAY + 1;

    expect(await confirms()).toBe(false);
  });

  it('is lost when the clock jumps, however long the process had run', async () => {
    const { clock, confirms, write } = await setUp({ ages: [1] });
    for (let day = 0; day < 500; day += 1) {
      clock.ranMs = day * DAY;
      await write(`d${day}`);
      expect(await confirms()).toBe(true);
    }
    clock.lead = 365 * DAY;
    await write('fast');

    expect(await confirms()).toBe(false);
    clock.ranMs += HOUR;
    expect(await confirms()).toBe(false);
    clock.lead = 0;
    expect(await confirms()).toBe(true);
  });

  it('comes when the clock is put right', async () => {
    const { clock, confirms, write } = await setUp({ ages: [1], lead: 365 * DAY });
    expect(await confirms()).toBe(false);
    clock.ranMs = HOUR;
    await write('own');
    clock.lead = 0;

    expect(await confirms()).toBe(true);
  });

  it('is not needed by a process that has run longer than its clock was ahead', async () => {
    const { clock, confirms, writeRight } = await setUp({ ages: [3 * DAY] });
    expect(await confirms()).toBe(false);
    clock.ranMs = HOUR;
    await writeRight('one');
    expect(await confirms()).toBe(false);
    clock.ranMs = 4 * DAY;

    expect(await confirms()).toBe(true);
    clock.ranMs = 400 * DAY;
    expect(await confirms()).toBe(true);
  });

  it('is asked for a few times only', async () => {
    const store = new DatedStore();
    const { confirms } = await setUp({ ages: [4000 * DAY], store });
    await confirms();

    expect(store.asked).toBeLessThanOrEqual(15);
  });
});
