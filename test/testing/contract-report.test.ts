import { describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { storeUnavailable, TokenError } from '../../src/errors.ts';
import type { EngineStore } from '../../src/ports/engine-store.ts';
import type { StoreFinding } from '../../src/ports/token-store.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import {
  contractReport,
  faults,
  leaseContract,
  requestContract,
  type Scratch,
  storeContract,
  usageContract,
  withFaults,
} from '../../src/testing/index.ts';
import type { TokenRecord } from '../../src/token/record.ts';

const CANARY = 'canary';

function scratchOf(open: () => EngineStore): Scratch {
  return { engine: 'memory', driver: 'none', open: async () => open(), drop: async () => {} };
}

const ALL = [storeContract, usageContract, leaseContract, requestContract].flat().length;

/** A store whose leases never fill up. */
function withoutLimits(): EngineStore {
  const store = new MemoryTokenStore();
  const leases = {
    take: async (wants: readonly { readonly want: number }[]) => wants.map(({ want }) => want),
    giveBack: async () => {},
    purge: async () => 0,
  };
  return Object.assign(withFaults(store), { leases });
}

class IgnoresVersion extends MemoryTokenStore {
  override async replace(next: TokenRecord): Promise<boolean> {
    const [record] = await this.find([next.id]);
    return record !== undefined && super.replace({ ...next, version: record.version + 1 });
  }
}

/** A store each of whose reads of usage fails. */
function failingWith(error: unknown): EngineStore {
  const store = new MemoryTokenStore();
  const read = async () => {
    throw error;
  };
  return Object.assign(withFaults(store), { usage: { ...usageOf(store), read } });
}

/** The methods of usage, which a class does not let be spread. */
function usageOf({ usage }: EngineStore): EngineStore['usage'] {
  return {
    add: (batch) => usage.add(batch),
    read: (ids) => usage.read(ids),
    forget: (ids) => usage.forget(ids),
  };
}

