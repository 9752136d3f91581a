import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { apiKey } from '@better-auth/api-key';
import { betterAuth } from 'better-auth';
import { getMigrations } from 'better-auth/db/migration';
import { expect, it } from 'vitest';
import { newFolder, runInShell } from '../cli/support.ts';
import { startApi, Transcript } from '../cli/transcript.ts';

const SQLITE = 'sqlite3';
const guide = new URL('../../../docs/guides/bring-your-tokens.md', import.meta.url);
const READ = 'GET:orders.acme.example/orders';
const WRITE = 'POST:orders.acme.example/orders';

/** A database of better-auth with keys in every state, each issued by better-auth itself. */
async function issueKeys(file: string) {
  const database = new DatabaseSync(file);
  const auth = betterAuth({
    baseURL: 'https://shop.example',
    secret: 'a secret of thirty-two characters',
    database,
    emailAndPassword: { enabled: true },
    plugins: [apiKey({ defaultPrefix: 'old_', enableMetadata: true })],
    telemetry: { enabled: false },
    // It logs errors about tables that are created below.
    logger: { disabled: true },
  });
  await (await getMigrations(auth.options)).runMigrations();
  const person = { name: 'Ada', email: 'ada@shop.example', password: 'correct horse' };
  const { user } = await auth.api.signUpEmail({ body: person });
  const create = async (name: string, more: object = {}) => {
    const body = { userId: user.id, name, permissions: { orders: ['read', 'write'] }, ...more };
    return auth.api.createApiKey({ body });
  };
  const keys = {
    ci: await create('ci', { metadata: { team: 'web' } }),
    report: await create('report', { permissions: { orders: ['read'] }, expiresIn: 30 * 86_400 }),
    paused: await create('paused'),
    old: await create('old', { expiresIn: 86_400 }),
    plain: await create('plain', { permissions: undefined }),
  };
  await auth.api.updateApiKey({ body: { keyId: keys.paused.id, userId: user.id, enabled: false } });
  // Sets the expiry into the past.
  const past = database.prepare('UPDATE apikey SET "expiresAt" = ? WHERE id = ?');
  past.run(new Date(Date.now() - 86_400_000).toISOString(), keys.old.id);
  const verified = await auth.api.verifyApiKey({ body: { key: keys.ci.key } });
  expect(verified.valid).toBe(true);
  database.close();
  return { user, keys };
}

/** The rows that the query of the guide prints, with sqlite3 if it is installed, or else with Node.js. */
function exportOf(file: string, query: string): string {
  const shell = spawnSync(SQLITE, [file], { input: query, encoding: 'utf8' });
  if (shell.status === 0) return shell.stdout;
  const database = new DatabaseSync(file, { readOnly: true });
  const rows = database.prepare(query).all();
  database.close();
  return rows.map((row) => `${Object.values(row)[0]}\n`).join('');
}

