import { describe, expect, it } from 'vitest';
import { PasswordQueue, type Signer } from '../../../src/http/sign-in/password-queue.ts';

const DEADLINE_MS = 30_000;
const SLOTS = 64;

/** A queue whose checks end when the test ends them. */
function setUp(runs = 1) {
  const time = { ms: 0 };
  const queue = new PasswordQueue({ runs, now: () => time.ms });
  const started: string[] = [];
  const ends = new Map<string, (isRight: boolean) => void>();
  const answers = new Map<string, Promise<boolean | string>>();
  const add = (
    key: string,
    network = key,
    more: Partial<Signer> = {},
  ): Promise<boolean | string> => {
    const answer = queue.run(key, signer(network, { username: key, ...more }), () => {
      started.push(key);
      return new Promise((resolve) => void ends.set(key, resolve));
    });
    answers.set(
      key,
      answer.catch(({ code }) => code),
    );
    return answers.get(key) as Promise<boolean | string>;
  };
  const addMany = (network: string, count: number, more: Partial<Signer> = {}) => {
    for (let i = 1; i <= count; i++) add(`${network}${i}`, network, more);
  };
  /** Ends the running checks, and those that start next, until none is left. */
  const endAll = async () => {
    while (ends.size > 0) {
      const [[key, end] = ['', () => {}]] = ends;
      ends.delete(key);
      end(true);
      await answers.get(key);
      await settle();
    }
  };
  return { time, queue, started, answers, add, addMany, endAll };
}

function signer(network: string, more: Partial<Signer> = {}): Signer {
  return { network, username: 'ada', isKnown: false, ...more };
}

/** Lets all promises that can settle do so. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe('PasswordQueue', () => {
  it('runs checks up to its limit and starts the next when one ends', async () => {
    const { add, started, endAll } = setUp(2);

    for (const key of ['a', 'b', 'c']) add(key);
    expect(started).toEqual(['a', 'b']);
    await endAll();

    expect(started).toEqual(['a', 'b', 'c']);
  });

  it('passes on the result or the error of a check', async () => {
    const { queue } = setUp();

    expect(await queue.run('a', signer(''), async () => true)).toBe(true);
    expect(await queue.run('b', signer(''), async () => false)).toBe(false);
    await expect(
      queue.run('c', signer(''), () => Promise.reject(new Error('out'))),
    ).rejects.toThrow('out');
    expect(await queue.run('d', signer(''), async () => true)).toBe(true);
  });

  it('lets addresses take turns', async () => {
    const { add, addMany, started, endAll } = setUp();
    addMany('x', 5);
    addMany('y', 2);
    add('single');

    await endAll();

    expect(started).toEqual(['x1', 'x2', 'y1', 'single', 'x3', 'y2', 'x4', 'x5']);
  });

  it('runs one check for all concurrent callers with the same key', async () => {
    const { add, started, endAll } = setUp();
    const both = [add('a'), add('a')];
    await endAll();
    expect(await Promise.all(both)).toEqual([true, true]);
    expect(started).toEqual(['a']);

    const later = add('a');
    await endAll();

    expect(await later).toBe(true);
    expect(started).toEqual(['a', 'a']);
  });

  it('lets users of one address take turns', async () => {
    const { add, addMany, started, endAll } = setUp();
    addMany('x', 4, { username: 'ada' });
    add('bob', 'x');

    await endAll();

    expect(started).toEqual(['x1', 'x2', 'bob', 'x3', 'x4']);
  });

  it('gives every second turn to users who are known, but no more', async () => {
    const { add, addMany, started, endAll } = setUp();
    addMany('x', 5);
    addMany('y', 3, { isKnown: true });
    add('single');

    await endAll();

    expect(started).toEqual(['x1', 'x2', 'y1', 'single', 'y2', 'x3', 'y3', 'x4', 'x5']);
  });

  it('keeps as many checks of one address waiting as it has room for', async () => {
    const { add, addMany, answers, started, endAll } = setUp();
    addMany('x', SLOTS);

    expect(await add('x65', 'x')).toBe('overloaded');
    await endAll();

    expect(await answers.get('x64')).toBe(true);
    expect(started).not.toContain('x65');
    expect(await Promise.race([add('x65', 'x'), settle()])).toBeUndefined();
  });

  it('drops the newest check of an unknown user to make room for a known one', async () => {
    const { add, addMany, answers, started, endAll } = setUp();
    addMany('x', SLOTS - 1);
    add('known 1', 'x', { isKnown: true });

    add('known 2', 'x', { isKnown: true });
    await settle();

    expect(await answers.get('x63')).toBe('overloaded');
    await endAll();
    expect(await answers.get('known 2')).toBe(true);
    expect(await answers.get('x62')).toBe(true);
    expect(started.indexOf('known 2')).toBeLessThan(6);
  });

  it('does not drop a known user for another of the same address', async () => {
    const { add, addMany, answers, endAll } = setUp();
    addMany('x', SLOTS, { isKnown: true });

    expect(await add('known', 'x', { isKnown: true })).toBe('overloaded');
    await endAll();

    expect(await answers.get('x64')).toBe(true);
  });

  it('drops the newest check of the busiest address to make room for another address', async () => {
    const { add, addMany, answers, started, endAll } = setUp();
    addMany('', SLOTS);

    add('newcomer');
    await settle();

    expect(await answers.get('64')).toBe('overloaded');
    await endAll();
    expect(await answers.get('newcomer')).toBe(true);
    expect(await answers.get('63')).toBe(true);
    expect(started.indexOf('newcomer')).toBeLessThan(3);
  });

  it('does not drop a check for an address that has as many checks', async () => {
    const { add, answers, endAll } = setUp();
    for (let i = 1; i <= SLOTS; i++) add(`${i}`);

    expect(await add('newcomer')).toBe('overloaded');
    await endAll();

    for (let i = 1; i <= SLOTS; i++) expect(await answers.get(`${i}`)).toBe(true);
  });

  it('does not start a check whose callers have stopped waiting', async () => {
    const { add, answers, started, endAll, time } = setUp();
    add('a');
    add('late');
    time.ms = 1;
    add('in time');

    time.ms = DEADLINE_MS + 1;
    await endAll();

    expect(started).toEqual(['a', 'in time']);
    expect(await answers.get('late')).toBe('overloaded');
    expect(await answers.get('in time')).toBe(true);
  });

  it('keeps a check waiting until the deadline of its last caller', async () => {
    const { add, started, endAll, time } = setUp();
    add('a');
    const first = add('b');
    time.ms = 5000;
    add('b');

    time.ms = DEADLINE_MS + 5000;
    await endAll();

    expect(started).toEqual(['a', 'b']);
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

  it('gives the slots of late checks to new ones', async () => {
    const { add, addMany, answers, endAll, time } = setUp();
    addMany('x', SLOTS);
    expect(await add('too many', 'x')).toBe('overloaded');

    time.ms = DEADLINE_MS + 1;
    add('new', 'x');
    await endAll();

    expect(await answers.get('x64')).toBe('overloaded');
    expect(await answers.get('new')).toBe(true);
  });
});