describe('contractReport', () => {
  it('runs every case of the three contracts on a store that keeps all promises', async () => {
    const report = await contractReport(scratchOf(() => new MemoryTokenStore()));

    expect(report).toEqual({
      tokenwright: packageJson.version,
      engine: 'memory',
      driver: 'none',
      runtime: `node ${process.versions.node}`,
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      ms: expect.any(Number),
      of: ALL,
      passed: ALL,
      failed: [],
      findings: [],
    });
    expect(Number.isInteger(report.ms)).toBe(true);
    expect(Object.keys(report)).toHaveLength(10);
  });

  it('names each promise that a store breaks, and no other', async () => {
    const { of, passed, failed } = await contractReport(scratchOf(() => new IgnoresVersion()));
    const names = failed.map((each) => each.case);

    expect(names).toContain('replace: replaces only the version before');
    expect(names).not.toContain('insert: stores every field of a record');
    expect(passed).toBe(of - failed.length);
    expect(names.every((name) => storeContract.some((promise) => promise.name === name))).toBe(
      true,
    );
  });

  it('marks the promises of usage and leases by their part', async () => {
    const { failed } = await contractReport(scratchOf(withoutLimits), { only: 'leases' });

    expect(failed.map((each) => each.case)).toContain(
      'leases: take: grants at most the limit to a caller who asks for more',
    );
  });

  it.each([
    ['tokens', storeContract],
    ['usage', usageContract],
    ['leases', leaseContract],
    ['requests', requestContract],
  ] as const)('checks %s alone', async (only, contract) => {
    const report = await contractReport(
      scratchOf(() => new MemoryTokenStore()),
      { only },
    );
    expect(report).toMatchObject({ of: contract.length, passed: contract.length, failed: [] });
  });

  it('opens a new store for each promise, and closes it', async () => {
    let [opened, open] = [0, 0];
    class Counted extends MemoryTokenStore {
      async close(): Promise<void> {
        open -= 1;
      }
    }
    await contractReport(
      scratchOf(() => {
        expect(open).toBe(0);
        opened += 1;
        open += 1;
        return new Counted();
      }),
      { only: 'usage' },
    );

    // The last one is examined by doctor.
    expect({ opened, open }).toEqual({ opened: usageContract.length + 1, open: 0 });
  });

  it.each<[string, unknown, string]>([
    ['the reason of a store', storeUnavailable('full'), storeUnavailable('full').message],
    [
      'not the message of a store',
      new TokenError('store_unavailable', CANARY),
      storeUnavailable('unknown').message,
    ],
    [
      'not what a driver says',
      new Error(CANARY),
      'it failed with an error that is not a TokenError',
    ],
    [
      'the code of another error',
      new TokenError('id_taken', CANARY),
      'it was refused with id_taken',
    ],
  ])('tells %s', async (_, error, message) => {
    const report = await contractReport(
      scratchOf(() => failingWith(error)),
      { only: 'usage' },
    );

    expect(report.failed.map((each) => each.message)).toContain(message);
    expect(JSON.stringify(report)).not.toContain(CANARY);
  });

  it('shows numbers that differ, and no text of a store', async () => {
    class Miscounts extends MemoryTokenStore {
      override async insert(record: TokenRecord): Promise<void> {
        await super.insert({ ...record, account: CANARY });
      }
    }
    const report = await contractReport(
      scratchOf(() => new Miscounts()),
      { only: 'tokens' },
    );
    const messages = new Set(report.failed.map((each) => each.message));

    expect(messages).toContain('expected 1, but got 0');
    expect(messages).toContain('the store answers otherwise than promised');
    expect(JSON.stringify(report)).not.toContain(CANARY);
  });

  it('rejects if no store can be opened, which breaks no promise', async () => {
    const open = async () => {
      throw storeUnavailable('forbidden');
    };
    const report = contractReport({ ...scratchOf(() => new MemoryTokenStore()), open });

    await expect(report).rejects.toMatchObject({ details: { reason: 'forbidden' } });
  });

  it('ends, although a list of the store does not', async () => {
    const store = () => {
      const memory = new MemoryTokenStore();
      const page = async () => memory.page({ account: 'acme', limit: 1, liveAt: new Date(0) });
      const usage = { ...usageOf(memory), scan: async () => ({ ids: [], next: 'on' }) };
      return Object.assign(withFaults(memory), { page, usage });
    };
    const { failed } = await contractReport(scratchOf(store));
    const messages = new Set(failed.map((each) => each.message));

    expect(messages).toContain('the pages go on after 1000');
    expect(messages).toContain('scan goes on after 1000000 steps');
  });

  it('counts a failure between two promises as a broken one', async () => {
    let calls = 0;
    const isHit = ({ method }: { readonly method: string }) => method === 'count' && calls++ === 0;
    const open = () => withFaults(new MemoryTokenStore(), faults.lostAnswer(isHit));
    const { failed } = await contractReport(scratchOf(open), { only: 'tokens' });

    expect(failed).toEqual([
      {
        case: 'count: counts live and ended records, and suspended ones as live',
        message: storeUnavailable('unreachable').message,
      },
    ]);
  });
});

describe('contractReport with a doctor', () => {
  const findingsWith = async (doctor: () => Promise<StoreFinding[]>) => {
    const open = () => Object.assign(new MemoryTokenStore(), { doctor });
    return (await contractReport(scratchOf(open), { only: 'usage' })).findings;
  };

  it.each([
    ['db.internal:6379 has no append-only file', 'a server has no append-only file'],
    ['each of 10.0.0.1:1, [::1]:65535, db-2:7 is old', 'each server is old'],
    ['the server is older than Redis 6.2: writes fail', undefined],
    ['differs by 5000 ms: see 3 lines', undefined],
  ])('reports its finding without a host: %s', async (message, shown = message) => {
    const found = [{ code: 'found', message, part: 'leases' as const }];
    expect(await findingsWith(async () => found)).toEqual([{ ...found[0], message: shown }]);
  });

  it('reports that it may not look', async () => {
    const findings = await findingsWith(async () => {
      throw new TokenError('store_unavailable', CANARY, { reason: 'forbidden' });
    });

    expect(findings).toEqual([
      {
        code: 'not_examined',
        message: `doctor cannot look at the server: ${storeUnavailable('forbidden').message}`,
      },
    ]);
  });
});
