import { describe, expect, it } from 'vitest';
import { PasswordQueue } from '../../src/http/password-queue.ts';

const DEADLINE_MS = 10_000;
const PLACES = 64;
const PLACES_OF_ADDRESS = 8;

/** A queue whose checks end when the test says so. */
function setUp(runs = 1) {
  const time = { ms: 0 };
  const queue = new PasswordQueue({ runs, now: () => time.ms });
  const begun: string[] = [];
  const ends = new Map<string, (isRight: boolean) => void>();
  const answers = new Map<string, Promise<boolean | string>>();
  const add = (key: string, network = key): Promise<boolean | string> => {
    const answer = queue.run(key, network, () => {
      begun.push(key);
      return new Promise((resolve) => void ends.set(key, resolve));
    });
    answers.set(
      key,
      answer.catch(({ code }) => code),
    );
    return answers.get(key) as Promise<boolean | string>;
  };
  const addMany = (network: string, count: number) => {
    for (let i = 1; i <= count; i++) add(`${network}${i}`, network);
  };
  /** Ends what is under way, and what then begins, until nothing is. */
  const endAll = async () => {
    while (ends.size > 0) {
      const [[key, end] = ['', () => {}]] = ends;
      ends.delete(key);
      end(true);
      await answers.get(key);
      await settle();
    }
  };
  return { time, queue, begun, answers, add, addMany, endAll };
}

/** Lets all promises that can settle do so. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe('PasswordQueue', () => {
  it('begins as many checks as it may, and the next when one ends', async () => {
    const { add, begun, endAll } = setUp(2);

    for (const key of ['a', 'b', 'c']) add(key);
    expect(begun).toEqual(['a', 'b']);
    await endAll();

    expect(begun).toEqual(['a', 'b', 'c']);
  });

  it('tells what a check says, and what it throws', async () => {
    const { queue } = setUp();

    expect(await queue.run('a', '', async () => true)).toBe(true);
    expect(await queue.run('b', '', async () => false)).toBe(false);
    await expect(queue.run('c', '', () => Promise.reject(new Error('out')))).rejects.toThrow('out');
    expect(await queue.run('d', '', async () => true)).toBe(true);
  });

  it('lets addresses take turns', async () => {
    const { add, addMany, begun, endAll } = setUp();
    addMany('x', 5);
    addMany('y', 2);
    add('single');

    await endAll();

    expect(begun).toEqual(['x1', 'x2', 'y1', 'single', 'x3', 'y2', 'x4', 'x5']);
  });

  it('does one check for all callers with the same key', async () => {
    const { add, begun, endAll } = setUp();
    const both = [add('a'), add('a')];
    await endAll();
    expect(await Promise.all(both)).toEqual([true, true]);
    expect(begun).toEqual(['a']);

    const later = add('a');
    await endAll();

    expect(await later).toBe(true);
    expect(begun).toEqual(['a', 'a']);
  });

  it('takes eight checks of one address, and refuses the ninth without beginning it', async () => {
    const { add, addMany, answers, begun, endAll } = setUp();
    addMany('x', PLACES_OF_ADDRESS);

    expect(await add('x9', 'x')).toBe('overloaded');
    add('y');
    await endAll();

    expect(await answers.get('x8')).toBe(true);
    expect(await answers.get('y')).toBe(true);
    expect(begun).not.toContain('x9');
    expect(await Promise.race([add('x9', 'x'), settle()])).toBeUndefined();
  });

  it('bounds callers of no known address by the limit for all alone', async () => {
    const { add, addMany, answers, endAll } = setUp();
    addMany('', PLACES);

    expect(await add('one more', '')).toBe('overloaded');
    await endAll();

    expect(await answers.get('64')).toBe(true);
  });

  it('makes place for an address with fewer checks: the newest of the one with the most goes', async () => {
    const { add, addMany, answers, begun, endAll } = setUp();
    addMany('', PLACES);

    add('newcomer');
    await settle();

    expect(await answers.get('64')).toBe('overloaded');
    await endAll();
    expect(await answers.get('newcomer')).toBe(true);
    expect(await answers.get('63')).toBe(true);
    expect(begun.indexOf('newcomer')).toBeLessThan(3);
  });

  it('lets no address be displaced by one with as many', async () => {
    const { add, answers, endAll } = setUp();
    for (let i = 1; i <= PLACES; i++) add(`${i}`);

    expect(await add('newcomer')).toBe('overloaded');
    await endAll();

    for (let i = 1; i <= PLACES; i++) expect(await answers.get(`${i}`)).toBe(true);
  });

  it('begins no check whose callers have stopped waiting', async () => {
    const { add, answers, begun, endAll, time } = setUp();
    add('a');
    add('late');
    time.ms = 1;
    add('in time');

    time.ms = DEADLINE_MS + 1;
    await endAll();

    expect(begun).toEqual(['a', 'in time']);
    expect(await answers.get('late')).toBe('overloaded');
    expect(await answers.get('in time')).toBe(true);
  });

  it('waits as long as the last of its callers', async () => {
    const { add, begun, endAll, time } = setUp();
    add('a');
    const first = add('b');
    time.ms = 5000;
    add('b');

    time.ms = DEADLINE_MS + 5000;
    await endAll();

    expect(begun).toEqual(['a', 'b']);
    expect(await first).toBe(true);
  });

  it.each([
    [DEADLINE_MS, true],
    [DEADLINE_MS + 1, 'overloaded'],
  ])('answers a check that ends after %s ms with %s', async (ms, expected) => {
    const { add, endAll, time } = setUp();
    const answer = add('a');

    time.ms = ms;
    await endAll();

    expect(await answer).toBe(expected);
  });

  it('gives the places of late checks to new ones', async () => {
    const { add, addMany, answers, endAll, time } = setUp();
    addMany('x', PLACES_OF_ADDRESS);
    expect(await add('too many', 'x')).toBe('overloaded');

    time.ms = DEADLINE_MS + 1;
    add('new', 'x');
    await endAll();

    expect(await answers.get('x8')).toBe('overloaded');
    expect(await answers.get('new')).toBe(true);
  });
});
