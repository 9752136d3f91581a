import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { makeFolder } from '../../../../src/app/server/files/private-file.ts';
import { MAX_WIRE_PAGE_TOKENS } from '../../../../src/bounds.ts';
import { fixedAccounts, tokenHandler, toNodeListener } from '../../../../src/http/index.ts';
import { generateKey, MemoryTokenStore, type Token, TokenService } from '../../../../src/index.ts';
import { ScopeCatalog } from '../../../../src/scope/index.ts';
import { engines, newStore } from '../../server/databases.ts';
import {
  exampleOf,
  filesOf,
  hideVariables,
  listen,
  newFolder,
  outcomeOf,
  type Run,
  run,
  runInShell,
  serve,
  serviceOn,
} from '../support.ts';

const ORDERS = 'GET:shop.example/orders';
const BILLS = 'GET:shop.example/bills';
const VERIFY_ORDERS = ['token', 'verify', '--scope', ORDERS];
const VALUE = /^tw_1k1[0-9A-Za-z]{55}$/;

beforeEach(hideVariables);

describe('the tokens of a store', () => {
  it('are issued, listed, shown, modified, rotated, verified and revoked', async () => {
    const { flags, as } = setUp();

    const issued = await outcomeOf(['token', 'issue', ...as, '--scope', ORDERS, '--name', 'ci']);
    const value = issued.text;
    const { id, masked } = issued.json;
    expect(value).toMatch(VALUE);
    expect(value.startsWith(masked.slice(0, -1))).toBe(true);
    expect(issued.json).toMatchObject({ token: value, scopes: [ORDERS], name: 'ci', version: 1 });
    expect(issued.notes).toContain(`id       ${id}\nvalue    ${masked}\nname     ci\n`);

    const listed = await outcomeOf(['token', 'list', ...as]);
    expect(listed.text.split('\n')[1]).toMatch(new RegExp(`^${id} .*Z {2}ci {4}${ORDERS}$`));
    expect(listed.json).toMatchObject({ tokens: [{ id, token: id }], isWhole: true });

    const shown = await outcomeOf(['token', 'get', id, ...as]);
    expect(shown.json).toEqual({ ...issued.json, token: id });

    const modified = await outcomeOf(['token', 'modify', id, ...as, '--add-scope', BILLS]);
    expect(modified.json).toEqual({
      ...shown.json,
      scopes: [BILLS, ORDERS],
      version: 2,
    });

    const rotated = await outcomeOf(['token', 'rotate', value, ...as, '--if-version', '2']);
    expect(rotated.text).toMatch(VALUE);
    expect(rotated.json).toMatchObject({ id, token: rotated.text, version: 3 });

    const verify = ['token', 'verify', ...flags, '--scope', BILLS, '--token'];
    const taken = await outcomeOf([...verify, rotated.text]);
    expect(taken.json).toMatchObject({ ok: true, grantedBy: BILLS, token: { id, account: 'ada' } });
    expect(await outcomeOf([...verify, value])).toMatchObject({
      json: { ok: false, reason: 'unknown' },
      isNegative: true,
    });

    const revoked = await outcomeOf(['token', 'revoke', id, ...as]);
    expect(revoked.json).toEqual({ revoked: 1 });
    expect((await outcomeOf([...verify, rotated.text])).json).toMatchObject({ reason: 'revoked' });
    expect((await outcomeOf(['token', 'list', ...as])).text).toBe('');
  });

  it('can get a new value that waits for its first use, or is canceled before that', async () => {
    const { flags, as } = setUp();
    const issued = await outcomeOf(['token', 'issue', ...as, '--scope', ORDERS]);
    const { id } = issued.json;
    const rotate = ['token', 'rotate', id, ...as];
    const onFirstUse = [...rotate, '--activate', 'first-use', '--grace', '0'];
    const isGood = async (value: string) => {
      const verify = ['token', 'verify', ...flags, '--scope', ORDERS, '--token', value];
      return (await outcomeOf(verify)).json.ok;
    };

    const first = await outcomeOf(onFirstUse);
    expect(first.json).toMatchObject({ id, token: first.text, pending: true, version: 2 });
    expect(first.notes).toContain('pending  a new value waits for its first use\n');
    const canceled = await outcomeOf([...rotate, '--cancel']);
    expect(canceled.json).toEqual({ ...issued.json, token: id, version: 3 });
    expect(canceled.text).not.toContain('pending');
    expect(await isGood(first.text)).toBe(false);

    const second = await outcomeOf(onFirstUse);
    expect(await isGood(issued.text)).toBe(true);
    expect(await isGood(second.text)).toBe(true);
    expect((await outcomeOf(['token', 'get', id, ...as])).json).not.toHaveProperty('pending');
    expect(await isGood(issued.text)).toBe(false);
  });

  it('get limits by flags, one by one, and verify enforces them', async () => {
    const { as, flags } = setUp();
    const limitFlags = ['--address', '10.0.0.1/32', '--address', '2001:db8::/32', '--uses', '2'];
    const issue = ['token', 'issue', ...as, '--scope', ORDERS];
    const issued = await outcomeOf([...issue, ...limitFlags, '--rate', '100/1m']);
    const { id } = issued.json;
    const modify = ['token', 'modify', id, ...as];
    const limitsOf = async (args: string[]) => (await outcomeOf(args)).json.limits;
    const addresses = ['10.0.0.1', '2001:db8::/32'];
    const rate = { uses: 100, seconds: 60 };

    expect(issued.json.limits).toEqual({ addresses, uses: 2, rate });
    expect((await outcomeOf(['token', 'get', id, ...as])).text).toContain(
      'limits   from 10.0.0.1\n         from 2001:db8::/32\n         2 uses in total\n         100 in each 60 s\n',
    );
    expect(await limitsOf([...modify, '--uses', '3'])).toEqual({ addresses, uses: 3, rate });
    expect(await limitsOf([...modify, '--rate', ''])).toEqual({ addresses, uses: 3 });
    expect(await limitsOf([...modify, '--name', 'x'])).toEqual({ addresses, uses: 3 });

    const verify = ['token', 'verify', ...flags, '--scope', ORDERS, '--token', issued.text];
    const isAccepted = async (...more: string[]) => (await outcomeOf([...verify, ...more])).json;
    expect(await isAccepted()).toMatchObject({ ok: false, reason: 'address_unknown' });
    expect(await isAccepted('--address', '::1')).toMatchObject({ reason: 'address_denied' });
    // For the store, each call is a separate process.
    for (let use = 0; use < 3; use++) {
      expect(await isAccepted('--address', '10.0.0.1')).toMatchObject({ ok: true });
    }
    expect(await isAccepted('--address', '10.0.0.1')).toMatchObject({ reason: 'limit_exceeded' });
    expect(await limitsOf([...modify, '--address', '', '--uses', ''])).toBeUndefined();
    expect(await isAccepted()).toMatchObject({ ok: true });
  });

  it('verify refuses an --address that is not one', async () => {
    const { flags } = setUp();

    const asked = ['--scope', ORDERS, '--token', 'x', '--address', 'foo'];
    const verify = ['token', 'verify', ...flags, ...asked];

    expect(await run(verify)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--address must be an IP address, such as 192.0.2.1'),
    });
  });

  it.each([
    [['--address', '10.0.0.1/8'], /--address\[0\] must be an IP address or a CIDR block/],
    [['--uses', '0'], /--uses must be/],
    [['--rate', '100'], /--rate must be a number and a time, such as 100\/60s/],
    [
      ['--rate', '1/2d'],
      /--rate must be a number and a time, such as 100\/60s; the time is from 1s to 24h/,
    ],
    [
      ['--rate', '1/0s'],
      /--rate must be a number and a time, such as 100\/60s; the time is from 1s to 24h/,
    ],
  ])('refuse the limit %j', async (args, message) => {
    const { as } = setUp();

    const { code, stderr } = await run(['token', 'issue', ...as, '--scope', ORDERS, ...args]);

    expect(code).not.toBe(0);
    expect(stderr).toMatch(message);
  });

  it('look the same to another account as tokens that do not exist', async () => {
    const { token, as, flags } = await withToken();
    const verbs = [['get'], ['modify', '--ttl', '60'], ['revoke'], ['rotate']];

    for (const [verb = '', ...more] of verbs) {
      const ask = (id: string, account: string) =>
        outcomeOf(['token', verb, id, ...flags, '--account', account, ...more]);
      const absent = { text: '', json: null, isNegative: true };
      const notes = expect.stringMatching(/^no such token of (ada|bob) in SQLite/);
      expect(await ask(token.id, 'bob')).toMatchObject({ ...absent, notes });
      expect(await ask('0'.repeat(22), 'ada')).toMatchObject({ ...absent, notes });
      expect(await ask('nothing', 'ada')).toMatchObject({ ...absent, notes });
    }
    expect((await outcomeOf(['token', 'get', token.id, ...as])).json.version).toBe(1);
  });

  it('with wildcards require a catalog to expand them, or --patterns to keep them', async () => {
    const { as } = setUp();
    const file = filesOf({ 'catalog.json': [ORDERS, BILLS] });
    const issue = (...flags: string[]) =>
      outcomeOf(['token', 'issue', ...as, '--scope', '*:shop.example/*', ...flags]);

    await expect(issue()).rejects.toThrow('give --catalog to expand it');
    const expanded = await issue('--catalog', file('catalog.json'));
    const kept = await issue('--patterns');

    expect(expanded.json.scopes).toEqual([BILLS, ORDERS]);
    expect(kept.json.scopes).toEqual(['*:shop.example/*']);
  });

  it('are noted to be expanded, since what the catalog gets later is not included', async () => {
    const { as } = setUp();
    const file = filesOf({ 'catalog.json': [ORDERS, BILLS] });
    vi.stubEnv('TOKENWRIGHT_CATALOG', file('catalog.json'));
    const issue = (scope: string) => outcomeOf(['token', 'issue', ...as, '--scope', scope]);
    const note = 'endpoints that are added to the catalog later are not included';

    const wild = await issue('GET:shop.example/*');
    const plain = await issue(ORDERS);
    const modify = (scope: string) =>
      outcomeOf(['token', 'modify', plain.json.id, ...as, '--add-scope', scope]);

    expect(wild.notes).toContain(note);
    expect(plain.notes).not.toContain(note);
    expect((await modify(BILLS)).notes).toBeUndefined();
    expect((await modify('*:shop.example/*')).notes).toContain(note);
  });

  const broken = () => filesOf({ 'broken.json': '[' })('broken.json');

  it.each([
    'revoke ID',
    'revoke --all --yes',
    'list',
    'get ID',
    'rotate ID',
    'modify ID --ttl 60',
    `modify ID --remove-scope ${BILLS}`,
    `verify --scope ${ORDERS} --token VALUE`,
  ])('need no readable catalog for %s', async (words) => {
    const { tokens, flags, as } = setUp();
    const token = await tokens.issue({ account: 'ada', scopes: [ORDERS, BILLS] });
    vi.stubEnv('TOKENWRIGHT_CATALOG', broken());
    const call = words.replace('ID', token.id).replace('VALUE', token.value).split(' ');

    const outcome = await outcomeOf(['token', ...call, ...(call[0] === 'verify' ? flags : as)]);

    expect(outcome.isNegative ?? false).toBe(false);
  });

  it.each([
    `issue --scope ${ORDERS}`,
    `modify ID --scope ${ORDERS}`,
    `modify ID --add-scope ${BILLS}`,
  ])('get no new scopes while the catalog cannot be read: %s', async (words) => {
    const { token, as } = await withToken();
    vi.stubEnv('TOKENWRIGHT_CATALOG', broken());

    const outcome = outcomeOf(['token', ...words.replace('ID', token.id).split(' '), ...as]);

    await expect(outcome).rejects.toThrow(/broken\.json/);
  });

  it('are refused with the entry of the catalog that was needed', async () => {
    const { token, flags } = await withToken();
    vi.stubEnv(
      'TOKENWRIGHT_CATALOG',
      filesOf({ 'catalog.json': [ORDERS, 'GET:shop.example/x'] })('catalog.json'),
    );
    const verify = ['token', 'verify', 'GET', 'https://shop.example/x/7', ...flags];

    const refused = await outcomeOf([...verify, '--token', token.value]);

    expect(refused.json).toMatchObject({ ok: false, needed: 'GET:shop.example/x' });
  });

  it('are verified by the routes of a catalog', async () => {
    const { tokens, flags } = setUp();
    const scopes = [`${ORDERS}/{}$`];
    const { value } = await tokens.issue({ account: 'ada', scopes });
    const routes = [`${ORDERS}/{}$`, `${ORDERS}/export$`];
    const catalog = ['--catalog', filesOf({ 'catalog.json': routes })('catalog.json')];
    const verify = (path: string, more: readonly string[]) =>
      outcomeOf([
        ...['token', 'verify', 'GET', `https://shop.example/orders/${path}`, ...flags],
        ...['--token', value, ...more],
      ]);

    expect((await verify('7', catalog)).json).toMatchObject({ ok: true, grantedBy: scopes[0] });
    expect((await verify('export', catalog)).json).toMatchObject({
      ok: false,
      needed: `${ORDERS}/export$`,
    });
    expect((await verify('export', [])).json).toMatchObject({ ok: true });
    await expect(verify('7', ['--catalog', broken()])).rejects.toThrow(/broken\.json/);
  });

  it('are listed by scope and up to --limit, with a note if there are more', async () => {
    const { tokens, as } = setUp();
    for (const scope of [ORDERS, BILLS, ORDERS]) {
      await tokens.issue({ account: 'ada', scopes: [scope] });
    }

    const few = await outcomeOf(['token', 'list', ...as, '--limit', '2']);
    const some = await outcomeOf(['token', 'list', ...as, '--scope', ORDERS, '--match', 'exact']);
    const none = await outcomeOf(['token', 'list', ...as, '--scope', 'GET:a.example/x']);

    expect(few.json).toMatchObject({ isWhole: false });
    expect(few.json.tokens).toHaveLength(2);
    expect(few.notes).toMatch(
      /^2 tokens of ada in SQLite in .*; there are more: --all lists them$/,
    );
    expect(some.json.tokens).toHaveLength(2);
    expect(some.notes).not.toContain('--all');
    expect(none).toMatchObject({ text: '', json: { tokens: [], isWhole: true } });
  });

  it('are listed in the order that is asked for, and by host', async () => {
    const { as, tokens } = setUp();
    for (const [name, ttlSeconds, host] of [
      ['b', 300, 'shop.example'],
      ['a', 200, 'shop.example'],
      ['c', 100, 'other.example'],
    ] as const) {
      const scopes = [`GET:${host}/orders`];
      await tokens.issue({ account: 'ada', scopes, name, ttlSeconds });
    }
    const namesBy = async (...flags: string[]) => {
      const { json } = await outcomeOf(['token', 'list', ...flags, ...as]);
      return json.tokens.map(({ name }: { name: string }) => name).join('');
    };

    expect(await namesBy('--sort', 'expire')).toBe('cab');
    expect(await namesBy('--sort', 'name')).toBe('abc');
    expect(await namesBy('--sort', 'name', '--domain', 'shop.example')).toBe('ab');
    for (const [flag, value, values] of [
      ['--sort', 'age', 'created, expire, name or lastUsed'],
      ['--unused', 'always', 'never'],
      ['--domain', '', 'leave it out'],
    ] as const) {
      await expect(namesBy(flag, value)).rejects.toMatchObject({
        message: expect.stringContaining(values),
      });
    }
  });

  it('are all listed with --all, page after page', async () => {
    const { tokens, as } = setUp();
    for (let i = 0; i < MAX_WIRE_PAGE_TOKENS + 1; i++) {
      await tokens.issue({ account: 'ada', scopes: [ORDERS] });
    }

    const all = await outcomeOf(['token', 'list', ...as, '--all']);
    const page = await outcomeOf(['token', 'list', ...as, '--limit', `${MAX_WIRE_PAGE_TOKENS}`]);

    expect(all.json).toMatchObject({ isWhole: true });
    expect(all.json.tokens).toHaveLength(MAX_WIRE_PAGE_TOKENS + 1);
    expect(page.json).toMatchObject({ isWhole: false });
    await expect(outcomeOf(['token', 'list', ...as, '--all', '--limit', '5'])).rejects.toThrow(
      '--all and --limit exclude each other',
    );
  });

  it('are issued with an expiry by --expire', async () => {
    const { as } = setUp();
    const issue = (...flags: string[]) =>
      outcomeOf(['token', 'issue', ...as, '--scope', ORDERS, ...flags]);
    const tomorrow = Math.floor(Date.now() / 1000) + 86_400;

    expect((await issue('--expire', String(tomorrow))).json.expire).toBe(tomorrow);
    await expect(issue('--expire', '2001-01-31')).rejects.toThrow(/^--expire must be/);
    await expect(issue('--expire', 'soon')).rejects.toThrow('--expire must be like 2027-01-31');
    await expect(issue('--expire', '2027-01-31', '--ttl', '1d')).rejects.toThrow(
      '--ttl and --expire both set the expiry: give only one of them',
    );
  });

  it('are suspended, resumed, and listed by state and name', async () => {
    const { as, tokens } = setUp();
    const issue = (name: string) => tokens.issue({ account: 'ada', scopes: [ORDERS], name });
    const [first, second, third] = [await issue('CI one'), await issue('ci two'), await issue('x')];
    const ask = (...words: string[]) => outcomeOf(['token', ...words, ...as]);
    const namesIn = ({ json }: Awaited<ReturnType<typeof ask>>) =>
      json.tokens.map(({ name }: { name: string }) => name).sort();

    const suspended = await ask('suspend', first.id, '--if-version', '1');
    expect(suspended.json).toMatchObject({ id: first.id, state: 'suspended', version: 2 });
    expect(suspended.text).toContain('state    suspended\n');
    const refused = await outcomeOf([
      'token',
      'verify',
      '--scope',
      ORDERS,
      '--token',
      first.value,
      ...as.slice(0, 2),
    ]);
    expect(refused).toMatchObject({ isNegative: true, json: { reason: 'suspended' } });
    await ask('revoke', third.id);

    expect(namesIn(await ask('list'))).toEqual(['ci two']);
    expect((await ask('list')).text).not.toContain('STATE');
    expect(namesIn(await ask('list', '--state', 'suspended'))).toEqual(['CI one']);
    expect(namesIn(await ask('list', '--state', 'revoked'))).toEqual(['x']);
    expect(namesIn(await ask('list', '--state', 'live'))).toEqual(['CI one', 'ci two']);
    const all = await ask('list', '--state', 'all', '--name', 'CI');
    expect(namesIn(all)).toEqual(['CI one', 'ci two']);
    expect(all.text.split('\n')[0]).toMatch(/^ID +STATE +EXPIRES +NAME +SCOPES$/);
    expect(all.text).toMatch(new RegExp(`^${second.id} +active `, 'm'));
    expect((await ask('get', third.id)).isNegative).toBe(true);
    expect((await ask('get', third.id, '--state', 'revoked')).json.state).toBe('revoked');
    expect((await ask('suspend', third.id)).isNegative).toBe(true);

    const resumed = await ask('resume', first.id);
    expect(resumed.json).toMatchObject({ id: first.id, state: 'active', version: 3 });
    expect(namesIn(await ask('list'))).toEqual(['CI one', 'ci two']);
  });

  it('are not changed by modify --dry-run, which prints the difference', async () => {
    const { token, as } = await withToken();
    const change = ['--scope', BILLS, '--name', '', '--expire', '2026-12-31T12:00:00+01:00'];

    const tried = await outcomeOf(['token', 'modify', token.id, ...as, ...change, '--dry-run']);

    expect(tried.text).toMatch(new RegExp(`^\\+ ${BILLS}\n- ${ORDERS}\n\nid `));
    expect(tried.json.diff).toEqual({ added: [BILLS], removed: [ORDERS] });
    const made = await outcomeOf(['token', 'modify', token.id, ...as, ...change]);
    expect(made.json).toMatchObject({
      scopes: [BILLS],
      expire: Date.parse('2026-12-31T11:00:00Z') / 1000,
      version: 2,
    });
    expect(made.json).not.toHaveProperty('name');
  });

  it('keep their expiry unless --ttl sets another, in seconds or with a unit', async () => {
    const { token, as } = await withToken();
    const modify = (...change: string[]) =>
      outcomeOf(['token', 'modify', token.id, ...as, ...change]);

    const named = await modify('--name', 'x', '--metadata', '{"a":1}');
    const { json: before } = await modify('--ttl', '60');
    const { json: after } = await modify('--ttl', '1d', '--metadata', 'null');

    expect(named.json).toMatchObject({
      expire: Math.floor(token.expiresAt.getTime() / 1000),
      name: 'x',
      metadata: { a: 1 },
    });
    expect(after.expire - before.expire).toBeGreaterThanOrEqual(86_340);
    expect(after.expire - before.expire).toBeLessThan(86_400);
    expect(after).not.toHaveProperty('metadata');
  });

  it('are all revoked only with --yes', async () => {
    const { token, as } = await withToken();
    const all = ['token', 'revoke', '--all', ...as];

    await expect(outcomeOf(all)).rejects.toThrow('would revoke all tokens of ada in');
    expect((await outcomeOf(['token', 'get', token.id, ...as])).isNegative).not.toBe(true);
    expect((await outcomeOf([...all, '--yes'])).json).toEqual({ revoked: 1 });
    expect((await outcomeOf(['token', 'get', token.id, ...as])).isNegative).toBe(true);
  });

  it('are revoked by who made them, after a preview', async () => {
    const { token, as, data } = await withToken();
    const tokens = serviceOn(data, { reveal: 'once' });
    const made = await tokens.issue({
      account: 'ada',
      scopes: [ORDERS],
      name: 'of ann',
      purpose: 'one task',
      createdBy: 'ann',
    });
    const { id: bot } = await tokens.issue({ account: 'bot', scopes: [ORDERS] });
    const by = ['token', 'revoke', '--created-by', 'ann', ...as];
    const idsOf = async (name: string) =>
      (await outcomeOf(['token', 'list', '--created-by', name, ...as])).json.tokens.map(
        ({ id }: { id: string }) => id,
      );

    const preview = await outcomeOf([...by, '--dry-run']);
    expect(preview.json).toEqual({ count: 1, ending: 0, tokens: [made.id] });
    expect(preview.text).toMatch(/^would revoke 1 token of ada in .*\n\S{22} {2}of ann$/);
    await expect(outcomeOf(by)).rejects.toThrow('would revoke all tokens that ann made of ada in');
    expect(await idsOf('ann')).toEqual([made.id]);
    expect(await idsOf('bob')).toEqual([]);
    const { text } = await outcomeOf(['token', 'get', made.id, ...as]);
    expect(text).toMatch(/^purpose +one task\nmade by +ann$/m);
    expect((await outcomeOf([...by, '--yes'])).json).toEqual({ revoked: 1 });

    expect((await outcomeOf(['token', 'get', made.id, ...as])).isNegative).toBe(true);
    expect((await outcomeOf(['token', 'get', token.id, ...as])).isNegative).not.toBe(true);
    expect((await tokens.get('bot', bot))?.state).toBe('active');
  });

  it('are shown again by the service only if they were issued with --reveal always', async () => {
    const { as, data } = setUp();
    const issue = async (when: string) =>
      (await outcomeOf(['token', 'issue', ...as, '--scope', ORDERS, '--reveal', when])).json;
    const [once, always] = [await issue('once'), await issue('always')];
    const revealing = serviceOn(data, { reveal: 'always' });

    expect((await revealing.get('ada', once.id))?.value).toBeUndefined();
    expect((await revealing.get('ada', always.id))?.value).toBe(always.token);
  });
});

