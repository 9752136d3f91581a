import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { progressOn } from '../../../../src/app/cli/progress.ts';
import { compareRecords, copyRecords } from '../../../../src/app/server/stores/copy.ts';
import { storeTarget, withCopyTarget } from '../../../../src/app/server/stores/open.ts';
import { generateKey, MemoryTokenStore, TokenError, TokenService } from '../../../../src/index.ts';
import type { TokenStore } from '../../../../src/ports/token-store.ts';
import { SqliteTokenStore } from '../../../../src/stores/sqlite/index.ts';
import { faults, withFaults } from '../../../../src/testing/index.ts';
import { fullRecord, LONG_AGO, later, newRecord, range } from '../../../../src/testing/records.ts';
import type { TokenRecord } from '../../../../src/token/record.ts';
import { newRequest, REQUEST_BOUNDS } from '../../../stores/support.ts';
import { engines, newStore, runSql } from '../../server/databases.ts';
import {
  ACCOUNT,
  call,
  exampleOf,
  newFolder,
  outcomeOf,
  run,
  runInShell,
  serve,
  serviceOn,
  start,
} from '../support.ts';

async function outage(): Promise<never> {
  throw new TokenError('store_unavailable', 'the store is down');
}

const SCOPE = 'GET:shop.example/orders';

