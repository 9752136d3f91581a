import { expect, vi } from 'vitest';
import type { TokenEvent } from '../../src/events.ts';
import type { TokenServiceOptions } from '../../src/inputs/options.ts';
import type { UsageDelta, UsageRecord, UsageStore } from '../../src/ports/usage-store.ts';
import { MemoryUsage } from '../../src/stores/memory/usage.ts';
import { nextTurn } from '../../src/time/deadline.ts';
import type { IssuedToken, TokenId } from '../../src/token/record.ts';
import { OTHER_SCOPE, SCOPE, type Setting, setUp } from '../support.ts';

type UsageMethod = 'add' | 'read' | 'forget' | 'close';

/** A usage store in memory that records its calls, and fails when a test wants it to. */
export class SpiedUsageStore implements UsageStore {
  readonly calls: { readonly method: UsageMethod; readonly args: readonly unknown[] }[] = [];
  readonly inner = new MemoryUsage();
  #fault: ((method: UsageMethod, run: () => Promise<unknown>) => unknown) | undefined;

  /** Makes calls do this instead until `mend`. `run` carries out the call. */
  break(fault: (method: UsageMethod, run: () => Promise<unknown>) => unknown): void {
    this.#fault = fault;
  }

  mend(): void {
    this.#fault = undefined;
  }

  count(method: UsageMethod): number {
    return this.calls.filter((call) => call.method === method).length;
  }

  add(batch: readonly UsageDelta[]): Promise<void> {
    return this.#call('add', [batch], () => this.inner.add(batch)) as Promise<void>;
  }

  read(ids: readonly TokenId[]): Promise<(UsageRecord | undefined)[]> {
    const run = () => this.inner.read(ids);
    return this.#call('read', [ids], run) as Promise<(UsageRecord | undefined)[]>;
  }

  forget(ids: readonly TokenId[]): Promise<void> {
    return this.#call('forget', [ids], () => this.inner.forget(ids)) as Promise<void>;
  }

  close(): Promise<void> {
    return this.#call('close', [], async () => {}) as Promise<void>;
  }

  #call(method: UsageMethod, args: readonly unknown[], run: () => Promise<unknown>): unknown {
    this.calls.push({ method, args });
    return this.#fault === undefined ? run() : this.#fault(method, run);
  }
}

export interface UsageSetting extends Setting {
  readonly usage: SpiedUsageStore;
  readonly token: IssuedToken;
  readonly events: TokenEvent[];
}

export const FLUSH_MS = 10_000;

/** A service that records usage, with one token of two scopes. */
export async function setUpUsage(
  options: Partial<TokenServiceOptions> = {},
): Promise<UsageSetting> {
  const usage = new SpiedUsageStore();
  const events: TokenEvent[] = [];
  const onEvent = (event: TokenEvent) => events.push(event);
  const setting = setUp({ usage: { store: usage }, onEvent, ...options });
  const token = await setting.tokens.issue({ account: 'acme', scopes: [SCOPE, OTHER_SCOPE] });
  return { ...setting, usage, token, events };
}

/** Whether a promise settles without waiting for a timer or for I/O. */
export async function settlesImmediately(promise: Promise<unknown>): Promise<boolean> {
  let isSettled = false;
  const note = () => {
    isSettled = true;
  };
  promise.then(note, note);
  await turns();
  return isSettled;
}

/** Lets all work finish that does not wait for a timer. */
export async function turns(count = 50): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await nextTurn();
}

/** Moves fake timers on, and lets all work finish that they start. */
export async function passTime(ms: number): Promise<void> {
  await turns();
  vi.advanceTimersByTime(ms);
  await turns();
}

export async function verifyTimes(
  { tokens, token }: Pick<UsageSetting, 'tokens' | 'token'>,
  count: number,
  scope = SCOPE,
): Promise<void> {
  for (let time = 0; time < count; time += 1) {
    expect((await tokens.verify(token.value, { scope })).ok).toBe(true);
  }
}
