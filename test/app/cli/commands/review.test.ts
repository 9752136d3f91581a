import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeFolder } from '../../../../src/app/server/files/private-file.ts';
import { SqliteTokenStore } from '../../../../src/stores/sqlite/index.ts';
import { newRecord } from '../../../../src/testing/records.ts';
import { newFolder, outcomeOf, run, runInShell } from '../support.ts';

const DAY_MS = 86_400_000;
const ORDERS = 'GET:shop.example/orders';
const BILLS = 'GET:shop.example/bills';

const daysAgo = (days: number) => new Date(Date.now() - days * DAY_MS);

/** A store with a narrow token of `ada` that is 200 days old, and a broad new token of `bob`. */
async function storeWithTokens(data = newFolder()) {
  makeFolder(data);
  const store = SqliteTokenStore.open(data);
  const expiresAt = daysAgo(-60);
  const fields = { account: 'ada', scopes: [ORDERS], requested: [ORDERS], expiresAt };
  await store.insert(newRecord('old', { ...fields, createdAt: daysAgo(200), name: 'ci' }));
  const broad = { account: 'bob', scopes: ['*:shop.example/*'], createdAt: daysAgo(1) };
  await store.insert(newRecord('broad', { ...fields, ...broad }));
  await store.close();
  return data;
}

const review = (data: string, ...flags: string[]) =>
  outcomeOf(['token', 'review', '--data', data, ...flags]);

describe('token review in a store', () => {
  it('prints findings, and exits with 3', async () => {
    const data = await storeWithTokens();
    const { code, stdout, stderr } = await run(['token', 'review', '--data', data]);

    expect(code).toBe(3);
    const text = stdout.replaceAll(/\s+/g, ' ');
    expect(text).toMatch(/^broad bob broadx+ may use every method, and may use a whole host;/);
    expect(text).toMatch(/ stale_secret ada oldx+ \(ci\) has had the same value since 20/);
    expect(stderr).toBe(`2 findings about 2 tokens in SQLite in ${join(data, 'tokens.db')}\n`);
  });

  it('prints a JSON array with --json, also if nothing is found', async () => {
    const data = await storeWithTokens();
    const { code, stdout, stderr } = await run(['token', 'review', '--data', data, '--json']);
    const none = await run([
      ...['token', 'review', '--data', data, '--json', '--account', 'nobody'],
    ]);

    const found = JSON.parse(stdout);
    expect({ code, stderr }).toEqual({ code: 3, stderr: '' });
    expect(found).toMatchObject([
      { code: 'broad', account: 'bob' },
      { code: 'stale_secret', account: 'ada' },
    ]);
    expect(stdout).toBe(`${JSON.stringify(found, null, 2)}\n`);
    expect(none).toMatchObject({ code: 0, stdout: '[]\n', stderr: '' });
  });

  it('exits normally if its reader closes the pipe early', async () => {
    const data = await storeWithTokens();
    const { stdout, stderr } = await runInShell(
      'set -o pipefail; tokenwright token review --data "$1" --json | true; echo "$?"',
      data,
    );

    expect({ stdout, stderr }).toEqual({ stdout: '3\n', stderr: '' });
  });

  it('finds nothing about an account without problems, and exits with 0', async () => {
    const data = await storeWithTokens();
    const { code, stdout, stderr } = await run([
      ...['token', 'review', '--data', data, '--account', 'ada', '--secret-older-than-days', '201'],
    ]);

    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(stderr).toBe(`nothing found of ada in SQLite in ${join(data, 'tokens.db')}\n`);
  });

  it('prints the facts of a finding with --json, without the digest of the value', async () => {
    const data = await storeWithTokens();
    const { json } = await review(data, '--account', 'ada');

    expect(json).toEqual([
      {
        code: 'stale_secret',
        token: expect.objectContaining({ id: newRecord('old').id, name: 'ci' }),
        scopes: [ORDERS],
        secretSince: expect.anything(),
        message: expect.stringContaining('rotate it'),
      },
    ]);
    expect((await review(data, '--account', 'bob')).json).toMatchObject([{ code: 'broad' }]);
  });

  it('uses the recorded usage, and the days in the flags', async () => {
    const data = await storeWithTokens();
    const store = SqliteTokenStore.open(data);
    const { id } = newRecord('old');
    await store.usage.add([{ id, scope: ORDERS, uses: 1, lastUsedAt: daysAgo(1) }]);
    await store.close();
    const codes = async (...flags: string[]) =>
      ((await review(data, '--account', 'ada', ...flags)).json as { code: string }[]).map(
        ({ code }) => code,
      );

    expect(await codes('--expiring-within-days', '59')).toEqual(['stale_secret']);
    expect(await codes('--expiring-within-days', '61')).toEqual(['expiring', 'stale_secret']);
  });

  it('compares scopes with a catalog', async () => {
    const data = await storeWithTokens();
    const catalog = join(data, 'catalog.json');
    writeFileSync(catalog, JSON.stringify([BILLS]));
    const { json } = await review(data, '--account', 'ada', '--catalog', catalog);

    expect(json).toMatchObject([
      { code: 'stale_secret' },
      { code: 'orphaned_scope', scopes: [ORDERS] },
    ]);
  });

  it.each([
    ['--unused-for-days', '0', '--unused-for-days must be a whole number from 1 to 3650'],
    ['--expiring-within-days', '14d', '--expiring-within-days must be'],
    ['--secret-older-than-days', '9999', '--secret-older-than-days must be'],
  ])('refuses %s %s', async (flag, value, message) => {
    await expect(review(newFolder(), flag, value)).rejects.toThrow(message);
  });
});
