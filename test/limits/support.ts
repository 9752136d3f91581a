import type { TokenServiceOptions } from '../../src/inputs/options.ts';
import type { LeaseStore, LeaseWant, UnspentLease } from '../../src/ports/lease-store.ts';
import { type Setting, setUp } from '../support.ts';

/** A lease store in memory that records its calls, and fails when a test wants it to. */
export class RecordingLeases implements LeaseStore {
  readonly takes: (readonly LeaseWant[])[] = [];
  readonly #taken = new Map<string, number>();
  /** Called before each answer. */
  fault: (call: keyof LeaseStore) => unknown = () => undefined;

  async take(wants: readonly LeaseWant[]): Promise<readonly number[]> {
    this.takes.push(wants);
    await this.fault('take');
    return wants.map(({ key, window, limit, want }) => {
      const taken = this.takenOf(key, window);
      const granted = Math.max(0, Math.min(want, limit - taken));
      this.#taken.set(`${key}#${window}`, taken + granted);
      return granted;
    });
  }

  async giveBack(leases: readonly UnspentLease[]): Promise<void> {
    await this.fault('giveBack');
    for (const { key, window, amount } of leases) {
      this.#taken.set(`${key}#${window}`, this.takenOf(key, window) - amount);
    }
  }

  async purge(_before: Date, _limit: number): Promise<number> {
    await this.fault('purge');
    return 0;
  }

  takenOf(key: string, window: number): number {
    return this.#taken.get(`${key}#${window}`) ?? 0;
  }

  /** The uses of all limits that are leased and not given back. */
  get taken(): number {
    return [...this.#taken.values()].reduce((sum, amount) => sum + amount, 0);
  }
}

export interface LimitSetting extends Setting {
  readonly leases: RecordingLeases;
}

/** A service that counts uses, with a cache that stays fresh while time stands still. */
export function setUpLimits(
  options: Partial<TokenServiceOptions> = {},
  leases = new RecordingLeases(),
): LimitSetting {
  const cache = { maxStaleMs: 60_000 };
  return { ...setUp({ cache, limits: { store: leases }, ...options }), leases };
}