describe('token verify', () => {
  it.each([
    [['GET', 'https://shop.example/orders/7?x=canary'], 'allowed  GET shop.example /orders/7\n'],
    [['GET', 'http://Shop.Example:8080/orders'], 'allowed  GET shop.example /orders\n'],
    [['GET', 'https://shop.example'], 'refused  GET shop.example /\n'],
    [
      ['GET', 'https://shop.example/', '--root-name', 'orders'],
      'allowed  GET shop.example /orders',
    ],
    [
      ['GET', 'https://shop.example?x', '--root-name', 'orders'],
      'allowed  GET shop.example /orders',
    ],
    [
      ['GET', 'https://shop.example/orders/../x'],
      'path_dot_segment: the path contains a segment of',
    ],
    [['POST', 'https://shop.example/orders'], 'enough   POST:shop.example/orders'],
    [['--scope', ORDERS], `allowed  ${ORDERS}\nby       ${ORDERS}\n`],
    [['--scope', '*:*/*'], 'enough   *:*/*'],
  ])('prints the verdict for %j', async (need, text) => {
    const { token, flags } = await withToken();

    const outcome = await outcomeOf(['token', 'verify', ...need, ...flags, '--token', token.value]);

    expect(outcome.text).toContain(text);
    expect(outcome.text).not.toMatch(/canary|tw_/);
    expect(outcome.isNegative ?? false).toBe(!text.startsWith('allowed'));
  });

  it('reads the value from standard input, the variable or the flag, and prefers the flag', async () => {
    const { token, flags } = await withToken();
    const words = ['token', 'verify', '--scope', ORDERS, ...flags];
    const TOKENWRIGHT_TOKEN = token.value;

    const piped = await run(words, {}, `${token.value}\n`);
    const named = await run(words, { TOKENWRIGHT_TOKEN });
    const given = await run([...words, '--token', 'other'], { TOKENWRIGHT_TOKEN });
    const asked = await run([...words, '--token', '-'], { TOKENWRIGHT_TOKEN }, 'other');
    const empty = await run(words, {}, '');

    expect([piped, named, given, asked, empty].map(({ code }) => code)).toEqual([0, 0, 3, 3, 1]);
    expect(piped.stdout).toMatch(new RegExp(`^allowed  ${ORDERS}\n`));
    expect(asked.stdout).toContain('reason   malformed: ');
    expect(empty.stderr).toBe(
      'tokenwright: standard input is empty: it must contain the value of a token\n',
    );
  });

  it.each<[string, (token: Token & { value: string }) => string, string, string]>([
    ['a header', ({ value }) => `Bearer ${value}`, 'begins_with_bearer', 'only what follows'],
    ['an id', ({ id }) => id, 'is_id', 'opens nothing'],
    ['another prefix', ({ value }) => value.replace('tw_', 'other_'), 'other_prefix', '--prefix'],
    ['another key', ({ value }) => value.replace('tw_1k1', 'tw_1k2'), 'unknown_key', '--keys'],
    [
      'a mistyped value',
      ({ value }) => `${value.slice(0, -1)}${value.endsWith('0') ? 1 : 0}`,
      'bad_tag',
      'mistyped or forged',
    ],
    ['half a value', ({ value }) => value.slice(0, 30), 'other_form', 'complete'],
  ])(
    'on a store says why %s is malformed, and with --url does not',
    async (_, make, detail, words) => {
      const { token, flags } = await withToken();
      const { ask } = await served();
      const value = make(token);

      const local = await outcomeOf([...VERIFY_ORDERS, ...flags, `--token=${value}`]);

      expect(local.json).toEqual({ ok: false, reason: 'malformed', detail });
      expect(local.text).toMatch(
        /^refused {2}.*\nreason {3}malformed: not a value of this service\n/,
      );
      expect(local.text).toContain(`\ndetail   ${detail}: `);
      expect(local.text.replaceAll(/\s+/g, ' ')).toContain(words);
      expect(local.text).not.toContain(token.value.slice(-20));
      const remote = await ask([...VERIFY_ORDERS.slice(1), `--token=${value}`], 'rs');
      expect(remote.json).toEqual({ ok: false, reason: 'inactive' });
      expect(remote.text).not.toMatch(/detail|malformed/);
    },
  );

  it('works with verifier keys, which cannot issue tokens', async () => {
    const { token, flags, data } = await withToken();
    const { text } = await outcomeOf(['keys', 'verifier', '--data', data]);
    const keys = filesOf({ 'verifier.json': text })('verifier.json');
    const verify = ['token', 'verify', '--scope', ORDERS, '--token', token.value, '--data', data];

    expect((await outcomeOf([...verify, '--keys', keys])).json).toMatchObject({ ok: true });
    const issue = ['token', 'issue', ...flags, '--keys', keys, '--account', 'ada'];
    await expect(outcomeOf([...issue, '--scope', ORDERS])).rejects.toThrow('can only verify');
  });
});

