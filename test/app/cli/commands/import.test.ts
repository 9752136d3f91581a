import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { readSettings } from '../../../../src/app/server/settings.ts';
import { engines, newStore } from '../../server/databases.ts';
import {
  ACCOUNT,
  call,
  filesOf,
  hideVariables,
  newFolder,
  outcomeOf,
  run,
  serve,
} from '../support.ts';

const READ = 'GET:shop.example/orders';
const WRITE = 'POST:shop.example/orders';
const MAP = { 'orders:read': [READ], '*': [READ, WRITE] };

const textOf = (number: number) => String(number).padStart(40, 'a');
const rowOf = (number: number, more: object = {}) => ({
  account: 7,
  name: `token ${number}`,
  digest: createHash('sha256').update(textOf(number)).digest('hex'),
  permissions: '["orders:read"]',
  created_at: '2026-01-01 00:00:00',
  expires_at: null,
  ...more,
});
const linesOf = (...rows: readonly object[]) =>
  rows.map((row) => `${JSON.stringify(row)}\n`).join('');

beforeEach(hideVariables);

/** A data folder with an empty store and keys, and a file that maps permissions to scopes. */
async function newImport() {
  const data = newFolder();
  const map = filesOf({ 'map.json': MAP })('map.json');
  await outcomeOf(['store', 'migrate', '--data', data]);
  await outcomeOf(['keys', 'new', '--data', data]);
  const from = ['token', 'import', '--format', 'sanctum', '--map', map, '--data', data];
  return {
    data,
    map,
    importOf: (input: string, ...flags: string[]) => run([...from, ...flags], {}, input),
  };
}

