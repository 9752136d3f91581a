import { describe, expect, it } from 'vitest';
import { isTokenError } from '../../src/errors.ts';
import { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { isRecord } from '../../src/token/record.ts';
import { revoked } from '../scope/support.ts';
import { K1, recordOf, refusalOf, SCOPE, setUp } from '../support.ts';

/** The error of a hostile argument. It must never reach the caller. */
const RAW = new Error('raw');

const raise = () => {
  throw RAW;
};

/** A proxy that throws on every operation, from the `nth` one on. */
function hostile(target: object = {}, nth = 1): never {
  let left = nth;
  const trap = (work: (...args: never[]) => unknown) => {
    return (...args: never[]) => {
      left -= 1;
      return left <= 0 ? raise() : work(...args);
    };
  };
  const traps = Object.getOwnPropertyNames(Reflect).map((name) => [
    name,
    trap(Reflect[name as 'get'] as never),
  ]);
  return new Proxy(target, Object.fromEntries(traps)) as never;
}

const getter = (name: string): never =>
  Object.defineProperty({}, name, { get: raise, enumerable: true }) as never;

async function codeOfOurs(call: () => unknown): Promise<string> {
  try {
    await call();
    return 'none';
  } catch (error) {
    expect(error).not.toBe(RAW);
    expect(isTokenError(error)).toBe(true);
    return (error as { code: string }).code;
  }
}

describe('an argument that throws when it is read', () => {
  const make = (options: object) => () => new TokenService(options as never);
  const good = { store: new MemoryTokenStore(), keys: [K1], prefix: 'acme' };

  it.each<[string, () => unknown, string]>([
    ['options', make(hostile()), 'invalid_options'],
    [
      'a getter',
      make(Object.defineProperty({ ...good }, 'reveal', { get: raise })),
      'invalid_options',
    ],
    ['a store', make({ ...good, store: hostile(new MemoryTokenStore()) }), 'invalid_options'],
    ['a catalog', make({ ...good, catalog: hostile() }), 'invalid_options'],
    ['a clock', make({ ...good, clock: hostile() }), 'invalid_options'],
    ['keys', make({ ...good, keys: hostile([]) }), 'invalid_options'],
    ['a key', make({ ...good, keys: [hostile()] }), 'invalid_options'],
    ['quotas', make({ ...good, quotas: hostile() }), 'invalid_options'],
  ])('in the constructor makes it fail with invalid_options: %s', async (_, call, code) => {
    expect(await codeOfOurs(call)).toBe(code);
  });

  it.each<[string, (tokens: TokenService, id: string) => unknown]>([
    ['issue', (t) => t.issue(hostile())],
    ['issue with a getter', (t) => t.issue(getter('account'))],
    ['issue of scopes', (t) => t.issue({ account: 'a', scopes: hostile([]) })],
    ['issue of revoked scopes', (t) => t.issue({ account: 'a', scopes: revoked([]) as never })],
    ['issue of a scope', (t) => t.issue({ account: 'a', scopes: [hostile()] })],
    ['issue with metadata', (t) => t.issue({ account: 'a', scopes: [SCOPE], metadata: hostile() })],
    ['issue for an account', (t) => t.issue({ account: hostile(), scopes: [SCOPE] })],
    ['list', (t) => t.list(hostile())],
    ['list with a scope', (t) => t.list({ account: 'a', scope: hostile() })],
    ['get', (t) => t.get(hostile(), 'x')],
    ['modify', (t, id) => t.modify('a', id, hostile())],
    ['modify with a date', (t, id) => t.modify('a', id, { scopes: [SCOPE], expiresAt: hostile() })],
    ['modify with conditions', (t, id) => t.modify('a', id, { scopes: [SCOPE] }, hostile())],
    ['patch', (t, id) => t.patch('a', id, hostile())],
    ['revoke', (t, id) => t.revoke('a', id, hostile())],
    ['rotate', (t, id) => t.rotate('a', id, hostile())],
    ['verify', (t) => t.verify('x', hostile())],
    ['verify with a scope', (t) => t.verify('x', { scope: hostile() })],
    ['verify with a getter', (t) => t.verify('x', getter('scope'))],
    ['verify with options', (t) => t.verify('x', { scope: SCOPE }, hostile())],
    ['verifySync', (t) => t.verifySync('x', hostile())],
    ['explain', (t, id) => t.explain('a', id, hostile())],
    ['purge', (t) => t.purge(hostile())],
    ['purge with a date', (t) => t.purge({ before: hostile() })],
  ])('of %s is refused with a TokenError', async (_, call) => {
    const { tokens } = setUp();
    const { id } = await tokens.issue({ account: 'a', scopes: [SCOPE] });

    expect(await codeOfOurs(() => call(tokens, id))).toMatch(/^(?:invalid_|scopes_required)/);
  });

  it.each([2, 3, 5, 8, 13, 21])(
    'never leaks its error if it throws only from operation %i on',
    async (nth) => {
      const { tokens } = setUp();
      const { id } = await tokens.issue({ account: 'a', scopes: [SCOPE] });
      const input = { account: 'a', scopes: [SCOPE], metadata: { a: 1 } };

      // The call succeeds if it has read all of the input before that.
      expect(['none', 'invalid_request']).toContain(
        await codeOfOurs(() => tokens.issue(hostile(input, nth))),
      );
      expect(['none', 'invalid_request']).toContain(
        await codeOfOurs(() => tokens.patch('a', id, hostile({ name: 'x' }, nth))),
      );
      expect(['none', 'invalid_request']).toContain(
        await codeOfOurs(() => tokens.verify('x', hostile({ scope: SCOPE }, nth))),
      );
    },
  );

  it('cannot exceed a limit by changing between two reads', async () => {
    const { store, tokens } = setUp();
    let looks = 0;
    const metadata = {
      get note() {
        looks += 1;
        return 'x'.repeat(looks * 3000);
      },
    };
    const issued = tokens.issue({ account: 'a', scopes: [SCOPE], metadata });

    const record = await issued.then(
      ({ id }) => recordOf(store, id),
      () => undefined,
    );
    if (record !== undefined) expect(JSON.stringify(record.metadata).length).toBeLessThan(4097);
    else expect((await refusalOf(issued)).code).toBe('invalid_request');
  });
});

describe('a store that throws when its members are read', () => {
  it.each([1, 2, 5, 8, 9, 10, 12, 15, 20])(
    'from operation %i on never leaks its error',
    async (nth) => {
      const store = hostile(new MemoryTokenStore(), nth);
      let tokens: TokenService | undefined;
      const made = await codeOfOurs(() => {
        tokens = new TokenService({
          store,
          keys: [K1],
          prefix: 'acme',
          cache: { maxStaleMs: 1000 },
        });
      });
      expect(['none', 'invalid_options']).toContain(made);
      const calls: (() => unknown)[] = [
        () => tokens?.issue({ account: 'a', scopes: [SCOPE] }),
        () => tokens?.list({ account: 'a' }),
        () => tokens?.get('a', 'NobodyHasThisId0000000'),
        () => tokens?.revoke('a', 'NobodyHasThisId0000000'),
        () => tokens?.revokeAll('a'),
        () => tokens?.purge({ before: new Date(0) }),
        () => tokens?.close(),
      ];
      for (const call of calls)
        expect(['none', 'store_unavailable']).toContain(await codeOfOurs(call));
    },
  );

  it('or returns a record that throws makes get fail with a store error', async () => {
    const { store, tokens } = setUp();
    const { id } = await tokens.issue({ account: 'a', scopes: [SCOPE] });
    const record = await recordOf(store, id);
    store.break('find', async () => [hostile(record)]);

    expect(await codeOfOurs(() => tokens.get('a', id))).toMatch(/^store_/);
    expect(isRecord(record, id)).toBe(true);
  });
});