describe('the tokens behind a service', () => {
  it('are issued, listed, shown, modified, rotated, verified and revoked', async () => {
    const { ask, catalog } = await served();
    const [scope = ''] = catalog;

    const issued = await ask([
      'issue',
      '--scope',
      '*:shop.example/*',
      '--ttl',
      '1h',
      '--name',
      'ci',
    ]);
    const { id, token: value } = issued.json;
    expect(value).toMatch(VALUE);
    expect(issued.json).toMatchObject({ scopes: catalog, name: 'ci', version: 1 });
    expect(issued.json.expire - issued.json.createdAt).toBe(3600);
    expect((await ask(['list', '--scope', scope, '--match', 'covers'])).json).toMatchObject({
      tokens: [{ id, token: id }],
      isWhole: true,
    });
    expect((await ask(['get', id])).json).toEqual({ ...issued.json, token: id });

    const narrowed = await ask(['modify', id, '--remove-scope', scope, '--if-version', '1']);
    expect(narrowed.json).toMatchObject({ token: id, scopes: catalog.slice(1), version: 2 });
    expect(narrowed.json.expire).toBe(issued.json.expire);
    await expect(ask(['modify', id, '--name', 'x', '--if-version', '1'])).rejects.toThrow(
      'refuses with 412: the token has version 2 now',
    );
    const pending = await ask(['rotate', id, '--activate', 'first-use', '--grace', '1m']);
    expect(pending.json).toMatchObject({ id, pending: true, token: expect.stringMatching(VALUE) });
    expect((await ask(['rotate', id, '--cancel'])).json).toMatchObject({ token: id, version: 4 });
    const rotated = await ask(['rotate', id, '--grace', '1m']);
    expect(rotated.json).toMatchObject({ id, version: 5, token: expect.stringMatching(VALUE) });

    const verify = ['verify', '--token', rotated.json.token, '--scope'];
    expect((await ask([...verify, catalog[1] ?? ''], 'rs')).json).toMatchObject({
      ok: true,
      grantedBy: catalog[1],
      token: { id, account: 'ada', expire: issued.json.expire },
    });
    expect((await ask([...verify, scope], 'rs')).json).toEqual({
      ok: false,
      reason: 'insufficient_scope',
      needed: scope,
    });
    expect((await ask(['revoke', id])).json).toEqual({ revoked: 1 });
    expect((await ask([...verify, catalog[1] ?? ''], 'rs')).json).toEqual({
      ok: false,
      reason: 'inactive',
    });
    for (const verb of [['get'], ['modify', '--ttl', '60'], ['rotate'], ['revoke']]) {
      const [name = '', ...more] = verb;
      expect(await ask([name, id, ...more])).toMatchObject({ json: null, isNegative: true });
    }
  });

  it('are suspended, resumed, and listed by state and name', async () => {
    const { ask } = await served();
    const issue = async (name: string) =>
      (await ask(['issue', '--scope', ORDERS, '--name', name])).json.id as string;
    const [first, second] = [await issue('CI one'), await issue('two')];

    expect((await ask(['suspend', first])).json).toMatchObject({ id: first, state: 'suspended' });
    await ask(['revoke', second]);
    expect((await ask(['list'])).json.tokens).toEqual([]);
    const all = await ask(['list', '--state', 'all', '--name', 'ci']);
    expect(all.json.tokens).toMatchObject([{ id: first, state: 'suspended', token: first }]);
    expect((await ask(['get', second])).isNegative).toBe(true);
    expect((await ask(['get', second, '--state', 'revoked'])).json.state).toBe('revoked');
    expect((await ask(['resume', first])).json).toMatchObject({ state: 'active', version: 3 });
  });

  it('are not changed by modify --dry-run, which prints the difference', async () => {
    const { ask, catalog } = await served();
    const { json: token } = await ask(['issue', '--scope', '*:shop.example/*']);
    const [scope = ''] = catalog;

    const tried = await ask(['modify', token.id, '--remove-scope', scope, '--dry-run']);
    const found = await ask(['get', token.id]);

    expect(tried.json).toMatchObject({ version: 2, diff: { added: [], removed: [scope] } });
    expect(tried.text.startsWith(`- ${scope}\n\nid `)).toBe(true);
    expect(found.json).toMatchObject({ version: 1, scopes: token.scopes });
  });

  it('are listed across all pages', async () => {
    const { ask } = await served();
    for (let i = 0; i < 3; i++) await ask(['issue', '--scope', ORDERS]);

    const all = await ask(['list']);
    const two = await ask(['list', '--limit', '2']);
    const sorted = await ask(['list', '--all', '--sort', 'expire']);

    expect(all.json).toMatchObject({ isWhole: true });
    expect(all.json.tokens).toHaveLength(3);
    expect(two.json).toEqual({ tokens: all.json.tokens.slice(0, 2), isWhole: false });
    expect(sorted.json).toMatchObject({ isWhole: true });
    expect(sorted.json.tokens).toHaveLength(3);
  });

  it('are never looked up by value, which would end up in the logs of the service', async () => {
    const { ask } = await served();
    const { json } = await ask(['issue', '--scope', ORDERS]);

    await expect(ask(['get', json.token])).rejects.toThrow(`the id of this one is ${json.id}`);
    expect(await ask(['get', '../scopes'])).toMatchObject({ isNegative: true });
  });

  it.each<[string[], NodeJS.ProcessEnv, number, string]>([
    [
      ['list'],
      { TOKENWRIGHT_PASSWORD: 'canary' },
      1,
      'refuses with 401: the user name or the password is wrong',
    ],
    [
      ['list'],
      { TOKENWRIGHT_PASSWORD: '' },
      2,
      'the password is missing: set TOKENWRIGHT_PASSWORD',
    ],
    [['list', '--user', 'a:canary'], {}, 2, '--user (TOKENWRIGHT_USER) is required'],
    [['issue', '--scope', 'GET:a.example/x'], {}, 1, 'refuses with 422: '],
    [['revoke', '--all', '--yes'], {}, 2, '--all and --created-by are for a store'],
    [['revoke', '--all'], {}, 2, '--all and --created-by are for a store'],
    [['revoke', '--created-by', 'x', '--dry-run'], {}, 2, '--created-by are for a store'],
    [['verify', '--scope', ORDERS, '--token', 'canary'], {}, 1, 'must be those of --introspection'],
    [['list', '--account', 'bob'], {}, 2, '--account is for a store'],
  ])(
    'are refused for %j with the variables %j and exit code %i',
    async (words, environment, code, message) => {
      const { ask } = await served();

      const refused = ask(words, 'ada', environment);

      await expect(refused).rejects.toThrow(message);
      await expect(refused).rejects.toMatchObject({ exitCode: code });
      await expect(refused).rejects.not.toThrow('canary');
    },
  );

  it.each([
    ['http://127.0.0.1:1', 1, 'http://127.0.0.1:1 cannot be reached'],
    ['127.0.0.1', 2, '--url (TOKENWRIGHT_URL) must be like http://127.0.0.1:8787'],
    ['ftp://canary.example', 2, 'must be like'],
    ['http://a.example/?canary', 2, 'must be like'],
    ['http://ada:canary@a.example', 2, 'must hold no user and password'],
  ])('are not available at %s', async (url, code, message) => {
    const environment = { TOKENWRIGHT_USER: 'ada', TOKENWRIGHT_PASSWORD: 'canary' };

    const ended = await run(['token', 'list', '--url', url], environment);

    expect(ended).toMatchObject({ code, stdout: '' });
    expect(ended.stderr).toMatch(/^tokenwright: .*\n$/);
    expect(ended.stderr).toContain(message);
    expect(ended.stderr).not.toContain('canary');
  });

  it('require a token service, and verify requires --introspection', async () => {
    const { url } = await served();
    vi.stubEnv('TOKENWRIGHT_USER', 'ada');
    vi.stubEnv('TOKENWRIGHT_PASSWORD', 'pw');
    const plain = await serve(['--data', newFolder(), '--account', 'ada:correct-horse']);

    for (const words of [['list'], ['issue', '--scope', ORDERS]]) {
      const lost = outcomeOf(['token', ...words, '--url', `${url}/nowhere`]);
      await expect(lost).rejects.toThrow('does not answer as a token service does (404)');
    }
    const verify = ['token', 'verify', '--scope', ORDERS, '--token', 'x', '--url', plain.url];
    await expect(outcomeOf(verify)).rejects.toThrow(
      'start it with serve --introspection USER:PASSWORD',
    );
  });
});

