import {
  chmodSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Audit, fileSink } from '../../../../src/app/server/logs/audit.ts';
import type { SignIn } from '../../../../src/http/index.ts';
import type { TokenEvent } from '../../../../src/index.ts';
import { ACCOUNT, call, newFolder, newLog, run, serve } from '../../cli/support.ts';

const ID = '7f3kQwB2mN8xR4tY6uZ1aC';

function setUp() {
  const { clock, texts, write, take } = newLog();
  const audit = new Audit({ write, close: async () => {} });
  audit.addUsers([{ username: 'ada' }, { username: 'shop' }]);
  const signIn = (given: Partial<SignIn> = {}) =>
    audit.recordSignIn({
      outcome: 'refused',
      username: 'ada',
      address: '192.0.2.1',
      at: clock.now(),
      ...given,
    });
  const accepted = (account: string, address = '192.0.2.1') =>
    signIn({ outcome: 'accepted', username: account, account, address });
  const takeLines = () => take().map((text) => JSON.parse(text));
  return { clock, audit, signIn, accepted, take: takeLines, texts };
}

describe('the audit log', () => {
  it.each<[SignIn['outcome'], string]>([
    ['refused', 'sign_in_refused'],
    ['limited', 'sign_in_limited'],
    ['unavailable', 'sign_in_unavailable'],
  ])('records a sign-in with the outcome %s', (outcome, event) => {
    const { signIn, take, clock } = setUp();

    signIn({ outcome });

    const at = clock.now().toISOString();
    expect(take()).toEqual([{ at, event, user: 'ada', address: '192.0.2.1' }]);
  });

  it('records an accepted sign-in by its account', () => {
    const { accepted, signIn, take, clock } = setUp();

    accepted('ada');
    signIn({ outcome: 'accepted', username: 'shop', account: 'shop', address: undefined as never });

    const at = clock.now().toISOString();
    expect(take()).toEqual([
      { at, event: 'signed_in', account: 'ada', address: '192.0.2.1' },
      { at, event: 'signed_in', account: 'shop' },
    ]);
  });

  it.each([
    ['ada', 'ada'],
    ['shop', 'shop'],
    ['correct-horse', null],
    ['Ada', null],
    ['__proto__', null],
    ['', null],
  ])(
    'records the user %j of a failed sign-in as %j, since an unknown name may be a password',
    (username, user) => {
      const { signIn, take } = setUp();

      signIn({ username });

      expect(take()).toMatchObject([{ user }]);
    },
  );

  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['192.0.2.1:4711', '192.0.2.1:4711'],
    ['[2001:db8::1]:4711', '[2001:db8::1]:4711'],
    ['fe80::1%eth0', 'fe80::1%eth0'],
    ['Basic YWRhOmNhbmFyeQ==', null],
    ['192.0.2.1\n{"event":"signed_in"}', null],
    ['1'.repeat(101), null],
    ['', null],
  ])('records the address %j as %j', (address, expected) => {
    const { signIn, take } = setUp();

    signIn({ address });

    expect(take()).toMatchObject([{ address: expected }]);
  });

  it('records accepted sign-ins of an account from one address once in 60 seconds', () => {
    const { accepted, take, clock } = setUp();
    const accounts = () => take().map(({ account, address }) => [account, address]);

    for (let i = 0; i < 5; i++) accepted('ada');
    accepted('shop');
    accepted('ada', '192.0.2.2');
    expect(accounts()).toEqual([
      ['ada', '192.0.2.1'],
      ['shop', '192.0.2.1'],
      ['ada', '192.0.2.2'],
    ]);
    clock.advance(59.999);
    accepted('ada');
    expect(accounts()).toEqual([]);
    clock.advance(0.001);
    accepted('ada');
    expect(accounts()).toEqual([['ada', '192.0.2.1']]);
  });

  it('remembers 10 000 accepted sign-ins and evicts the oldest first', () => {
    const { accepted, take } = setUp();

    for (let i = 0; i < 10_000; i++) accepted('ada', String(i));
    expect(take()).toHaveLength(10_000);
    accepted('ada', '0');
    accepted('ada', '9999');
    expect(take()).toEqual([]);
    accepted('ada', '10000');
    expect(take()).toHaveLength(1);
    accepted('ada', '1');
    expect(take()).toEqual([]);
    accepted('ada', '0');
    expect(take()).toHaveLength(1);
  });

  it('records 50 failures per second, then how many it left out', async () => {
    const { signIn, accepted, audit, take, clock } = setUp();
    const flood = (count: number) => {
      for (let i = 0; i < count; i++) signIn({ outcome: i % 2 === 0 ? 'refused' : 'limited' });
    };

    flood(50);
    expect(take()).toHaveLength(50);
    flood(1000);
    expect(take()).toEqual([]);
    accepted('ada');
    expect(take()).toMatchObject([{ event: 'signed_in' }]);
    clock.advance(1);
    expect(take()).toEqual([
      { at: clock.now().toISOString(), event: 'sign_ins_left_out', count: 1000 },
    ]);
    flood(51);
    expect(take()).toHaveLength(50);
    await audit.close();
    expect(take()).toMatchObject([{ event: 'sign_ins_left_out', count: 1 }]);
  });

  it('records changes and revealed values, but not each use of a token', () => {
    const { audit, take, clock } = setUp();
    const at = clock.now();
    const about = { id: ID, account: 'ada', at } as const;
    const events = [
      { type: 'issued', ...about },
      { type: 'verified', grantedBy: 'GET:a.example/x', ...about },
      { type: 'refused', reason: 'unknown', at },
      { type: 'revealed', account: 'ada', count: 7, at },
      { type: 'revoked_all', account: 'ada', count: 2, at },
      { type: 'purged', count: 3, at },
      { type: 'store_trouble', code: 'store_unavailable', at },
    ] as unknown as TokenEvent[];

    for (const event of events) audit.recordEvent(event);

    const time = at.toISOString();
    expect(take()).toEqual([
      { at: time, event: 'issued', id: ID, account: 'ada' },
      { at: time, event: 'revealed', account: 'ada', count: 7 },
      { at: time, event: 'revoked_all', account: 'ada', count: 2 },
      { at: time, event: 'purged', count: 3 },
      { at: time, event: 'store_trouble', code: 'store_unavailable' },
    ]);
  });

  it.each(['reused', 'store_trouble'] as const)(
    'records 50 %s events per second, then how many it left out',
    (type) => {
      const { audit, take, clock } = setUp();
      const about = { id: ID, account: 'ada', code: 'store_corrupt', at: clock.now() };

      for (let i = 0; i < 60; i++) audit.recordEvent({ type, ...about } as unknown as TokenEvent);
      expect(take()).toHaveLength(50);
      clock.advance(1);
      expect(take()).toMatchObject([{ event: 'events_left_out', count: 10 }]);
    },
  );

  it('replaces control characters, so that each entry stays on one line', () => {
    const { audit, texts, clock } = setUp();
    const account = 'a\u0085b\u2028c\u202ed\ne';

    audit.recordEvent({ type: 'revealed', account, count: 1, at: clock.now() } as TokenEvent);

    expect(texts).toEqual([expect.stringContaining('"account":"a?b?c?d?e"')]);
  });
});