describe('import', () => {
  it('imports what --dry-run announced, and skips it when it is repeated', async () => {
    const { data, importOf } = await newImport();
    const rows = linesOf(rowOf(1), rowOf(2, { expires_at: '2026-02-01 00:00:00' }));

    const trial = await importOf(rows, '--dry-run');
    const first = await importOf(rows);
    const second = await importOf(rows);
    const storeName = `SQLite in ${join(data, 'tokens.db')}`;

    expect(trial.stdout).toBe(
      `would import 1 of 2 rows into ${storeName}; nothing was written
  left out   1, expired there
  shortened  1, with an earlier expiry than there, or a first one\n`,
    );
    expect(first.stdout).toContain(`imported 1 of 2 rows into ${storeName}\n`);
    expect(second.stdout).toContain(
      `imported 0 of 2 rows into ${storeName}\n  skipped    1, imported`,
    );
    for (const { code, stderr } of [trial, first, second]) {
      expect({ code, stderr }).toEqual({
        code: 0,
        stderr: expect.stringMatching(/^serve accepts their values with --foreign .* sanctum/),
      });
    }
    const { json } = await outcomeOf(['token', 'list', '--data', data, '--account', '7']);
    expect(json.tokens).toMatchObject([{ scopes: [READ], name: 'token 1' }]);
  });

  it('lets token verify accept old values with --foreign or its variable', async () => {
    const { data, importOf } = await newImport();
    await importOf(linesOf(rowOf(1)));
    const verify = (flags: readonly string[], environment = {}) =>
      run(
        ['token', 'verify', '--data', data, '--scope', READ, ...flags],
        environment,
        `12|${textOf(1)}`,
      );

    expect((await verify(['--foreign', 'sanctum'])).code).toBe(0);
    expect((await verify([], { TOKENWRIGHT_FOREIGN: 'unkey:uk,sanctum' })).code).toBe(0);
    expect((await verify([])).stdout).toContain('malformed');
  });

  it('exits with 3, lists some refused lines, and writes all of them to the --refused file', async () => {
    const { data, importOf } = await newImport();
    const bad = Array.from({ length: 25 }, (_, at) => rowOf(at, { permissions: '["none"]' }));
    const file = join(data, 'refused.jsonl');

    const { code, stdout } = await importOf(linesOf(rowOf(50), ...bad), '--refused', file);
    const without = await importOf(linesOf(...bad));

    expect(code).toBe(3);
    expect(stdout).toContain('  refused    25\nline 2: --map has no "none": add it');
    expect(stdout).toContain(`\nand 5 more in ${file}\n`);
    expect(stdout).not.toContain('line 22');
    expect(without.stdout).toContain('\nand 5 more: give --refused FILE to see all\n');
    const all = readFileSync(file, 'utf8').trimEnd().split('\n');
    expect(all.map((text) => JSON.parse(text).line)).toEqual(bad.map((_, at) => at + 2));
    expect(statSync(file).mode & 0o077).toBe(0);
    expect(readFileSync(file, 'utf8')).not.toContain(bad[0]?.digest);
  });

  it('prints one JSON object with --json', async () => {
    const { data, importOf } = await newImport();
    const { code, stdout, stderr } = await importOf(
      linesOf(rowOf(1), { ...rowOf(2), digest: 'x' }),
      '--json',
    );

    expect({ code, stderr }).toEqual({ code: 3, stderr: '' });
    expect(JSON.parse(stdout)).toEqual({
      store: `SQLite in ${join(data, 'tokens.db')}`,
      dryRun: false,
      ...{ rows: 2, imported: 1, skipped: 0, ended: 0, suspended: 0, shortened: 1, refused: 1 },
      refusals: [
        { line: 2, code: 'invalid_request', message: expect.stringContaining('a SHA-256') },
      ],
    });
  });

  it('reads CSV of a custom table that holds tokenwright scopes', async () => {
    const { data } = await newImport();
    const digest = createHash('sha256').update('old-0123456789abcdef').digest('base64');
    const csv = `account,digest,scopes,expires_at,name
ada,${digest},"${READ} ${WRITE}",,"a, b"
ada,${digest},*:shop.example/*,,
`;
    const flags = ['token', 'import', '--format', 'own', '--data', data];
    const { code, stdout } = await run(flags, {}, csv);
    const verify = await run(
      [
        ...['token', 'verify', '--data', data, '--scope', WRITE],
        '--foreign',
        'sha256:own:old-\\w{16}',
      ],
      {},
      'old-0123456789abcdef',
    );

    expect(code).toBe(3);
    expect(stdout).toContain('line 3: one of its scopes has a wildcard: give --catalog');
    expect(verify.code).toBe(0);
  });

  it('expands scopes against a catalog', async () => {
    const { data, importOf } = await newImport();
    const map = filesOf({ 'map.json': { all: ['*:shop.example/*'] } })('map.json');
    const catalog = filesOf({ 'c.json': [`${READ}$`, `${WRITE}$`] })('c.json');
    const row = linesOf(rowOf(1, { permissions: '["all"]' }));

    expect((await importOf(row, '--map', map)).stderr).toContain('has a wildcard: give --catalog');
    expect((await importOf(row, '--map', map, '--catalog', catalog)).code).toBe(0);
    const { json } = await outcomeOf(['token', 'list', '--data', data, '--account', '7']);
    expect(json.tokens).toMatchObject([{ scopes: [`${READ}$`, `${WRITE}$`] }]);
  });

  it('limits lifetimes to the maximum of the service', async () => {
    const { data, map } = await newImport();
    const flags = ['token', 'import', '--format', 'sanctum', '--map', map, '--data', data];
    await run([...flags, '--ttl', '90d'], { TOKENWRIGHT_MAX_TTL: '1h' }, linesOf(rowOf(1)));
    const { json } = await outcomeOf(['token', 'list', '--data', data, '--account', '7']);
    const [{ expire, createdAt }] = json.tokens;

    expect(createdAt).toBe(Date.UTC(2026, 0, 1) / 1000);
    expect(expire - Date.now() / 1000).toBeLessThanOrEqual(3600);
    expect(expire - Date.now() / 1000).toBeGreaterThan(3000);
  });

  it.each([
    [[], '--format is required'],
    [['--format', 'My Own'], '--format must be the name of a format in --foreign of serve'],
    [['--format', 'own', '--ttl', '400d'], '--ttl must be from 1s to 365d'],
    [['--format', 'own', '--scope', '*:a.example/*'], 'has a wildcard: give --catalog'],
  ])('refuses %j', async (flags, message) => {
    await expect(outcomeOf(['token', 'import', ...flags, '--data', newFolder()])).rejects.toThrow(
      message,
    );
  });

  it('does not create a store, since a wrong folder would swallow the tokens', async () => {
    const data = newFolder();
    const flags = ['token', 'import', '--format', 'sanctum', '--scope', READ, '--data', data];
    const { code, stderr } = await run(flags, {}, linesOf(rowOf(1)));

    expect(code).toBe(1);
    expect(stderr).toContain('tokenwright store migrate and serve make it');
  });

  it('refuses a JSON array, and accepts empty input', async () => {
    const { importOf } = await newImport();

    expect(await importOf('[]')).toMatchObject({ code: 1 });
    expect((await importOf('')).stdout).toMatch(/^imported 0 of 0 rows/);
  });
});