describe('an unexpected response of a service', () => {
  it.each([
    [502, {}, '<h1>canary</h1>', 'does not answer as a token service does (502)'],
    [200, {}, 'canary', 'does not answer as a token service does (200)'],
    [200, {}, '{"data":"canary"}', 'does not answer as a token service does (200)'],
    [302, { location: 'http://127.0.0.1:1/canary' }, '', 'cannot be reached, or does not answer'],
    [503, { 'retry-after': '7' }, '{"message":"busy"}', 'with 503: busy; try again in 7 s'],
    [404, {}, '{"message":"x","code":"not_found"}', undefined],
  ])('is recognized and explained: %i %j %s', async (status, headers, body, message) => {
    const server = createServer((_, response) => response.writeHead(status, headers).end(body));
    vi.stubEnv('TOKENWRIGHT_USER', 'ada');
    vi.stubEnv('TOKENWRIGHT_PASSWORD', 'pw');
    const url = `http://127.0.0.1:${await listen(server)}`;

    const outcome = outcomeOf(['token', 'get', '0'.repeat(22), '--url', url]);

    if (message === undefined) return expect(await outcome).toMatchObject({ isNegative: true });
    await expect(outcome).rejects.toThrow(message);
    await expect(outcome).rejects.not.toThrow('canary');
  });
});

