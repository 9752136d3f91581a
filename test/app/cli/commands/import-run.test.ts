import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type ImportOptions,
  importRows,
  type Refusal,
  type Rights,
  readPermissionMap,
  scopesOf,
} from '../../../../src/app/cli/commands/import.ts';
import { readRows } from '../../../../src/app/cli/commands/import-rows.ts';
import { formats } from '../../../../src/values/foreign.ts';
import { SCOPE, setUp } from '../../../support.ts';

const DAY_SECONDS = 86_400;
const YEAR_SECONDS = 365 * DAY_SECONDS;

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');
const oldValue = (number: number) => `key-${String(number).padStart(12, '0')}`;
const rowOf = (number: number, more: object = {}) => ({
  account: 'ada',
  digest: digestOf(oldValue(number)),
  scopes: [SCOPE],
  ...more,
});

/** A service that accepts the values of these tests, and an import into it. */
function importing(options: Partial<ImportOptions> = {}) {
  const pattern = /^key-\d{12}$/;
  const setting = setUp({ foreign: [formats.sha256({ name: 'own', pattern })] });
  const refused: Refusal[] = [];
  const progress: number[] = [];
  const run = (rows: readonly object[], more: Partial<ImportOptions> = {}) =>
    importRows(readRows(linesOf(rows)), {
      tokens: setting.tokens,
      rights: { map: undefined, scopes: [], allowsWildcards: true },
      format: 'own',
      account: undefined,
      now: setting.clock.now().getTime(),
      ttlSeconds: 30 * DAY_SECONDS,
      maxSeconds: YEAR_SECONDS,
      dryRun: false,
      onRefused: (row) => refused.push(row),
      onProgress: (rows) => progress.push(rows),
      ...options,
      ...more,
    });
  const inDays = (days: number) =>
    new Date(setting.clock.now().getTime() + days * DAY_SECONDS * 1000);
  return { ...setting, run, refused, progress, inDays };
}

async function* linesOf(rows: readonly object[]) {
  for (const row of rows) yield Buffer.from(`${JSON.stringify(row)}\n`);
}

describe('importRows', () => {
  it('imports valid rows, refuses each bad row by its line, and skips known rows when repeated', async () => {
    const { run, refused, progress, tokens } = importing();
    const rows = Array.from({ length: 250 }, (_, number) => rowOf(number));
    const faults = new Map<number, object>([
      [0, { digest: '$2y$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy' }],
      [99, { scopes: ['nothing'] }],
      [150, { name: 'a\nb' }],
      [249, { account: null }],
    ]);
    const given = rows.map((row, at) => ({ ...row, ...faults.get(at) }));
    given.splice(120, 0, 'no object' as never);

    const report = await run(given);

    expect(report).toEqual({
      ...{ rows: 251, imported: 246, skipped: 0, refused: 5 },
      ...{ ended: 0, suspended: 0, shortened: 246 },
    });
    expect(refused.map(({ line, code }) => [line, code]).sort(byLine)).toEqual([
      [1, 'invalid_request'],
      [100, 'invalid_scope'],
      [121, 'invalid_request'],
      [152, 'invalid_request'],
      [251, 'invalid_request'],
    ]);
    expect(refused.find(({ line }) => line === 1)?.message).toContain('looks like bcrypt');
    expect(progress.at(-1)).toBe(251);
    expect(await tokens.allows(oldValue(1), { scope: SCOPE })).toBe(true);
    expect(await tokens.allows(oldValue(0), { scope: SCOPE })).toBe(false);
    expect(await run(given)).toMatchObject({ imported: 0, skipped: 246, refused: 5 });
  });

  it('leaves out expired rows, and suspends disabled ones', async () => {
    const { run, tokens, inDays } = importing();
    const report = await run([
      rowOf(1, { expires_at: inDays(-1) }),
      rowOf(2, { expires_at: inDays(0) }),
      rowOf(3, { disabled: true, expires_at: inDays(9) }),
      rowOf(4, { disabled: false, expires_at: inDays(9) }),
    ]);
    const reasonOf = async (number: number) => {
      const verdict = await tokens.verify(oldValue(number), { scope: SCOPE });
      return verdict.ok ? 'ok' : verdict.reason;
    };

    expect(report).toMatchObject({ rows: 4, imported: 2, ended: 2, suspended: 1, refused: 0 });
    expect(await Promise.all([1, 2, 3, 4].map(reasonOf))).toEqual([
      ...['unknown', 'unknown', 'suspended', 'ok'],
    ]);
    const [token] = (await tokens.list({ account: 'ada', state: 'suspended' })).tokens;
    await tokens.patch('ada', token?.id ?? '', { suspended: false });
    expect(await reasonOf(3)).toBe('ok');
  });

  it('does not count a disabled row that is refused as suspended', async () => {
    const { run } = importing();
    const report = await run([
      rowOf(1, { disabled: true }),
      rowOf(2, { disabled: true, name: 'a\nb' }),
    ]);

    expect(report).toMatchObject({ imported: 1, refused: 1, suspended: 1, shortened: 1 });
  });

  it('shortens rows that never expire or expire too late, and extends none', async () => {
    const { run, tokens, inDays } = importing();
    const report = await run([
      rowOf(1),
      rowOf(2, { expires_at: inDays(366) }),
      rowOf(3, { expires_at: inDays(365) }),
      rowOf(4, { expires_at: inDays(9) }),
    ]);
    const expiries = await Promise.all(
      [1, 2, 3, 4].map(async (number) => (await tokens.get('ada', oldValue(number)))?.expiresAt),
    );

    expect(report).toMatchObject({ imported: 4, shortened: 2 });
    expect(expiries).toEqual([inDays(30), inDays(365), inDays(365), inDays(9)]);
  });

  it('keeps the name, the metadata and the creation time', async () => {
    const { run, tokens, inDays } = importing();
    const facts = { name: 'ci', metadata: { team: 'web' } };
    await run([rowOf(1, { ...facts, created_at: inDays(-100) })]);

    expect(await tokens.get('ada', oldValue(1))).toMatchObject({
      ...facts,
      createdAt: inDays(-100),
      state: 'active',
    });
  });

  it('assigns all rows to the given account', async () => {
    const { run, tokens } = importing({ account: 'acme' });
    await run([rowOf(1), rowOf(2, { account: undefined })]);

    expect((await tokens.list({ account: 'acme' })).tokens).toHaveLength(2);
  });

  it('writes nothing in a dry run, and returns the same report', async () => {
    const { run, store } = importing();
    const rows = [rowOf(1), rowOf(2, { digest: 'x' }), rowOf(3)];
    const trial = await run(rows, { dryRun: true });
    const calls = store.takeCalls();
    const report = await run(rows);

    expect(calls).toEqual(['find']);
    expect(trial).toEqual(report);
    expect(report).toMatchObject({ imported: 2, refused: 1 });
  });

  it('reports its progress if the store fails, and resumes when it is run again', async () => {
    const { run, store } = importing();
    const rows = Array.from({ length: 300 }, (_, number) => rowOf(number));
    let calls = 0;
    store.break('find', (...args: never[]) => {
      calls += 1;
      if (calls >= 2) throw new Error('down');
      return store.inner.find(...(args as unknown as Parameters<typeof store.inner.find>));
    });

    await expect(run(rows)).rejects.toThrow(/; 100 rows were imported before: run it again/);
    store.mend();
    expect(await run(rows)).toMatchObject({ imported: 200, skipped: 100 });
  });
});