describe('backup', () => {
  it('copies the tokens of a running service, and they work after a restore', async () => {
    const [data, elsewhere] = [newFolder(), newFolder()];
    const service = await serve(['--data', data, ...ACCOUNT]);
    const issue = async () => {
      const { body } = await call(service, '/token', {
        method: 'POST',
        body: { scopes: [SERVED] },
      });
      return body.token as string;
    };
    const kept = await issue();
    const backup = join(newFolder(), 'monday');

    // Tokens are issued while the copy is made.
    const [made, ...more] = await Promise.all([
      run(['store', 'backup', backup, '--data', data]),
      ...range(20).map(issue),
    ]);
    await service.stop();
    cpSync(backup, elsewhere, { recursive: true });
    writeFileSync(join(elsewhere, 'keys.json'), readFileSync(join(data, 'keys.json')), {
      mode: 0o600,
    });
    const restored = serviceOn(elsewhere);

    expect(made).toMatchObject({ code: 0 });
    expect(made.stdout).toMatch(/^wrote \d+ records? from SQLite in .*tokens\.db to .*monday\n$/);
    expect(made.stderr).toContain('keep a copy of keys.json in another place');
    expect(await restored.verify(kept, { scope: SERVED })).toMatchObject({ ok: true });
    expect(more).toHaveLength(20);
    // Control: with other keys, the same records accept no value.
    const others = new TokenService({
      store: SqliteTokenStore.open(elsewhere),
      keys: [generateKey()],
      prefix: 'tw',
    });
    onTestFinished(() => others.close());
    expect(await others.verify(kept, { scope: SERVED })).toMatchObject({ ok: false });
  });

  it('lets the uses of limited tokens and the counts of all go on after a restore', async () => {
    const { data, folder } = await withTokens(1);
    const limited = serviceOn(data, { limits: true, usage: true });
    const { id, value } = await limited.issue({
      ...{ account: 'ada', scopes: [SCOPE] },
      limits: { uses: 5 },
    });
    const accepted = async (service: TokenService, tries: number) => {
      let all = 0;
      for (const _ of range(tries))
        all += Number((await service.verify(value, { scope: SCOPE })).ok);
      return all;
    };
    expect(await accepted(limited, 3)).toBe(3);
    await limited.close();
    const store = SqliteTokenStore.open(data);
    await store.requests.insert(newRequest(1), REQUEST_BOUNDS);
    await store.close();
    const backup = join(folder, 'b');

    const { json } = await outcomeOf(['store', 'backup', backup, '--data', data]);
    cpSync(join(data, 'keys.json'), join(backup, 'keys.json'));
    const restored = serviceOn(backup, { limits: true, usage: true });

    expect(json.files).toEqual(['tokens.db', 'usage.db', 'leases.db', 'requests.db']);
    expect(await accepted(restored, 5)).toBe(2);
    const copied = SqliteTokenStore.open(backup);
    expect(await copied.requests.find({ id: newRequest(1).id })).toEqual(newRequest(1));
    await copied.close();
    expect(await restored.usage('ada', id)).toMatchObject({ uses: expect.any(Number) });
    // Control: without the counts, all uses would be there again.
    const without = newFolder();
    for (const name of ['tokens.db', 'keys.json']) cpSync(join(backup, name), join(without, name));
    expect(await accepted(serviceOn(without, { limits: true }), 6)).toBe(5);
  });

  it('copies all records to a folder for its owner only, and reports their number', async () => {
    const { data, folder } = await withTokens(3);
    const backup = join(folder, 'b');

    const { text, json } = await outcomeOf(['store', 'backup', backup, '--data', data]);

    expect(text).toBe(`wrote 3 records from SQLite in ${join(data, 'tokens.db')} to ${backup}`);
    expect(json).toEqual({ folder: backup, files: ['tokens.db', 'usage.db'], records: 3 });
    expect(statSync(backup).mode & 0o777).toBe(0o700);
    expect(statSync(join(backup, 'tokens.db')).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder).sort()).toEqual(['b', 'data']);
    expect(await recordsIn(join(backup, 'tokens.db'))).toEqual(
      await recordsIn(join(data, 'tokens.db')),
    );
  });

  it('leaves out uncommitted changes, and does not wait for the writer', async () => {
    const { data, folder } = await withTokens(2);
    const writer = new DatabaseSync(join(data, 'tokens.db'));
    writer.exec('BEGIN IMMEDIATE; DELETE FROM tokens');

    const { json } = await outcomeOf(['store', 'backup', join(folder, 'b'), '--data', data]);
    writer.exec('COMMIT');
    writer.close();
    const after = await outcomeOf(['store', 'backup', join(folder, 'c'), '--data', data]);

    expect([json.records, after.json.records]).toEqual([2, 0]);
  });

  it('overwrites nothing, and leaves no file behind if it fails', async () => {
    const { data, folder } = await withTokens(1);
    const [taken, full] = [join(folder, 'taken'), join(folder, 'full')];
    writeFileSync(taken, 'precious');
    mkdirSync(full);
    const backup = (name: string) => run(['store', 'backup', name, '--data', data]);

    const nowhere = await backup(join(folder, 'no', 'b'));
    for (const name of [taken, full, data]) {
      const refused = await backup(name);
      expect(refused).toMatchObject({ code: 1, stdout: '' });
      expect(refused.stderr).toContain('already exists, and a backup overwrites nothing');
    }

    expect(readFileSync(taken, 'utf8')).toBe('precious');
    expect(readdirSync(full)).toEqual([]);
    expect(nowhere).toMatchObject({ code: 1, stdout: '' });
    expect(nowhere.stderr).toContain('cannot be written (ENOENT): its folder must exist');
    expect(readdirSync(folder).sort()).toEqual(['data', 'full', 'taken']);
  });

  it('names the file that cannot be copied, and leaves nothing behind', async () => {
    const { data, folder } = await withTokens(1);
    writeFileSync(join(data, 'leases.db'), 'no database '.repeat(1000));

    const refused = await run(['store', 'backup', join(folder, 'b'), '--data', data]);

    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain(`${join(data, 'leases.db')} cannot be copied to`);
    expect(readdirSync(folder)).toEqual(['data']);
  });

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'leaves nothing of it behind after %s',
    async (signal) => {
      const { data, folder } = await withTokens(1);
      enlarge(join(data, 'tokens.db'));
      const { child, ended } = start(['store', 'backup', join(folder, 'b'), '--data', data]);
      await draftIn(folder);

      child.kill(signal);
      await ended;

      expect(child.signalCode).toBe(signal);
      expect(readdirSync(folder)).toEqual(['data']);
    },
  );

  it('removes what a killed one has left, and nothing else', async () => {
    const { data, folder } = await withTokens(1);
    enlarge(join(data, 'tokens.db'));
    const killed = start(['store', 'backup', join(folder, 'b'), '--data', data]);
    const left = await draftIn(folder);
    killed.child.kill('SIGKILL');
    await killed.ended;
    // Control: nobody else could remove it.
    expect(readdirSync(folder)).toContain(left);
    const [, machine = ''] = /^b\.([0-9a-f]{8})-/.exec(left) ?? [];
    const other = machine.startsWith('0') ? '1'.repeat(8) : '0'.repeat(8);
    const kept = [
      `b.${machine}-${process.ppid}-00000000`,
      `b.${machine}-${process.pid}-00000000`,
      `b.${other}-1-00000000`,
      `c.${machine}-${killed.child.pid}-00000000`,
      `b.${machine}-${killed.child.pid}-00000000.old`,
      'b.0123456789ab',
    ];
    for (const name of kept) writeFileSync(join(folder, name), '');
    const linked = `b.${machine}-${killed.child.pid}-11111111`;
    symlinkSync(join(data, 'tokens.db'), join(folder, linked));
    const old = `b.${other}-1-11111111`;
    writeFileSync(join(folder, old), '');
    utimesSync(join(folder, old), 0, 0);

    await outcomeOf(['store', 'backup', join(folder, 'b'), '--data', data]);

    expect(readdirSync(folder).sort()).toEqual([...kept, linked, 'b', 'data'].sort());
    expect(await recordsIn(join(data, 'tokens.db'))).toHaveLength(1);
  });

  it('may be made several times at once', async () => {
    const { data, folder } = await withTokens(1);
    const backup = () => outcomeOf(['store', 'backup', join(folder, 'b'), '--data', data]);

    const ends = await Promise.allSettled([backup(), backup(), backup()]);

    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(readdirSync(folder).sort()).toEqual(['b', 'data']);
  });

  it.each([
    [
      'postgres://ada:canary@db.internal/acme',
      undefined,
      "pg_dump --table='tokenwright_*' --file=b/tokenwright.sql --host=db.internal --port=5432 acme",
    ],
    [
      'postgres://ada:canary@[::1]:99/acme',
      'Auth.own',
      `pg_dump --table='"Auth"."own_"*' --file=b/tokenwright.sql --host=::1 --port=99 acme`,
    ],
    [
      'mysql://ada:canary@db.internal/acme',
      undefined,
      'mysqldump --single-transaction --hex-blob --result-file=b/tokenwright.sql --host=db.internal --port=3306 acme tokenwright_tokens tokenwright_usage tokenwright_leases tokenwright_requests',
    ],
    [
      'mariadb://ada:canary@db.internal/acme',
      'auth.own',
      'mariadb-dump --single-transaction --hex-blob --result-file=b/tokenwright.sql --host=db.internal --port=3306 auth own_tokens own_usage own_leases own_requests',
    ],
    [
      'redis://ada:canary@db.internal',
      undefined,
      'redis-cli -h db.internal -p 6379 --rdb b/tokenwright.rdb',
    ],
    [
      'rediss://db.internal:6380',
      undefined,
      'redis-cli --tls -h db.internal -p 6380 --rdb b/tokenwright.rdb',
    ],
    [
      'redis+cluster://ada:canary@db1:7000,db2:7001',
      undefined,
      'redis-cli --cluster backup db1:7000 b',
    ],
  ])('prints the command of the server for %s, with tables %s', async (store, tables, command) => {
    const flags = ['--store', store, ...(tables === undefined ? [] : ['--tables', tables])];
    const printed = await run(['store', 'backup', 'b', ...flags]);

    expect(printed).toMatchObject({ code: 3, stdout: `mkdir -p b && ${command}\n` });
    expect(printed.stderr).toContain('no backup is made yet');
    expect(`${printed.stdout}${printed.stderr}`).not.toMatch(/canary|ada/);
  });

  it('prints a command that is one word where a name has spaces', async () => {
    const store = 'mysql://db.internal/acme';
    const { stdout } = await run(['store', 'backup', "ada's", '--store', store, '--json']);
    expect(JSON.parse(stdout).command).toContain(`mkdir -p 'ada'\\''s' && mysqldump`);
  });

  it.each([
    ['postgres', ['-U', 'tokenwright']],
    ['mariadb', ['-u', 'tokenwright']],
    ['redis', []],
  ] as const)('prints a command that backs up %s', async (engine, login) => {
    if (!engines.includes(engine)) return;
    const { flags, url, tables } = newStore(engine);
    await run(['store', 'migrate', ...flags]);
    const [first, last] = [await fileWith(records()), join(newFolder(), 'last.db')];
    await outcomeOf(['store', 'copy', '--from', first, '--to', url, '--to-tables', tables]);
    const folder = join(newFolder(), 'b');
    const { json } = await outcomeOf(['store', 'backup', folder, ...flags]);

    const [make, tool = ''] = String(json.command).split(' && ');
    const [program, ...rest] = tool.split(' ');
    await runInShell([make, [program, ...login, ...rest].join(' ')].join(' && '), folder);

    const [file = ''] = readdirSync(folder);
    const text = readFileSync(join(folder, file), 'latin1');
    const expected = engine === 'redis' ? ['REDIS'] : ['_tokens', '_usage', '_leases', '_requests'];
    for (const part of expected) expect(text).toContain(part);
    if (engine !== 'mariadb') return;

    const { hostname, port, pathname } = new URL(url);
    const place = `--host=${hostname} --port=${port} ${pathname.slice(1)}`;
    await runSql(engine, `DELETE FROM ${tables}_tokens`);
    expect(text).toMatch(/^\p{ASCII}*$/u);
    const restore = `mysql ${login.join(' ')} ${place} < "$1"`;
    expect(await runInShell(restore, join(folder, file))).toMatchObject({ code: 0 });
    await outcomeOf(['store', 'copy', '--from', url, '--from-tables', tables, '--to', last]);
    expect(await recordsIn(last)).toEqual(await recordsIn(first));
  });

  it.each([
    [[], 2, '<FOLDER> is missing'],
    [['b', '--data', '/nowhere'], 1, '/nowhere/tokens.db does not exist'],
  ])('refuses %j', async (words, code, message) => {
    const refused = await run(['store', 'backup', ...words]);
    expect(refused).toMatchObject({ code, stdout: '' });
    expect(refused.stderr).toContain(message);
  });

  it('names the Node.js version to use if there is no node:sqlite', async () => {
    const { data, folder } = await withTokens(1);
    const refused = await run(['store', 'backup', join(folder, 'b'), '--data', data], {
      NODE_OPTIONS: '--no-experimental-sqlite',
    });
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('use Node.js 22.13 or later');
  });

  it('prints the output that its help shows', async () => {
    const { data } = await withTokens(2);
    const example = exampleOf('store backup');
    const { stdout } = await runInShell(`cd "$1" && tokenwright ${example.call}`, join(data, '..'));
    expect(stdout.trimEnd()).toBe(example.output);
  });
});