describe('fileSink', () => {
  it('appends to its file, even after another process has appended', async () => {
    const path = join(newFolder(), 'lines');
    const sink = await fileSink(path);

    await sink.write('a\n');
    writeSync(openSync(path, 'a'), 'b\n');
    await sink.write('c\n');
    await sink.close();

    expect(readFileSync(path, 'utf8')).toBe('a\nb\nc\n');
  });
});

describe('serve --audit', () => {
  const body = { scopes: ['*:*/*'] };
  const linesOf = (text: string) =>
    text
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));

  it('appends to a file for its owner only, and has written everything when it stops', async () => {
    const folder = newFolder();
    const file = join(folder, 'audit.jsonl');
    const args = ['--data', join(folder, 'data'), ...ACCOUNT, '--audit', file];
    const first = await serve(args);
    const { body: token } = await call(first, '/token', { method: 'POST', body });
    await call(first, `/token/${token.id}/rotate`, { method: 'POST', body: {} });
    expect(await first.stop()).toMatchObject({ code: 0, stderr: '' });
    const second = await serve(args);
    await call(second, `/token/${token.id}`, { method: 'DELETE' });
    await second.stop();

    const text = readFileSync(file, 'utf8');
    const written = linesOf(text).filter(({ id }) => id === token.id);
    const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(written).toEqual(
      ['issued', 'rotated', 'revoked'].map((event) => ({
        at,
        event,
        id: token.id,
        account: 'ada',
      })),
    );
    expect(text.endsWith('\n')).toBe(true);
    expect(text).not.toContain(token.token);
    expect(text).not.toContain('correct-horse');
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('records accepted and failed sign-ins without passwords', async () => {
    const file = join(newFolder(), 'audit.jsonl');
    const flags = ['--client-header', 'X-Real-IP', '--introspection', 'shop:battery-staple'];
    const service = await serve(['--data', newFolder(), ...ACCOUNT, ...flags, '--audit', file]);
    const signIn = (as: string, path = '/scopes', body?: URLSearchParams) =>
      fetch(service.url + path, {
        ...(body && { method: 'POST', body }),
        headers: { authorization: `Basic ${btoa(as)}`, 'x-real-ip': '192.0.2.1:4711' },
      }).then(({ status }) => status);

    expect(await signIn('ada:correct-horse')).toBe(200);
    expect(await signIn('ada:correct-horse')).toBe(200);
    expect(await signIn('ada:canary-1')).toBe(401);
    expect(await signIn('canary-2:ada')).toBe(401);
    const form = new URLSearchParams({ token: 'x' });
    expect(await signIn('shop:battery-staple', '/introspect', form)).toBe(200);
    const guesses = Array.from({ length: 100 }, () => signIn('ada:canary-3'));
    expect(await Promise.all(guesses)).toContain(429);
    await service.stop();

    const text = readFileSync(file, 'utf8');
    const written = linesOf(text).map(({ at: _, ...line }) => line);
    const address = '192.0.2.1';
    expect(written.slice(0, 4)).toEqual([
      { event: 'signed_in', account: 'ada', address },
      { event: 'sign_in_refused', user: 'ada', address },
      { event: 'sign_in_refused', user: null, address },
      { event: 'signed_in', account: 'shop', address },
    ]);
    const failures = written.slice(4);
    expect(failures).toContainEqual({ event: 'sign_in_refused', user: 'ada', address });
    const leftOut = failures.map(({ event, count }) => (event === 'sign_ins_left_out' ? count : 1));
    expect(leftOut.reduce((sum, count) => sum + count, 0)).toBe(100);
    expect(text).not.toContain('canary');
    expect(text).not.toContain('staple');
  });

  it('records when values are shown', async () => {
    const file = join(newFolder(), 'audit.jsonl');
    const service = await serve(['--data', newFolder(), ...ACCOUNT, '--audit', file]);
    await call(service, '/token', { method: 'POST', body });
    await call(service, '/token', { method: 'POST', body });
    await call(service, '/token');
    await service.stop();

    expect(linesOf(readFileSync(file, 'utf8'))).toContainEqual(
      expect.objectContaining({ event: 'revealed', account: 'ada', count: 2 }),
    );
  });

  it('writes to standard output if the variable is "-"', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT], { TOKENWRIGHT_AUDIT: '-' });
    const { body: token } = await call(service, '/token', { method: 'POST', body });
    const { stdout } = await service.stop();

    expect(linesOf(stdout)).toContainEqual(
      expect.objectContaining({ event: 'issued', id: token.id }),
    );
  });

  it.skipIf(!existsSync('/dev/full'))(
    'keeps serving if the disk is full, and warns once',
    async () => {
      const service = await serve(['--data', newFolder(), ...ACCOUNT, '--audit', '/dev/full']);
      for (let i = 0; i < 5; i++) {
        expect((await call(service, '/token', { method: 'POST', body })).status).toBe(200);
      }
      const { code, stderr } = await service.stop();

      expect(code).toBe(0);
      expect(stderr).toBe(
        'tokenwright: warning: the audit log cannot be written to /dev/full (ENOSPC); its lines are lost until it can be\n',
      );
    },
  );

  it('does not start if the file cannot be opened', async () => {
    const folder = newFolder();
    mkdirSync(join(folder, 'a'));

    for (const [path, code] of [
      [join(folder, 'nowhere', 'audit'), 'ENOENT'],
      [join(folder, 'a'), 'EISDIR'],
    ]) {
      const args = ['--data', join(folder, 'data'), '--port', '0', '--audit', path ?? ''];
      expect(await run(['serve', ...args])).toEqual({
        code: 1,
        stdout: '',
        stderr: `tokenwright: ${path} cannot be opened for --audit (TOKENWRIGHT_AUDIT): ${code}\n`,
      });
    }
    expect(existsSync(join(folder, 'data', 'account.json'))).toBe(false);
  });

  it('appends to an existing file and keeps its permissions', async () => {
    const file = join(newFolder(), 'audit.jsonl');
    writeFileSync(file, '{"kept":true}\n');
    chmodSync(file, 0o640);
    const service = await serve(['--data', newFolder(), ...ACCOUNT, '--audit', file]);
    await call(service, '/token', { method: 'POST', body });
    await service.stop();

    expect(linesOf(readFileSync(file, 'utf8'))[0]).toEqual({ kept: true });
    expect(linesOf(readFileSync(file, 'utf8')).length).toBeGreaterThan(1);
    expect(statSync(file).mode & 0o777).toBe(0o640);
  });
});
