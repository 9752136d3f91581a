import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { storeTarget } from '../../../../src/app/server/stores/open.ts';
import { parseStoreUrl } from '../../../../src/app/server/stores/url.ts';
import { isInstalled, startServer } from '../../../servers.ts';
import { newName } from '../../../stores/database-hosts.ts';
import { newRecord } from '../../../stores/support.ts';

const url = inject('servers').postgres;

describe('?prepare in a URL', () => {
  it.each([
    ['postgres://db/acme', true, 'postgres://db/acme'],
    ['postgres://db/acme?prepare=true', true, 'postgres://db/acme'],
    ['postgres://db/acme?prepare=false', false, 'postgres://db/acme'],
    ['postgres://db/acme?a=1&prepare=false&b=2', false, 'postgres://db/acme?a=1&b=2'],
    ['mysql://db/acme?prepare=false&a=1', false, 'mysql://db/acme?a=1'],
    ['redis://db/1?family=6', true, 'redis://db/1?family=6'],
  ])('is taken out: %s', (text, prepare, rest) => {
    expect(parseStoreUrl(text)).toMatchObject({ prepare, url: rest });
  });
});

describe.skipIf(url === undefined || !isInstalled('pgbouncer'))('serve behind PgBouncer', () => {
  async function bouncer(settings: Readonly<Record<string, string>>): Promise<string> {
    const behind = [{ port: Number(new URL(url as string).port) }];
    const pooler = await startServer('pgbouncer', { behind, settings });
    onTestFinished(() => pooler.stop());
    return pooler.url;
  }

  const open = (store: string) => storeTarget({ store, tables: newName(), data: './data' }).open();

  it('says at the start what PgBouncer has to ignore', async () => {
    const error = await open(await bouncer({ ignore_startup_parameters: '' })).catch(
      (failure) => failure,
    );

    expect(error).toMatchObject({ code: 'store_unavailable', isTransient: false });
    expect(error.message).toContain('ignore_startup_parameters = extra_float_digits');
    expect(error.message).not.toContain('08P01');
  });

  it.each([
    ['?prepare=false', []],
    ['', ['pooler']],
  ])('reads with %j through few connections: %j', async (parameter, reasons) => {
    const at = await bouncer({ default_pool_size: '3' });
    const opened = await open(`${at}${parameter}`);
    onTestFinished(() => opened.close());
    await opened.migrate?.();
    const reads = Array.from({ length: 60 }, () => opened.store.find([newRecord('one').id]));
    const results = await Promise.allSettled(reads);

    const failed = results.filter((result) => result.status === 'rejected');
    expect([...new Set(failed.map(({ reason }) => reason.details.reason))]).toEqual(reasons);
  });
});