/** Makes a file so large that a copy takes a moment. */
function enlarge(file: string): void {
  const database = new DatabaseSync(file);
  database.exec('CREATE TABLE other (a); INSERT INTO other VALUES (zeroblob(50000000))');
  database.close();
}

/** Waits for the draft of a backup `b`, and returns its name. */
async function draftIn(folder: string): Promise<string> {
  for (;;) {
    const draft = readdirSync(folder).find((name) => name.startsWith('b.'));
    if (draft !== undefined) return draft;
    await new Promise(setImmediate);
  }
}

/** A scope of the example catalog, which serve uses by default. */
const SERVED = 'GET:acme.example/status';

/** Bare, full, revoked, expired and rotated records of several accounts, in more than one batch. */
function records(): TokenRecord[] {
  const rotated = { previousDigest: new Uint8Array(32).fill(7), previousUntil: later(5) };
  return [
    newRecord('bare'),
    fullRecord('full'),
    newRecord('revoked', { account: 'Ada ', revokedAt: LONG_AGO }),
    newRecord('expired', { expiresAt: LONG_AGO }),
    newRecord('rotated', { version: 3, ...rotated }),
    ...range(120).map((index) => newRecord(`n${index}`, { account: `a${index % 7}` })),
  ];
}

describe('copy', () => {
  it.each(engines)('copies all records to %s and back, with every field', async (engine) => {
    const { url, tables } = newStore(engine);
    const [first, last] = [await fileWith(records()), join(newFolder(), 'last.db')];

    const there = await outcomeOf([
      'store',
      'copy',
      '--from',
      first,
      '--to',
      url,
      '--to-tables',
      tables,
    ]);
    const back = await outcomeOf([
      'store',
      'copy',
      '--from',
      url,
      '--from-tables',
      tables,
      '--to',
      last,
    ]);
    const again = await outcomeOf([
      'store',
      'copy',
      '--from',
      first,
      '--to',
      url,
      '--to-tables',
      tables,
    ]);

    const compared = { records: 125, missing: 0, different: 0, target: 125 };
    const all = { copied: 125, updated: 0, equal: 0, conflicts: [], compared };
    expect(there).toMatchObject({ isNegative: false, json: all });
    expect(there.text).toMatch(
      /^copied 125 records from SQLite in .* to\n.* at 127.*; both are equal$/,
    );
    expect(there.notes).toContain('The keys are not copied');
    expect(back.json).toMatchObject(all);
    expect(again.json).toMatchObject({ ...all, copied: 0, equal: 125 });
    expect(await recordsIn(last)).toEqual(await recordsIn(first));
  });

  it('keeps values valid with the same keys', async () => {
    const { data, folder, tokens } = await withTokens(2);
    const target = join(folder, 'tokens.db');
    await outcomeOf([
      'store',
      'copy',
      '--from',
      join(data, 'tokens.db'),
      '--to',
      `sqlite:${target}`,
    ]);
    writeFileSync(join(folder, 'keys.json'), readFileSync(join(data, 'keys.json')), {
      mode: 0o600,
    });

    const moved = serviceOn(folder);

    expect(await moved.verify(tokens[0]?.value ?? '', { scope: SCOPE })).toMatchObject({
      ok: true,
    });
    expect(statSync(target).mode & 0o777).toBe(0o600);
  });

  it('resumes after an interruption', async () => {
    const [from, to] = [await memoryWith(records()), new MemoryTokenStore()];
    let left = 30;
    const broken = withFaults(
      to,
      faults.lostRequest(({ method }) => method === 'insert' && left-- <= 0),
    );

    await expect(copyRecords(from, broken, () => {})).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    expect((await compareRecords(from, to, () => {})).missing).toBeGreaterThan(0);
    const done = await copyRecords(from, to, () => {});

    expect(done).toMatchObject({ copied: 95, equal: 30, conflicts: [] });
    expect(await compareRecords(from, to, () => {})).toEqual({
      records: 125,
      missing: 0,
      different: 0,
    });
  });

  it('counts records of a concurrent copy as equal, and its own repeated inserts as copied', async () => {
    const [from, to] = [await memoryWith(records()), new MemoryTokenStore()];
    const twice = withFaults(to, faults.duplicate());
    expect(await copyRecords(from, twice, () => {})).toMatchObject({ copied: 125, equal: 0 });
    const late: TokenStore = withFaults(to, async ({ method, args }, run) =>
      method === 'find' && (args[0] as unknown[]).length > 1
        ? (args[0] as unknown[]).map(() => undefined)
        : run(),
    );
    expect(await copyRecords(from, late, () => {})).toMatchObject({ copied: 0, equal: 125 });
  });

  it('never overwrites a different record with the same id, and reports the conflict', async () => {
    const other = newRecord('full', { account: 'eve' });
    const [from, to] = [await fileWith(records()), await fileWith([other])];

    const { text, json, isNegative } = await outcomeOf([
      'store',
      'copy',
      '--from',
      from,
      '--to',
      to,
    ]);

    expect(isNegative).toBe(true);
    expect(json).toMatchObject({ copied: 124, conflicts: [other.id] });
    expect(json.compared).toMatchObject({ missing: 0, different: 1 });
    expect(text).toContain(`conflict: the target has another record of the id ${other.id}`);
    expect(text).not.toContain('a service still writes');
    expect((await recordsIn(to)).find(({ id }) => id === other.id)).toEqual(plain(other));
  });

  it('updates records that changed since the last copy, including revocations', async () => {
    const from = await memoryWith([newRecord('one'), newRecord('two'), newRecord('three')]);
    const to = await memoryWith([newRecord('one'), newRecord('two'), newRecord('three')]);
    await from.revoke(newRecord('one').id, 'acme', later(1));
    await from.replace(newRecord('two', { version: 2, name: 'changed' }));
    await from.replace(newRecord('three', { version: 2 }));
    await from.revoke(newRecord('three').id, 'acme', later(2));

    const done = await copyRecords(from, to, () => {});

    expect(done).toMatchObject({ copied: 0, updated: 3, equal: 0, conflicts: [] });
    expect(await compareRecords(from, to, () => {})).toMatchObject({ missing: 0, different: 0 });
  });

  it.each<[string, TokenRecord, TokenRecord]>([
    ['a revocation', newRecord('one'), newRecord('one', { revokedAt: later(1) })],
    ['a later version', newRecord('one'), newRecord('one', { version: 2, name: 'new' })],
    [
      'the same version and other content',
      newRecord('one', { name: 'a' }),
      newRecord('one', { name: 'b' }),
    ],
    [
      'another revocation time',
      newRecord('one', { revokedAt: later(1) }),
      newRecord('one', { revokedAt: later(2) }),
    ],
    ['another digest', newRecord('one', { digest: new Uint8Array(32) }), newRecord('one')],
    [
      'another creation time',
      newRecord('one', { version: 2 }),
      newRecord('one', { createdAt: later(9) }),
    ],
  ])('never overwrites a target record that has %s', async (_, source, target) => {
    const to = await memoryWith([target]);
    const done = await copyRecords(await memoryWith([source]), to, () => {});
    expect(done).toMatchObject({ copied: 0, updated: 0, conflicts: [source.id] });
    expect(await to.find([target.id])).toMatchObject([target]);
  });

  it('reports a record that was inserted into the source after the copy as missing', async () => {
    const data = newFolder();
    const from = await fileWith(records());
    const to = join(data, 'tokens.db');
    await outcomeOf(['store', 'copy', '--from', from, '--to', to]);
    const written = SqliteTokenStore.openFile(from);
    onTestFinished(() => written.close());
    await written.insert(newRecord('late'));
    const source = await storeTarget({ store: `sqlite:${from}`, tables: undefined, data }).open();
    const target = await storeTarget({ store: `sqlite:${to}`, tables: undefined, data }).open();

    const compared = await compareRecords(source.store, target.store, () => {});
    await Promise.all([source.close(), target.close()]);

    expect(compared).toEqual({ records: 126, missing: 1, different: 0 });
  });

  it('refuses an empty source, and creates no target', async () => {
    const [from, folder] = [await fileWith([]), newFolder()];

    const refused = await run(['store', 'copy', '--from', from, '--to', join(folder, 'to.db')]);

    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('holds no records: there is nothing to copy');
    expect(readdirSync(folder)).toEqual([]);
  });

  it('says which store cannot be reached', async () => {
    const from = await fileWith(records());

    const noFolder = join(newFolder(), 'none', 'to.db');
    const unmade = await run(['store', 'copy', '--from', from, '--to', noFolder]);
    const refused = await run(['store', 'copy', '--from', from, '--to', 'redis://127.0.0.1:1']);

    expect(unmade.code).toBe(1);
    expect(unmade.stderr).toContain(`SQLite in ${noFolder}: the database file cannot be opened`);
    expect(unmade.stderr).not.toContain(from);

    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toMatch(/^tokenwright: Redis at 127\.0\.0\.1:1 cannot be used: /);
  });

  it.each([
    ['names the target if that no longer answers', outage, /^the target: the store is down$/],
    ['does not name it if it still answers', async () => [], /^the store is down$/],
  ])('%s', async (_, answer, message) => {
    const store = Object.assign(new MemoryTokenStore(), { doctor: answer });
    const close = vi.fn();
    const target = { name: 'the target', open: async () => ({ store, close }) };

    await expect(withCopyTarget(target as never, outage)).rejects.toThrow(message);
    expect(close).toHaveBeenCalledOnce();
  });

  it.each([
    ['a.db', 'sqlite:a.db'],
    ['./a.db', 'a.db'],
    ['postgres://ada:canary@db/acme', 'postgresql://eve@db/acme'],
    ['redis://db/0', 'redis://:canary@db/0'],
  ])('refuses to copy %s to the same store, given as %s', async (from, to) => {
    const { stderr, code } = await run(['store', 'copy', '--from', from, '--to', to]);
    expect(code).toBe(2);
    expect(stderr).toContain('--from and --to are the same store');
    expect(stderr).not.toContain('canary');
  });

  it('reads source and target from variables, and requires both', async () => {
    const [from, to] = [await fileWith(records()), join(newFolder(), 'to.db')];
    const both = { TOKENWRIGHT_COPY_FROM: from, TOKENWRIGHT_COPY_TO: to };

    const copied = await run(['store', 'copy', '--json'], both);
    const refused = await run(['store', 'copy'], { TOKENWRIGHT_COPY_FROM: from });

    expect(copied).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(copied.stdout)).toMatchObject({ copied: 125 });
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('--to (TOKENWRIGHT_COPY_TO) is required');
  });
});

