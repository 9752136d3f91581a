import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { manualClock } from '../../src/testing/index.ts';
import type { TokenId } from '../../src/token/record.ts';
import { ENGINES, opened } from '../stores/engine-places.ts';
import type { StorePlace } from '../stores/engines.ts';
import { K1, OTHER_SCOPE, SCOPE } from '../support.ts';

/** Verifies, waits for the write if told to, and then runs until it is killed. */
const CHILD = `
  import { MemoryTokenStore, TokenService, generateKey } from './src/index.ts';
  import { openStore } from './test/stores/engines.ts';
  const [place, flushMs, isWritten] = process.argv.slice(1);
  setInterval(() => {}, 1000);
  const store = openStore(JSON.parse(place)).store.usage;
  const add = store.add.bind(store);
  const write = new Promise((resolve) => { store.add = (batch) => add(batch).then(resolve); });
  const tokens = new TokenService({
    store: new MemoryTokenStore(),
    keys: [generateKey()],
    prefix: 'acme',
    usage: { store, flushMs: Number(flushMs) },
  });
  const token = await tokens.issue({ account: 'acme', scopes: ['${SCOPE}'] });
  for (let time = 0; time < 50; time += 1) await tokens.verify(token.value, { scope: '${SCOPE}' });
  if (isWritten === 'true') await write;
  process.stdout.write(token.id);
`;

async function usesAfterKill(
  place: StorePlace,
  flushMs: number,
  isWritten: boolean,
): Promise<number | undefined> {
  const values = [JSON.stringify(place), `${flushMs}`, `${isWritten}`];
  const child = spawn(
    process.execPath,
    ['--input-type=module-typescript', '-e', CHILD, ...values],
    { cwd: join(import.meta.dirname, '../..') },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  const [id] = await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
  const [usage] = await opened(place).usage.read([String(id) as TokenId]);
  return usage?.scopes[0]?.uses;
}

describe.each(ENGINES)('kill -9 of a process that counts in $name', ({ isMissing, newPlace }) => {
  it.skipIf(isMissing)('loses no counts that were written', async () => {
    expect(await usesAfterKill(await newPlace(), 100, true)).toBe(50);
  });

  it.skipIf(isMissing)('loses counts that wait for flushMs (the control)', async () => {
    expect(await usesAfterKill(await newPlace(), 3_600_000, false)).toBeUndefined();
  });
});

describe.each(ENGINES)('four services that count in $name', ({ isMissing, newPlace }) => {
  it.skipIf(isMissing)('add up exactly, and never move lastUsedAt backward', async () => {
    const place = await newPlace();
    const store = new MemoryTokenStore();
    const clock = manualClock();
    const services = Array.from({ length: 4 }, (_, index) => {
      // The later services have slower clocks, so they write older times after newer ones.
      const ownClock = { now: () => new Date(clock.now().getTime() - index * 5000) };
      const usage = { store: opened(place).usage, flushMs: 100 };
      return new TokenService({ store, keys: [K1], prefix: 'acme', clock: ownClock, usage });
    });
    const [first, ...others] = services as [TokenService, ...TokenService[]];
    const issue = () => first.issue({ account: 'acme', scopes: [SCOPE, OTHER_SCOPE] });
    const issued = await Promise.all(Array.from({ length: 30 }, issue));
    const witness = opened(place).usage;
    const latest: number[] = [];
    for (let round = 0; round < 20; round += 1) {
      for (const [index, tokens] of services.entries()) {
        for (const { value } of issued) {
          const scope = (round + index) % 2 === 0 ? SCOPE : OTHER_SCOPE;
          expect(await tokens.allows(value, { scope })).toBe(true);
        }
      }
      clock.advance(1);
      const [usage] = await witness.read([(issued[0] as { id: TokenId }).id]);
      latest.push(Math.max(0, ...(usage?.scopes ?? []).map((used) => used.lastUsedAt.getTime())));
    }
    const end = clock.now().getTime() - 1000;
    for (const tokens of [first, ...others]) await tokens.close();

    expect(latest).toEqual([...latest].sort((one, two) => one - two));
    const usages = await witness.read(issued.map(({ id }) => id));
    for (const usage of usages) {
      const uses = Object.fromEntries(usage?.scopes.map((used) => [used.scope, used]) ?? []);
      expect(uses[SCOPE]?.uses).toBe(40);
      expect(uses[OTHER_SCOPE]?.uses).toBe(40);
      const times = Object.values(uses).map(({ lastUsedAt }) => lastUsedAt.getTime());
      expect(Math.max(...times)).toBe(end);
      expect(Math.min(...times)).toBe(end - 1000);
    }
  });
});
