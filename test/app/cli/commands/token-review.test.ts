import { describe, expect, it } from 'vitest';
import { loadKeys } from '../../../../src/app/server/files/key-file.ts';
import { TokenService } from '../../../../src/index.ts';
import { SqliteTokenStore } from '../../../../src/stores/sqlite/index.ts';
import { manualClock } from '../../../../src/testing/index.ts';
import { ACCOUNT, newFolder, run, serve } from '../support.ts';

const ORDERS = 'GET:shop.example/orders';

/** A store with old tokens of `ada` and one of `bob`. */
async function storeWithTokens(count = 1): Promise<{ data: string; ids: string[] }> {
  const data = newFolder();
  const clock = manualClock(new Date(Date.now() - 200 * 86_400_000));
  const tokens = new TokenService({
    store: SqliteTokenStore.open(data),
    keys: loadKeys(data),
    prefix: 'tw',
    clock,
  });
  await tokens.issue({ account: 'bob', scopes: [ORDERS] });
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    ids.unshift((await tokens.issue({ account: 'ada', scopes: [ORDERS], name: 'ci' })).id);
    clock.advance(1);
  }
  await tokens.close();
  return { data, ids };
}

describe('token review', () => {
  const review = (...flags: string[]) => run(['token', 'review', ...flags]);

  it('prints findings about the tokens of one account, and exits with 3', async () => {
    const { data, ids } = await storeWithTokens();

    const { code, stdout, stderr } = await review('--data', data, '--account', 'ada');

    expect(code).toBe(3);
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
      new RegExp(`^stale_secret ${ids[0]} \\(ci\\) has had the same value since 20.*rotate it $`),
    );
    expect(stderr).toContain('1 finding about 1 token of ada in SQLite');
    expect(await review('--data', data, '--account', 'eve')).toMatchObject({
      code: 0,
      stdout: '',
    });
  });

  it('applies --secret-older-than-days, and checks its range', async () => {
    const { data } = await storeWithTokens();
    const within = (days: string) =>
      review('--data', data, '--account', 'ada', '--secret-older-than-days', days);

    expect((await within('199')).code).toBe(3);
    expect((await within('201')).code).toBe(0);
    expect((await within('0')).stderr).toContain('1 to 3650');
  });

  it('prints the same findings for a service, which returns them in pages', async () => {
    const { data, ids } = await storeWithTokens(120);
    const local = await run(['token', 'review', '--data', data, '--account', 'ada', '--json'], {
      TOKENWRIGHT_USAGE: 'off',
    });
    const service = await serve(['--data', data, ...ACCOUNT, '--usage', 'off']);

    const remote = await run(['token', 'review', '--json', '--url', service.url], {
      TOKENWRIGHT_USER: 'ada',
      TOKENWRIGHT_PASSWORD: 'correct-horse',
    });

    const found = JSON.parse(remote.stdout).filter(
      ({ code }: { code: string }) => code !== 'orphaned_scope',
    );
    expect(found.map(({ token }: { token: { id: string } }) => token.id)).toEqual(ids);
    expect(found).toEqual(JSON.parse(local.stdout));
    expect(remote.code).toBe(3);
  });
});
