import { describe, expect, it, vi } from 'vitest';
import { ErrorReporter, StacklessError } from '../../src/http/error-reporter.ts';

function setUp() {
  const time = { ms: 0 };
  const onError = vi.fn();
  return { time, onError, errors: new ErrorReporter(onError, () => time.ms) };
}

describe('ErrorReporter', () => {
  it('reports each error', () => {
    const { errors, onError } = setUp();

    for (let i = 0; i < 3; i++) errors.report(new Error('same'));

    expect(onError).toHaveBeenCalledTimes(3);
  });

  it('reports a frequent kind of error once a minute, separately from other kinds', () => {
    const { errors, onError, time } = setUp();

    for (let i = 0; i < 3; i++) errors.reportSeldom('one', `${i}`);
    errors.reportSeldom('other', 'other');
    time.ms = 59_999;
    errors.reportSeldom('one', 'too soon');
    time.ms = 60_000;
    errors.reportSeldom('one', 'again');

    expect(onError.mock.calls.flat()).toEqual(['0', 'other', 'again']);
  });

  it('reports a missing answer once a minute', () => {
    const { errors, onError, time } = setUp();

    for (let i = 0; i < 3; i++) errors.report(new StacklessError('no answer'));
    time.ms = 60_000;
    errors.report(new StacklessError('no answer'));

    expect(onError).toHaveBeenCalledTimes(2);
  });

  it('survives a listener that throws', () => {
    const errors = new ErrorReporter(() => {
      throw new Error('full disk');
    });

    expect(() => errors.report(new Error('x'))).not.toThrow();
  });
});

describe('StacklessError', () => {
  it('has a message and no stack', () => {
    expect(new StacklessError('no answer').stack).toBe('Error: no answer');
    expect(new Error('control').stack).toContain('\n');
  });
});
