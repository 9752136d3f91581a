import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Log, SILENT_LOG, TEXT_LOG, useLog } from '../../../src/app/server/logs/log.ts';
import { partsOf } from '../../../src/app/server/parts.ts';
import { ReloadableService } from '../../../src/app/server/reload.ts';
import { readSettings, SERVE_SETTINGS } from '../../../src/app/server/settings.ts';
import { MemoryTokenStore, TokenService } from '../../../src/index.ts';
import { ScopeCatalog } from '../../../src/scope/index.ts';
import { manualClock } from '../../../src/testing/index.ts';
import { DatedStore, K1, SCOPE } from '../../support.ts';
import { passTime } from '../../usage/support.ts';
import { newFolder } from '../cli/support.ts';

const DAY_SECONDS = 86_400;
const HOUR_MS = 3_600_000;

/**
 * A service as `serve` makes it, on a store in which one of three tokens ended two days ago. Its clock is
 * fast by so many days.
 */
async function setUp(fastByDays: number, purgeAfter = '1d') {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const warnings = new Set<string>();
  const log: Log = { ...SILENT_LOG, warn: (message) => void warnings.add(message) };
  useLog(log);
  onTestFinished(() => useLog(TEXT_LOG));
  const store = new DatedStore();
  const clock = manualClock();
  const others = new TokenService({ store, clock, keys: [K1], prefix: 'acme' });
  const issue = (ttlSeconds: number) =>
    others.issue({ account: 'ada', scopes: [SCOPE], ttlSeconds });
  await issue(1);
  clock.advance(2 * DAY_SECONDS);
  for (const days of [30, 300]) await issue(days * DAY_SECONDS);
  clock.advance(1);

  const file = join(newFolder(), 'audit');
  const flags = { data: newFolder(), account: ['ada:correct-horse'], metrics: true, audit: file };
  const { lasting, audit, monitoring, read } = await partsOf(
    readSettings(SERVE_SETTINGS, { ...flags, 'purge-after': purgeAfter }, {}),
  );
  const now = () => new Date(clock.now().getTime() + fastByDays * DAY_SECONDS * 1000);
  const service = new ReloadableService(
    {
      ...lasting,
      service: { ...lasting.service, clock: { now } },
      stores: { store, leases: new MemoryTokenStore({ clock }).leases, usage: undefined },
    },
    { keys: [K1], catalog: ScopeCatalog.from([SCOPE]), presets: [] },
  );
  service.admit(read.accounts);
  await passTime(5 * HOUR_MS);
  await passTime(5 * HOUR_MS);
  await service.close();
  await audit?.close();

  const countOf = async (type: string) =>
    new RegExp(`^tokenwright_events_total{type="${type}"} (\\d+)$`, 'm').exec(
      (await monitoring.metrics?.text()) ?? '',
    )?.[1];
  return {
    left: (await store.scan({ limit: 10 })).records.length,
    warnings: [...warnings],
    audited: readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line)),
    counted: { clockAhead: await countOf('clock_ahead'), purged: await countOf('purged') },
  };
}

describe('serve with a clock that is a year fast', () => {
  it('removes nothing, and says so in the log, the audit log and the metrics', async () => {
    const { left, warnings, audited, counted } = await setUp(365);

    expect(left).toBe(3);
    expect(warnings).toEqual([
      expect.stringMatching(/^no old records are removed: the clock of this process is more than/),
    ]);
    expect(audited).toEqual([{ at: expect.any(String), event: 'clock_ahead' }]);
    expect(counted).toEqual({ clockAhead: '1', purged: undefined });
  });

  it('says nothing if it would remove nothing anyway', async () => {
    const { left, warnings, audited, counted } = await setUp(365, 'off');

    expect([left, warnings, audited]).toEqual([3, [], []]);
    expect(counted).toEqual({ clockAhead: '0', purged: undefined });
  });
});

describe('serve with a right clock', () => {
  it('removes the token that ended, and warns of nothing (the control)', async () => {
    const { left, warnings, audited, counted } = await setUp(0);

    expect([left, warnings]).toEqual([2, []]);
    expect(audited).toEqual([{ at: expect.any(String), event: 'purged', count: 1 }]);
    expect(counted).toEqual({ clockAhead: '0', purged: '1' });
  });
});