describe.skipIf(engines.length === 0).each(engines)('import into %s', (engine) => {
  it('makes old values work in a running service', { timeout: 60_000 }, async () => {
    const { flags } = newStore(engine);
    const data = newFolder();
    const [map, catalog] = ['map.json', 'catalog.json'].map(
      filesOf({ 'map.json': MAP, 'catalog.json': [READ, WRITE] }),
    ) as [string, string];
    const gateway = ['--gateway', 'nginx', '--domain', 'shop.example', '--catalog', catalog];
    const service = await serve([
      '--data',
      data,
      ...flags,
      ...ACCOUNT,
      ...gateway,
      '--foreign',
      'sanctum',
    ]);
    const rows = linesOf(rowOf(1, { account: 'ada' }), rowOf(2, { account: 'ada' }));
    const from = ['--format', 'sanctum', '--map', map, '--catalog', catalog];
    const check = async (text: string, method = 'GET') => {
      const headers = {
        authorization: `Bearer 12|${text}`,
        'x-original-method': method,
        'x-original-uri': '/orders/7',
        connection: 'close',
      };
      return (await fetch(`${service.url}/check`, { headers })).status;
    };

    expect(await check(textOf(1))).toBe(401);
    const imported = await run(['token', 'import', ...from, ...flags, '--json'], {}, rows);
    expect(JSON.parse(imported.stdout)).toMatchObject({ imported: 2, refused: 0 });
    expect(await check(textOf(1))).toBe(200);
    expect(await check(textOf(1), 'POST')).toBe(403);
    expect(await check(textOf(3))).toBe(401);
    const again = await run(['token', 'import', ...from, ...flags, '--json'], {}, rows);
    expect(JSON.parse(again.stdout)).toMatchObject({ imported: 0, skipped: 2 });
    const { body } = await call(service, '/token');
    expect(body.data).toHaveLength(2);
    await call(service, `/token/${body.data[0].id}`, { method: 'DELETE' });
    await call(service, `/token/${body.data[1].id}`, { method: 'DELETE' });
    expect(await check(textOf(1))).toBe(401);
    await service.stop();
  });
});

describe('--foreign', () => {
  const namesOf = (formats: string) => {
    const { foreign } = readSettings(['foreign'], {}, { TOKENWRIGHT_FOREIGN: formats });
    return foreign.map(({ name }) => name);
  };

  it.each([
    [
      'sanctum,better-auth:old_:48,unkey:uk,prefixed-api-key:acme',
      ['sanctum', 'better-auth', 'unkey', 'prefixed-api-key'],
    ],
    ['sha256:own:old-[0-9a-f]{16,64}(?:,x)?,sanctum:st_', ['own', 'sanctum']],
  ])('accepts %s from its variable', (formats, names) => {
    expect(namesOf(formats)).toEqual(names);
  });

  it.each([
    ['auth0', '--foreign (TOKENWRIGHT_FOREIGN) must be sanctum[:PREFIX], better-auth'],
    ['keypal', '--foreign (TOKENWRIGHT_FOREIGN) must be sanctum[:PREFIX], better-auth'],
    ['unkey', 'unkey takes a prefix of 1 to 64 letters'],
    ['better-auth:old_:1', 'length must be a whole number from 16 to 512'],
    ['better-auth:k_:48:1', 'a prefix and a length are all that it takes'],
    ['sha256:own', 'sha256:NAME:PATTERN'],
    ['sha256:own:(', 'not a regular expression'],
    ['sanctum,sanctum:x_', 'there are two formats with the name sanctum'],
  ])('refuses %s', (formats, message) => {
    expect(() => namesOf(formats)).toThrow(message);
  });

  it('refuses values that begin as those of the service', async () => {
    const { code, stderr } = await run(['serve', '--data', newFolder(), '--port', '0'], {
      TOKENWRIGHT_FOREIGN: 'unkey:tw',
    });

    expect(code).not.toBe(0);
    expect(stderr).toContain('begin with tw_');
  });
});