describe('the rights of a row', () => {
  const map = mapOf({ 'orders:read': [SCOPE], '*': [SCOPE, 'POST:a.example/x'], old: [] });
  const scopes = ['GET:a.example/y'];
  const wild = ['*:a.example/*'];
  const NOTHING: Rights = { map: undefined, scopes: [], allowsWildcards: false };

  it.each<[string, object, Partial<Rights>, readonly string[]]>([
    ['its own', { scopes: [SCOPE] }, {}, [SCOPE]],
    ['its own, whatever --scope says', { scopes: [SCOPE] }, { scopes }, [SCOPE]],
    ['its own wildcards, if allowed', { scopes: wild }, { allowsWildcards: true }, wild],
    [
      'those of its permissions, each of them once',
      { permissions: ['orders:read', '*', 'old'] },
      { map },
      [SCOPE, 'POST:a.example/x'],
    ],
    ['both', { scopes, permissions: ['orders:read'] }, { map }, [...scopes, SCOPE]],
    ['none for a permission that grants nothing', { permissions: ['old'] }, { map, scopes }, []],
    ['none for an empty list', { permissions: [] }, { map, scopes }, []],
    ['those of --scope if it names none', {}, { map, scopes }, scopes],
  ])('are %s', (_, row, rights, expected) => {
    const old = { scopes: undefined, permissions: undefined, ...row };

    expect(scopesOf(old, { ...NOTHING, ...rights })).toEqual(expected);
  });

  it.each<[object, Partial<Rights>, string]>([
    [{}, { map }, 'no scopes and no permissions: give --scope for such rows'],
    [{ permissions: ['orders:read'] }, { scopes }, 'the row has permissions: give --map'],
    [{ permissions: ['old', 'orders:write'] }, { map }, '--map has no "orders:write": add it'],
    [{ permissions: ['constructor'] }, { map }, '--map has no "constructor"'],
    [{ permissions: ['a"b\u001b[2J'] }, { map }, '--map has no (its name is not shown)'],
    [{ scopes: wild }, {}, 'has a wildcard: give --catalog'],
  ])('are refused for %j', (row, rights, message) => {
    const old = { scopes: undefined, permissions: undefined, ...row };

    expect(() => scopesOf(old, { ...NOTHING, ...rights })).toThrow(message);
  });

  it.each([
    [[], 'must be a JSON object'],
    [{}, 'must be a JSON object'],
    [{ a: SCOPE }, '"a" must be a JSON array of scopes'],
    [{ a: [SCOPE, 'x'] }, '"a": scope 2: '],
  ])('require a valid map, not %j', (content, message) => {
    expect(() => mapOf(content)).toThrow(message);
  });
});

/** A map as `--map` reads it. */
function mapOf(content: unknown) {
  const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
  const path = join(folder, 'map.json');
  writeFileSync(path, JSON.stringify(content));
  try {
    return readPermissionMap(path);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function byLine([one]: readonly unknown[], [other]: readonly unknown[]): number {
  return Number(one) - Number(other);
}