describe('progress', () => {
  it('is shown on one line of a terminal, and not elsewhere', () => {
    const written: string[] = [];
    const write = (text: string) => written.push(text);

    progressOn({ write }).of('copied')(100);
    expect(written).toEqual([]);
    const progress = progressOn({ write, isTTY: true });
    progress.of('copied')(100);
    progress.end();
    expect(written).toEqual(['\r\u001b[Kcopied 100 records', '\r\u001b[K']);
  });
});

/** Tokens of a service in the folder `data`, which is the only entry of `folder`. */
async function withTokens(count: number) {
  const folder = newFolder();
  const data = join(folder, 'data');
  await outcomeOf(['store', 'migrate', '--data', data]);
  await outcomeOf(['keys', 'new', '--data', data]);
  const service = serviceOn(data);
  const tokens = [];
  for (let i = 0; i < count; i++)
    tokens.push(await service.issue({ account: 'ada', scopes: [SCOPE] }));
  return { data, folder, tokens };
}

async function insertAll<Store extends TokenStore>(
  store: Store,
  all: readonly TokenRecord[],
): Promise<Store> {
  await Promise.all(all.map((record) => store.insert(record)));
  return store;
}

function memoryWith(all: readonly TokenRecord[]): Promise<MemoryTokenStore> {
  return insertAll(new MemoryTokenStore(), all);
}

/** An SQLite file with records. */
async function fileWith(all: readonly TokenRecord[]): Promise<string> {
  const file = join(newFolder(), 'tokens.db');
  await (await insertAll(SqliteTokenStore.openFile(file), all)).close();
  return file;
}

/** The records of an SQLite file, in the order of their ids, without absent fields. */
async function recordsIn(file: string): Promise<TokenRecord[]> {
  const store = SqliteTokenStore.openFile(file);
  const { records: found } = await store.scan({ limit: 1000 });
  await store.close();
  return found.map(plain);
}

function plain(record: TokenRecord): TokenRecord {
  const fields = Object.entries(record).filter(([, value]) => value !== undefined);
  return Object.fromEntries(fields) as unknown as TokenRecord;
}