it('keys of better-auth keep working for their bearers after an import', {
  timeout: 120_000,
}, async () => {
  const folder = newFolder();
  const transcript = new Transcript();
  const shell = async (line: string) => {
    const { stdout, stderr, code } = await runInShell(`cd "$1" && ${line}`, folder);
    const status = code === 0 ? '' : `exit code ${code}\n`;
    transcript.add(line, stdout + stderr + status);
    return { stdout, stderr, code };
  };
  const { user, keys } = await issueKeys(join(folder, 'app.db'));
  transcript.remark(
    'better-auth has issued five keys in app.db: ci, report, paused, old and plain',
  );

  transcript.remark('their rows, by the query of the guide; no value is among them');
  const [, query = ''] =
    /^### better-auth.*?^```sql\n(.*?)^```$/ms.exec(readFileSync(guide, 'utf8')) ?? [];
  writeFileSync(join(folder, 'export.sql'), query);
  const rows = exportOf(join(folder, 'app.db'), query);
  writeFileSync(join(folder, 'keys.jsonl'), rows);
  transcript.add('sqlite3 app.db < export.sql > keys.jsonl', '');
  await shell('head -n 1 keys.jsonl');
  for (const { key } of Object.values(keys)) expect(rows).not.toContain(key);

  transcript.remark('a new store, and what the permissions mean as scopes');
  await shell('tokenwright store migrate');
  await shell('tokenwright keys new');
  const map = JSON.stringify({ 'orders:read': [READ], 'orders:write': [WRITE] });
  writeFileSync(join(folder, 'permissions.json'), map);
  await shell('cat permissions.json');

  transcript.remark('rehearse: a key without permissions needs a decision');
  const importing = 'tokenwright token import --format better-auth --map permissions.json';
  const trial = await shell(`${importing} --dry-run < keys.jsonl`);
  expect(trial).toMatchObject({ code: 3 });
  expect(trial.stdout).toContain('would import 3 of 5 rows');
  expect(trial.stdout).toContain('line 5: the row has no scopes and no permissions: give --scope');
  const complete = `${importing} --scope ${READ}`;
  expect(await shell(`${complete} --dry-run < keys.jsonl`)).toMatchObject({ code: 0 });
  const api = await startApi(join(folder, 'data'), 'better-auth:old_');
  const ask = async (asked: typeof api, value: string) => {
    const answer = await asked.get('/orders', value);
    const url = 'http://orders.acme.example/orders';
    transcript.add(`curl -H "Authorization: Bearer ${value}" ${url}`, answer);
    return answer;
  };
  expect(await ask(api, keys.ci.key)).toBe('401 invalid_token');

  transcript.remark('import: the guard of an API in another process accepts the same values');
  const imported = await shell(`${complete} < keys.jsonl`);
  expect(imported.stdout).toContain('imported 4 of 5 rows');
  for (const name of ['ci', 'report', 'plain'] as const) {
    expect(await ask(api, keys[name].key)).toBe(`200 orders of ${user.id}`);
  }
  transcript.remark('disabled there, and expired there');
  expect(await ask(api, keys.paused.key)).toBe('401 invalid_token');
  expect(await ask(api, keys.old.key)).toBe('401 invalid_token');
  expect((await shell(`${complete} < keys.jsonl`)).stdout).toMatch(
    /imported 0 .*\n {2}skipped {4}4/,
  );

  transcript.remark('they are tokens like any other: listed, resumed, narrowed');
  const as = `--account ${user.id}`;
  await shell(`tokenwright token list ${as} --state all`);
  const ids = await idsOf(folder, as);
  await shell(`tokenwright token resume ${ids.get('paused')} ${as}`);
  expect(await ask(api, keys.paused.key)).toBe(`200 orders of ${user.id}`);
  await shell(`tokenwright token modify ${ids.get('ci')} ${as} --remove-scope ${WRITE}`);
  const verify = `tokenwright token verify --foreign better-auth:old_`;
  const write = `POST https://orders.acme.example/orders <<< ${keys.ci.key}`;
  const refused = await shell(`${verify} ${write}`);
  expect(refused.stdout).toContain('insufficient_scope');
  expect(await ask(api, keys.ci.key)).toBe(`200 orders of ${user.id}`);

  transcript.remark('rotated to a value of tokenwright; the old one works during its grace period');
  const rotated = await shell(`tokenwright token rotate ${ids.get('ci')} ${as} --grace 1h`);
  const next = rotated.stdout.trim();
  expect(next).toMatch(/^tw_1\w{57}$/);
  expect(await ask(api, next)).toBe(`200 orders of ${user.id}`);
  expect(await ask(api, keys.ci.key)).toBe(`200 orders of ${user.id}`);

  transcript.remark('revoked, and not brought back by a second import');
  await shell(`tokenwright token revoke ${ids.get('report')} ${as}`);
  expect(await ask(api, keys.report.key)).toBe('401 invalid_token');
  expect((await shell(`${complete} < keys.jsonl`)).stdout).toContain('imported 0 of 5 rows');
  expect(await ask(api, keys.report.key)).toBe('401 invalid_token');
  await api.stop();
  transcript.save();
});

/** The ids of the imported tokens by their names. */
async function idsOf(folder: string, as: string): Promise<ReadonlyMap<string, string>> {
  const line = `cd "$1" && tokenwright token list ${as} --state all --json`;
  const { stdout } = await runInShell(line, folder);
  const { tokens } = JSON.parse(stdout) as {
    tokens: { readonly id: string; readonly name: string }[];
  };
  return new Map(tokens.map(({ id, name }) => [name, id]));
}
