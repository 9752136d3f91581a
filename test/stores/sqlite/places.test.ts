import { existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { storeUnavailable } from '../../../src/errors.ts';
import { doctor, generateKey, TokenService } from '../../../src/index.ts';
import { SqliteTokenStore } from '../../../src/stores/sqlite/index.ts';
import { idOf } from '../../../src/testing/records.ts';
import { refusalOf } from '../../support.ts';
import { newRequest, REQUEST_BOUNDS } from '../support.ts';
import { newFile, opened } from './handles.ts';

const newFolder = () => join(dirname(newFile()), 'data');

describe('SqliteTokenStore.open', () => {
  it('makes a folder, and the files of the counts on their first use', async () => {
    const folder = newFolder();
    const store = opened(SqliteTokenStore.open(folder));
    const files = () =>
      ['tokens.db', 'usage.db', 'leases.db', 'requests.db'].map((name) =>
        existsSync(join(folder, name)),
      );
    expect(files()).toEqual([true, false, false, false]);
    expect(await store.leases.purge(new Date(0), 1)).toBe(0);
    expect(await store.requests.purge(new Date(0), 1)).toBe(0);
    expect(await store.requests.find({ id: newRequest(1).id })).toBeUndefined();
    expect(await doctor(store)).toEqual([]);
    expect(files()).toEqual([true, false, false, false]);

    await store.usage.add([{ id: idOf('one'), refusals: 1 }]);
    await store.leases.giveBack([{ key: 'x', window: 0, amount: 1 }]);
    expect(files()).toEqual([true, true, true, false]);
    await store.requests.insert(newRequest(1), REQUEST_BOUNDS);

    expect(files()).toEqual([true, true, true, true]);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, 'leases.db')).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['a name in .db', (folder: string) => `${folder}.db`],
    [
      'a file',
      (folder: string) => {
        mkdirSync(folder);
        writeFileSync(join(folder, 'other'), '');
        return join(folder, 'other');
      },
    ],
    ['a number', () => 42],
    ['nothing', () => undefined],
    ['an object without tokens', () => ({ usage: new DatabaseSync(':memory:') })],
  ])('refuses %s, and says what would be right', async (_, placeIn) => {
    const refusal = await refusalOf(() => SqliteTokenStore.open(placeIn(newFolder()) as never));

    expect(refusal).toMatchObject({ code: 'invalid_options' });
    expect(refusal.message).toMatch(/^open takes a folder/);
  });

  it.each([
    ...(process.platform === 'linux' ? ['/proc/tokenwright', '/proc/tokenwright/below'] : []),
    join('a-file', 'data'),
    join('dangling', 'data'),
    'x'.repeat(300),
  ])('says that the file of %s cannot be opened, where no folder can be made', async (place) => {
    const above = dirname(newFile());
    writeFileSync(join(above, 'a-file'), '');
    symlinkSync(join(above, 'nothing'), join(above, 'dangling'));

    const refusal = await refusalOf(() => SqliteTokenStore.open(resolve(above, place)));
    const { code, details, message } = storeUnavailable('not_opened');
    expect(refusal).toMatchObject({ code, details, message });
  });

  it('takes a handle for each part, and refuses a part without one', async () => {
    const [tokens, usage] = [':memory:', ':memory:'].map((path) => opened(new DatabaseSync(path)));
    const store = SqliteTokenStore.open({ tokens: tokens as DatabaseSync, usage });
    const options = { store, keys: [generateKey()], prefix: 'acme' };
    expect(new TokenService({ ...options, usage: true }).recordsUsage).toBe(true);
    expect(new TokenService(options).recordsUsage).toBe(false);

    const refusal = await refusalOf(() => new TokenService({ ...options, limits: true }));
    expect(refusal).toMatchObject({ code: 'invalid_options' });
    expect(refusal.message).toContain('{ tokens, leases }');
    const requests = await refusalOf(() => store.requests);
    expect(requests).toMatchObject({ code: 'invalid_options' });
    expect(requests.message).toContain('{ tokens, requests }');
  });

  it('refuses a handle with the tokens as the one of the usage', async () => {
    const handle = opened(new DatabaseSync(':memory:'));
    SqliteTokenStore.open(handle);
    const refusal = await refusalOf(() => SqliteTokenStore.open({ tokens: handle, usage: handle }));

    expect(refusal).toMatchObject({ code: 'invalid_options' });
  });

  it('closes all files that it has opened, and no handle', async () => {
    const store = SqliteTokenStore.open(newFolder());
    await store.usage.since?.();
    await store.close();
    await store.close();
    expect((await refusalOf(store.usage.read([]))).code).toBe('store_unavailable');

    const handle = opened(new DatabaseSync(':memory:'));
    await SqliteTokenStore.open(handle).close();
    expect(handle.prepare('SELECT 1 AS one').get()).toEqual({ one: 1 });
  });

  it('reports a file of counts that cannot be used', async () => {
    const folder = newFolder();
    const store = opened(SqliteTokenStore.open(folder));
    for (const name of ['usage.db', 'leases.db', 'requests.db'])
      writeFileSync(join(folder, name), 'x'.repeat(999));

    expect(await doctor(store)).toMatchObject([
      { code: 'usage_unusable', part: 'usage' },
      { code: 'leases_unusable', part: 'leases' },
      { code: 'requests_unusable', part: 'requests' },
    ]);
  });
});
