// What the service tells when the file of usage or leases cannot be used.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { generateKey, type TokenEvent, TokenService } from '../../../src/index.ts';
import { SqliteTokenStore } from '../../../src/stores/sqlite/index.ts';
import { newFile } from './handles.ts';

const SCOPE = 'GET:shop.example/orders';

/** A service on a folder, with a token whose uses are limited, before they are counted. */
async function setUp(place = (_: string) => {}) {
  const folder = join(newFile(), '..');
  place(folder);
  const store = SqliteTokenStore.open(folder);
  const events: TokenEvent[] = [];
  const tokens = new TokenService({
    ...{ store, keys: [generateKey()], prefix: 'acme', limits: true, usage: { flushMs: 100 } },
    onEvent: (event) => events.push(event),
  });
  onTestFinished(async () => {
    await tokens.close().catch(() => {});
    await store.close().catch(() => {});
  });
  const { value } = await tokens.issue({ account: 'acme', scopes: [SCOPE], limits: { uses: 9 } });
  return { folder, store, tokens, value, events };
}

const overwritten = (name: string) => (folder: string) =>
  writeFileSync(join(folder, name), 'no database '.repeat(1000));
const foreign = (name: string) => (folder: string) => {
  const database = new DatabaseSync(join(folder, name));
  database.exec('CREATE TABLE other (a)');
  database.close();
};
const aFolder = (name: string) => (folder: string) => mkdirSync(join(folder, name));

describe('a file of leases', () => {
  it.each([
    ['text', overwritten],
    ['a foreign database', foreign],
    ['a folder', aFolder],
  ])('that is %s is named as such', async (_, make) => {
    const { tokens, value, events } = await setUp(make('leases.db'));

    await expect(tokens.verify(value, { scope: SCOPE })).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('it has to be a file of its own'),
      details: { reason: 'not_opened', store: 'leases' },
    });
    expect(events.at(-1)).toMatchObject({
      type: 'store_trouble',
      reason: 'not_opened',
      store: 'leases',
    });
  });

  it('that is removed while it is open is named as such', async () => {
    const { folder, store, tokens, value } = await setUp();
    await store.leases.giveBack([{ key: 'x', window: 0, amount: 1 }]);
    rmSync(join(folder, 'leases.db'));

    await expect(tokens.verify(value, { scope: SCOPE })).rejects.toMatchObject({
      message: expect.stringContaining('was removed or replaced while it was open'),
      details: { reason: 'file_replaced', store: 'leases' },
    });
  });

  it('that is its own lets limited tokens be used (the control)', async () => {
    const { tokens, value } = await setUp();
    expect(await tokens.verify(value, { scope: SCOPE })).toMatchObject({ ok: true });
  });
});

describe('a file of usage', () => {
  it.each([
    ['text', overwritten],
    ['a foreign database', foreign],
  ])('that is %s is named as such, and tokens are verified', async (_, make) => {
    const { tokens, value, events } = await setUp(make('usage.db'));
    expect(await tokens.verify(value, { scope: SCOPE })).toMatchObject({ ok: true });

    await expect
      .poll(() => events.filter(({ type }) => type === 'store_trouble'), { timeout: 5000 })
      .toContainEqual(expect.objectContaining({ reason: 'not_opened', store: 'usage' }));
  });
});
