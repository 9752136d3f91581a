import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Log, SILENT_LOG, TEXT_LOG, useLog } from '../../../src/app/server/logs/log.ts';
import { partsOf } from '../../../src/app/server/parts.ts';
import { ReloadableService } from '../../../src/app/server/reload.ts';
import { readSettings, SERVE_SETTINGS } from '../../../src/app/server/settings.ts';
import { generateKey, MemoryTokenStore } from '../../../src/index.ts';
import { manualClock } from '../../../src/testing/index.ts';
import { newFolder } from '../cli/support.ts';

const DAY_SECONDS = 86_400;
const HOUR_MS = 3_600_000;

/** A service with one revoked token, and the upkeep of `serve`. */
async function setUp(purgeAfter: number | 'off') {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const messages: string[] = [];
  const log: Log = { ...SILENT_LOG, info: (message) => void messages.push(message) };
  useLog(log);
  onTestFinished(() => useLog(TEXT_LOG));
  const clock = manualClock();
  const store = new MemoryTokenStore();
  const flags = { data: newFolder(), account: ['ada:correct-horse'] };
  const { lasting, read } = await partsOf(readSettings(SERVE_SETTINGS, flags, {}));
  const service = new ReloadableService(
    {
      ...lasting,
      service: { ...lasting.service, clock },
      stores: { store, leases: new MemoryTokenStore({ clock }).leases, usage: undefined },
      purgeAfter,
    },
    { keys: [generateKey()], catalog: read.catalog, presets: [] },
  );
  const { id } = await service.tokens.issue({ account: 'ada', scopes: ['GET:*/*'] });
  await service.tokens.revoke('ada', id);
  service.admit(read.accounts);
  return {
    service,
    messages,
    clock,
    isThere: async () => (await store.find([id]))[0] !== undefined,
  };
}

describe('the upkeep of serve', () => {
  it('removes old records in the background, and logs it once', async () => {
    const { messages, clock, isThere } = await setUp(30);

    clock.advance(30 * DAY_SECONDS - 1);
    await vi.advanceTimersByTimeAsync(24 * HOUR_MS);
    expect([await isThere(), messages]).toEqual([true, []]);
    clock.advance(2);
    await vi.advanceTimersByTimeAsync(24 * HOUR_MS);

    expect(await isThere()).toBe(false);
    expect(messages).toEqual([
      'removed 1 record of tokens that expired or were revoked more than 30 days ago',
    ]);
  });

  it('stops when the service is closed', async () => {
    const { service, clock, isThere } = await setUp(1);

    await service.close();
    clock.advance(2 * DAY_SECONDS);
    await vi.advanceTimersByTimeAsync(24 * HOUR_MS);

    expect(await isThere()).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('removes nothing when it is off', async () => {
    const { clock, isThere } = await setUp('off');

    clock.advance(4000 * DAY_SECONDS);
    await vi.advanceTimersByTimeAsync(24 * HOUR_MS);

    expect(await isThere()).toBe(true);
  });
});

describe('--purge-after', () => {
  const read = (flags: object, environment = {}) =>
    readSettings(SERVE_SETTINGS, flags, environment).purgeAfter;

  it('defaults to 90 days, and can be off', () => {
    expect(read({})).toBe(90);
    expect(read({ 'purge-after': '1d' })).toBe(1);
    expect(read({}, { TOKENWRIGHT_PURGE_AFTER: '3650d' })).toBe(3650);
    expect(read({ 'purge-after': 'off' }, { TOKENWRIGHT_PURGE_AFTER: '1d' })).toBe('off');
  });

  it.each(['0d', '3651d', '90', '12h', '-1d', '1.5d', 'never', 'OFF'])('refuses %s', (text) => {
    expect(() => read({ 'purge-after': text })).toThrow(
      '--purge-after (TOKENWRIGHT_PURGE_AFTER) must be from 1d to 3650d, in whole days, or off',
    );
  });
});