describe.skipIf(engines.length === 0).each(engines)('the tokens in %s', (engine) => {
  it('are issued, changed, listed and revoked', async () => {
    const { flags: store } = newStore(engine);
    const { data } = setUp();
    const as = [...store, '--data', data, '--account', 'ada'];
    if (engine === 'postgres' || engine === 'mariadb') {
      await expect(outcomeOf(['token', 'list', ...as])).rejects.toThrow(
        /run tokenwright store migrate with the same --store/,
      );
    }
    await outcomeOf(['store', 'migrate', ...store]);

    const { json: token } = await outcomeOf(['token', 'issue', ...as, '--scope', ORDERS]);
    await outcomeOf(['token', 'modify', token.id, ...as, '--name', 'ci']);
    const { json: listed } = await outcomeOf(['token', 'list', ...as]);
    const { json: revoked } = await outcomeOf(['token', 'revoke', token.id, ...as]);

    expect(listed.tokens).toMatchObject([{ id: token.id, name: 'ci', version: 2 }]);
    expect(revoked).toEqual({ revoked: 1 });
    expect((await outcomeOf(['token', 'list', ...as])).json.tokens).toEqual([]);
  });
});

/** Stands for a file of settings that names a store. */
const CONFIG = 'config';

describe('the location of the tokens', () => {
  const url = ['--url', 'http://127.0.0.1:1'];

  it.each<[string[], NodeJS.ProcessEnv, string]>([
    [['--url', 'http://127.0.0.1:1', '--store', 'sqlite:x'], {}, '--store is for a store'],
    [[...url, '--data', 'x'], {}, '--data is for a store'],
    [[...url, '--keys', 'x'], {}, '--keys is for a store'],
    [['--user', 'ada', '--data', 'x'], {}, '--user needs --url'],
    [[], {}, '--account is required'],
    [
      ['--account', 'ada', '--keys', '/nowhere/keys.json'],
      {},
      'the key file "/nowhere/keys.json" does not exist',
    ],
    [['--account', 'ada', '--store', 'sqlite:/nowhere/a.db'], {}, '/nowhere/a.db does not exist'],
    [['--account', 'ada', '--store', 'sqlite:a.db', '--tables', 'x'], {}, '--tables'],
    [
      [],
      { TOKENWRIGHT_URL: 'http://127.0.0.1:1', TOKENWRIGHT_STORE: 'sqlite:a.db' },
      'lead to two places',
    ],
    [
      [],
      { TOKENWRIGHT_URL: 'http://127.0.0.1:1', TOKENWRIGHT_CONFIG: CONFIG },
      'lead to two places',
    ],
    [[], { TOKENWRIGHT_URL: 'http://127.0.0.1:1' }, '--user (TOKENWRIGHT_USER) is required'],
  ])('cannot be given by %j with the variables %j', async (flags, environment, message) => {
    const { data } = setUp();
    vi.stubEnv('TOKENWRIGHT_DATA', data);
    const config = filesOf({ config: { store: 'sqlite:a.db' } })('config');
    for (const [name, value = ''] of Object.entries(environment)) {
      vi.stubEnv(name, value === CONFIG ? config : value);
    }

    await expect(outcomeOf(['token', 'list', ...flags])).rejects.toThrow(message);
  });

  it('is taken from flags before variables', async () => {
    const { token, data, as } = await withToken();
    vi.stubEnv('TOKENWRIGHT_URL', 'http://127.0.0.1:1');
    const file = ['--store', `sqlite://${join(data, 'tokens.db')}`];

    for (const flags of [as, [...as, ...file]]) {
      expect((await outcomeOf(['token', 'list', ...flags])).json.tokens).toMatchObject([
        { id: token.id },
      ]);
    }
  });
});

