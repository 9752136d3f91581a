import { describe, expect, it } from 'vitest';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { faults, type StoreFault, storeContract, withFaults } from '../../src/testing/index.ts';
import { codeOf, recordOf, SCOPE, setUp } from '../support.ts';

const need = { scope: SCOPE };

const STORES = [
  ['memory', () => new MemoryTokenStore()],
  ['SQLite', () => SqliteTokenStore.open(':memory:')],
] as const;

const HARMLESS: readonly (readonly [string, StoreFault[]])[] = [
  ['delays (further)', [faults.delay(2)]],
  ['duplicates (further)', [faults.duplicate()]],
  ['delayed duplicates', [faults.delay(1), faults.duplicate()]],
];

describe.each(
  STORES.flatMap(([store, open]) =>
    HARMLESS.map(([name, chosen]) => [store, name, () => withFaults(open(), ...chosen)] as const),
  ),
)('%s store with %s', (_, __, open) => {
  it.each(storeContract)('$name', (promise) => promise.run(open));
});

describe('storeContract', () => {
  it.each([
    ['requests', faults.lostRequest()],
    ['answers', faults.lostAnswer()],
  ])('fails in nearly every case if the store loses %s', async (_, fault) => {
    const open = () => withFaults(new MemoryTokenStore(), fault);
    const outcomes = await Promise.allSettled(storeContract.map((promise) => promise.run(open)));
    const broken = outcomes.filter(({ status }) => status === 'rejected');
    expect(broken.length).toBeGreaterThan(storeContract.length - 5);
  });
});

describe('a service whose store has faults', () => {
  it.each([
    ['a lost request', faults.lostRequest, false],
    ['a lost answer', faults.lostAnswer, true],
  ])(
    'rejects revoke with store_unavailable after %s, and verify follows the store',
    async (_, fault, isRevoked) => {
      const inner = new MemoryTokenStore();
      const store = withFaults(
        inner,
        fault(({ method }) => method === 'revoke'),
      );
      const { tokens } = setUp({ store });
      const { id, value } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });

      expect(await codeOf(tokens.revoke('acme', id))).toBe('store_unavailable');
      expect((await recordOf(inner, id)).revokedAt !== undefined).toBe(isRevoked);
      expect((await tokens.verify(value, need)).ok).toBe(!isRevoked);
    },
  );

  it('rejects verify at its deadline while reads hang, and works again afterwards', async () => {
    let isHanging = false;
    const store = withFaults(
      new MemoryTokenStore(),
      faults.hang(() => isHanging),
    );
    const { tokens } = setUp({ store, deadlineMs: 5 });
    const { value } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    isHanging = true;
    expect(await codeOf(tokens.verify(value, need))).toBe('store_unavailable');
    isHanging = false;
    expect((await tokens.verify(value, need)).ok).toBe(true);
  });

  it('issues a token that exists, even if the insert is delivered twice', async () => {
    const { tokens } = setUp({ store: withFaults(new MemoryTokenStore(), faults.duplicate()) });
    const { id } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    expect((await tokens.get('acme', id))?.id).toBe(id);
  });
});

describe('withFaults', () => {
  it('applies the faults to each call, the first one outermost', async () => {
    const seen: string[] = [];
    const note =
      (name: string): StoreFault =>
      async ({ method }, run) => {
        seen.push(`${name} ${method}`);
        return run();
      };
    const store = withFaults(new MemoryTokenStore(), note('outer'), note('inner'));
    await store.find([]);

    expect(seen).toEqual(['outer find', 'inner find']);
  });

  it('has only the optional methods that the store has, and is never local', () => {
    const wrapped = withFaults(new MemoryTokenStore());
    expect([wrapped.local, wrapped.watch, wrapped.doctor]).toEqual([false, undefined, undefined]);
    const sqlite = withFaults(SqliteTokenStore.open(':memory:'));
    expect([typeof sqlite.watch, typeof sqlite.doctor, typeof sqlite.close]).toEqual([
      'function',
      'function',
      'function',
    ]);
  });
});
