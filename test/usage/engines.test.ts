import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { manualClock } from '../../src/testing/index.ts';
import type { TokenId } from '../../src/token/record.ts';
import { K1, OTHER_SCOPE, SCOPE } from '../support.ts';
import { type OpenedUsage, placeOn, USAGE_ENGINES, type UsageEngine } from './engines.ts';

const servers = inject('servers');

function isMissing({ server }: UsageEngine): boolean {
  return server !== undefined && servers[server] === undefined;
}

function newPlace({ server }: UsageEngine): string {
  const url = server && servers[server];
  if (url !== undefined) return placeOn(url);
  const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 'usage.db');
}

async function openAt({ open }: UsageEngine, place: string): Promise<OpenedUsage> {
  const opened = await open(place);
  onTestFinished(async () => {
    // A service may have closed it.
    await opened.store.close?.().catch(() => {});
    await opened.end();
  });
  return opened;
}

/** Verifies, waits for the write if told to, and then runs until it is killed. */
const CHILD = `
  import { MemoryTokenStore, TokenService, generateKey } from './src/index.ts';
  import { USAGE_ENGINES } from './test/usage/engines.ts';
  const [engine, place, flushMs, isWritten] = process.argv.slice(1);
  setInterval(() => {}, 1000);
  const { store } = await USAGE_ENGINES.find(({ name }) => name === engine).open(place);
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
  engine: UsageEngine,
  flushMs: number,
  isWritten: boolean,
): Promise<number | undefined> {
  const place = newPlace(engine);
  const values = [engine.name, place, `${flushMs}`, `${isWritten}`];
  const child = spawn(
    process.execPath,
    ['--input-type=module-typescript', '-e', CHILD, ...values],
    { cwd: join(import.meta.dirname, '../..') },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  const [id] = await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
  const { store } = await openAt(engine, place);
  const [usage] = await store.read([String(id) as TokenId]);
  return usage?.scopes[0]?.uses;
}

describe.each(USAGE_ENGINES)('kill -9 of a process that counts in $name', (engine) => {
  it.skipIf(isMissing(engine))('loses no counts that were written', async () => {
    expect(await usesAfterKill(engine, 100, true)).toBe(50);
  });

  it.skipIf(isMissing(engine))('loses counts that wait for flushMs (the control)', async () => {
    expect(await usesAfterKill(engine, 3_600_000, false)).toBeUndefined();
  });
});

describe.each(USAGE_ENGINES)('four services that count in $name', (engine) => {
  it.skipIf(isMissing(engine))('add up exactly, and never move lastUsedAt backward', async () => {
    const place = newPlace(engine);
    const store = new MemoryTokenStore();
    const clock = manualClock();
    const services = await Promise.all(
      Array.from({ length: 4 }, async (_, index) => {
        const opened = await openAt(engine, place);
        // The later services have slower clocks, so they write older times after newer ones.
        const ownClock = { now: () => new Date(clock.now().getTime() - index * 5000) };
        const usage = { store: opened.store, flushMs: 100 };
        return new TokenService({ store, keys: [K1], prefix: 'acme', clock: ownClock, usage });
      }),
    );
    const [first, ...others] = services as [TokenService, ...TokenService[]];
    const issue = () => first.issue({ account: 'acme', scopes: [SCOPE, OTHER_SCOPE] });
    const issued = await Promise.all(Array.from({ length: 30 }, issue));
    const { store: witness } = await openAt(engine, place);
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