describe('invalid arguments of token', () => {
  it.each([
    [['list', '--name', ''], '--name is empty'],
    [['list', '--scope', ''], '--scope is empty'],
    [['issue'], '--scope, --permission or --preset is required'],
    [['issue', '--scope', 'canary'], '--scope must be scopes separated by commas'],
    [['issue', '--scope', ORDERS, '--ttl', '1w'], '--ttl must be whole seconds, or like 90d'],
    [['issue', '--scope', ORDERS, '--ttl', '0'], '--ttl must be'],
    [['issue', '--scope', ORDERS, '--metadata', '[1]'], '--metadata must be a JSON object'],
    [['issue', '--scope', ORDERS, '--reveal', 'never'], '--reveal'],
    [['issue', '--scope', ORDERS, '--catalog', 'x', '--patterns'], 'exclude each other'],
    [['list', '--limit', '0'], '--limit must be a whole number from 1 to 1000000'],
    [['list', '--match', 'all'], '--match must be overlaps, covers or exact'],
    [['list', '--scope', 'get:x'], 'is not a scope: '],
    [['get'], '<ID> is missing; see tokenwright token get --help'],
    [['modify', 'x'], 'nothing to change'],
    [['modify', 'x', '--ttl', '1', '--expire', '2027-01-01'], 'give only one of them'],
    [['modify', 'x', '--expire', '1.1.2027'], '--expire must be like 2027-01-31'],
    [['modify', 'x', '--expire', '2027-13-01'], '--expire must be like 2027-01-31'],
    [['modify', 'x', '--expire', '2027-02-30'], '--expire must be like 2027-01-31'],
    [['modify', 'x', '--expire', '2027-01-31T12:00'], '--expire must be like 2027-01-31'],
    [['modify', 'x', '--ttl', '1', '--if-version', '0'], '--if-version must be a whole number'],
    [['modify', 'x', '--add-scope', '*:*/*'], 'has a wildcard'],
    [['revoke'], 'either <ID>, --all or --created-by'],
    [['revoke', 'x', '--all'], 'either <ID>, --all or --created-by'],
    [['revoke', 'x', '--created-by', 'ann'], 'either <ID>, --all or --created-by'],
    [['revoke', 'x', '--dry-run'], '--dry-run needs --all or --created-by'],
    [['list', '--created-by', ''], '--created-by is empty'],
    [['revoke', '--all', '--if-version', '1'], '--if-version needs <ID>'],
    [['revoke', 'x', 'y'], 'unexpected argument after <ID>'],
    [['rotate', 'x', '--grace', 'soon'], '--grace must be'],
    [['rotate', 'x', '--activate', 'now'], '--activate must be first-use'],
    [['rotate', 'x', '--cancel', '--grace', '1h'], '--cancel makes no new value'],
    [['rotate', 'x', '--cancel', '--activate', 'first-use'], '--cancel makes no new value'],
    [['verify', '--scope', ORDERS, '--token', ''], '--token is empty'],
    [['verify', '--token', 'x'], 'either <METHOD> and <URL> or --scope'],
    [['verify', 'GET', '--token', 'x'], 'either <METHOD> and <URL> or --scope'],
    [
      ['verify', 'GET', 'shop.example/x', '--token', 'x'],
      '<URL> must be a full URL, such as https://',
    ],
    [
      ['verify', 'GET', 'https://a:b@c/x', '--token', 'x'],
      '<URL> must be a full URL, such as https://',
    ],
    [['verify', 'GET', 'https://a/x', '--scope', ORDERS, '--token', 'x'], 'either <METHOD>'],
    [['issue', '--scop', ORDERS], 'has no flag --scop; did you mean --scope? See'],
    [['issue', '--password', 'canary'], 'has no flag --password: the password has no flag'],
  ])('are refused: %j', async (words, message) => {
    const { as, flags } = setUp();
    const where = words[0] === 'verify' ? flags : as;

    const outcome = outcomeOf(['token', ...words, ...where]);

    await expect(outcome).rejects.toThrow(message);
    await expect(outcome).rejects.not.toThrow(/canary\b(?!")|\n/);
  });
});

describe('the output of token', () => {
  it('shows the secret of a value exactly once, alone on standard output', async () => {
    const { data } = setUp();
    const as = `--data ${data} --account ada`;
    const line = `T=$(tokenwright token issue ${as} --scope ${ORDERS}) && echo "<$T>" &&
      tokenwright token list ${as} && tokenwright token get "$(echo "$T" | cut -c7-28)" ${as} &&
      tokenwright token modify "$T" ${as} --name x --json && tokenwright token revoke - ${as} <<< "$T"`;

    const { stdout, stderr, code } = await runInShell(line);
    const [, value = ''] = /^<(.+)>$/m.exec(stdout) ?? [];

    expect(code).toBe(0);
    expect(value).toMatch(VALUE);
    expect((stdout + stderr).split(secretIn(value))).toHaveLength(2);
  });

  it('names the id of a new token even if its value cannot be written', async () => {
    const { data } = setUp();
    const as = `--data ${data} --account ada`;

    const full = await runInShell(`tokenwright token issue ${as} --scope ${ORDERS} > /dev/full`);
    const { json } = await outcomeOf(['token', 'list', '--data', data, '--account', 'ada']);

    expect(full.code).toBe(1);
    expect(full.stderr).toContain(`id       ${json.tokens[0].id}\n`);
    expect(full.stderr).toMatch(/\ntokenwright: .*ENOSPC.*\n$/);
    expect(full.stderr).not.toMatch(/tw_1k1[0-9A-Za-z]{55}/);
  });

  it('ends quietly if the reader closes the pipe', async () => {
    const { tokens, data } = setUp();
    for (let i = 0; i < 500; i++) {
      await tokens.issue({ account: 'ada', scopes: [`${ORDERS}/${'long-'.repeat(40)}${i}`] });
    }
    const list = `tokenwright token list --data ${data} --account ada`;

    expect(await runInShell(`${list} 2>&1 | head -1; echo "$PIPESTATUS"`)).toMatchObject({
      stdout: expect.stringMatching(/^ID .*\n0\n$/),
      stderr: '',
    });
  });

  it('fits a terminal of 80 columns', async () => {
    const { tokens, data } = setUp();
    await tokens.issue({
      account: 'ada',
      scopes: [`${ORDERS}/${'x'.repeat(200)}`],
      name: 'n'.repeat(60),
    });
    const inner = `"$NODE" "$MAIN" token list --data ${data} --account ada`;

    const { stdout } = await runInShell(`script -qc 'stty cols 80; ${inner}' /dev/null`);

    const lines = stdout.trimEnd().split('\r\n');
    expect(lines).toHaveLength(3);
    for (const line of lines.slice(0, 2)) expect(line.length).toBeLessThanOrEqual(80);
    expect(lines[1]).toMatch(/^\w{22} {2}in 12 months {2}n{19}… {2}GET:.*…$/);
  });

  it('replaces control characters in a name', async () => {
    const { token, as } = await withToken();

    const shown = await outcomeOf(['token', 'modify', token.id, ...as, '--name', 'a\u202eb']);

    expect(shown.text).toContain('name     a?b');
  });
});

describe('the help examples for token', () => {
  it('print the output that they show, in order', async () => {
    const folder = newFolder();
    const [data, file] = [join(folder, 'data'), join(folder, 'value.txt')];
    makeFolder(data);
    const { tokens } = setUp(data);
    const example = (verb: string) => exampleOf(`token ${verb}`);
    const play = async (call: string, id: string): Promise<Run> =>
      runInShell(`cd "$1" && tokenwright ${call.replace('7f3kQwB2mN8xR4tY6uZ1aC', id)}`, folder);

    const issued = await play(example('issue').call, '');
    writeFileSync(file, issued.stdout);
    const [{ id } = { id: '' }] = (await tokens.list({ account: 'ada' })).tokens;

    expect(plain(issued)).toBe(plain({ stdout: `${example('issue').output}\n`, stderr: '' }));
    for (const name of [
      'list',
      'get',
      'modify',
      'verify',
      'rotate',
      // Later, a rotation would also tell of this one. The old value has its grace.
      'derive',
      'suspend',
      'resume',
      'revoke',
    ]) {
      const ended = await play(example(name).call, id);
      expect([name, plain(ended)]).toEqual([
        name,
        plain({ stdout: `${example(name).output}\n`, stderr: '' }),
      ]);
    }
  });
});

/** Replaces values, ids and times, which differ in each run. */
function plain({ stdout, stderr }: Pick<Run, 'stdout' | 'stderr'>): string {
  return (stdout + stderr)
    .replaceAll(/tw_1k1\w+…?/g, '<value>')
    .replaceAll(/\b\w{22}\b/g, '<id>')
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, '<time>');
}

/** The secret part of a value. */
function secretIn(value: string): string {
  return value.slice('tw_1k1'.length + 22, -6);
}

/** A store like that of serve, and the flags to use it. */
function setUp(data = newFolder()) {
  const tokens = serviceOn(data);
  const flags = ['--data', data];
  return { data, tokens, flags, as: [...flags, '--account', 'ada'] };
}

/** A running service with the account `ada` and the resource server `rs`. */
async function served() {
  const catalog = [BILLS, ORDERS];
  const tokens = new TokenService({
    store: new MemoryTokenStore(),
    keys: [generateKey()],
    prefix: 'tw',
    catalog: ScopeCatalog.from(catalog),
    reveal: 'always',
  });
  const handler = tokenHandler({
    tokens,
    authenticate: fixedAccounts([{ username: 'ada', password: 'pw' }]),
    basePath: '/auth',
    pathTokens: 'id-only',
    introspection: { authenticate: fixedAccounts([{ username: 'rs', password: 'pw' }]) },
  });
  const port = await listen(createServer(toNodeListener(handler)));
  const url = `http://127.0.0.1:${port}/auth`;
  const ask = (words: readonly string[], user = 'ada', environment: NodeJS.ProcessEnv = {}) => {
    const variables = { TOKENWRIGHT_USER: user, TOKENWRIGHT_PASSWORD: 'pw', ...environment };
    for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
    return outcomeOf(['token', ...words, '--url', url]);
  };
  return { url, ask, catalog };
}

/** Like `setUp`, with a token in the store. */
async function withToken(): Promise<
  ReturnType<typeof setUp> & { token: Token & { value: string } }
> {
  const setting = setUp();
  return { ...setting, token: await setting.tokens.issue({ account: 'ada', scopes: [ORDERS] }) };
}
