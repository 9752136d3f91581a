import { randomBytes, scryptSync } from 'node:crypto';
import { inspect } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { fixedAccounts, hashPassword } from '../../../src/http/index.ts';
import { accountsIn } from '../../../src/http/sign-in/basic-auth.ts';
import { PasswordQueue } from '../../../src/http/sign-in/password-queue.ts';
import { manualClock } from '../../../src/testing/index.ts';
import { basic, CANARY, expectFailure, setUp } from '../support.ts';
import { watchScrypt } from './scrypt.ts';

type Authentication = ReturnType<typeof fixedAccounts>;

const ADA = { username: 'ada', password: 'correct horse' };
const HASH = hashPassword(ADA.password);
/** The same account with a ready hash, which saves the time of hashing. */
const HASHED = { username: ADA.username, passwordHash: HASH };

/** Whether an answer comes from memory: scrypt, in another thread, takes longer than a turn. */
async function isRemembered(authenticate: Authentication, credentials = ADA): Promise<boolean> {
  const answer = authenticate(credentials).then(() => true);
  const isFirst = await Promise.race([answer, new Promise((resolve) => setImmediate(resolve))]);
  await answer;
  return isFirst === true;
}

describe('fixedAccounts', () => {
  it.each<[string, string, string, string | null]>([
    ['the right password', 'ada', 'correct horse', 'ada'],
    ['a wrong password', 'ada', 'wrong', null],
    ['no password', 'ada', '', null],
    ['one character more', 'ada', 'correct horsex', null],
    ['one character less', 'ada', 'correct hors', null],
    ['another case', 'ada', 'Correct horse', null],
    ['a trailing space', 'ada', 'correct horse ', null],
    ['the password of another user', 'ada', 'pa:ss:', null],
    ['a password with colons', 'bob', 'pa:ss:', 'acme'],
    ['a password with fewer colons', 'bob', 'pa:ss', null],
    ['the account instead of the name', 'acme', 'pa:ss:', null],
    ['a password in any script', 'ädä', 'пароль 😀', 'ädä'],
    ['a part of that password', 'ädä', 'пароль ', null],
    ['the password of a stored hash', 'eve', 'hashed', 'eve'],
    ['a wrong password for a stored hash', 'eve', 'Hashed', null],
    ['the hash as a password', 'eve', hashPassword('hashed'), null],
    ['a short password', 'kim', ' ', 'kim'],
    ['a long password', 'lee', 'x'.repeat(2000), 'acme'],
    ['a long password with a different end', 'lee', `${'x'.repeat(1999)}y`, null],
    ['an unknown user', 'eva', 'hashed', null],
    ['a user in another case', 'Ada', 'correct horse', null],
    ['an empty user', '', 'correct horse', null],
    ['an empty user and password', '', '', null],
    ['a name of Object.prototype', 'constructor', 'correct horse', null],
    ['__proto__', '__proto__', 'correct horse', null],
  ])('accepts only right credentials: %s (user "%s")', async (_, username, password, account) => {
    expect(await list()({ username, password })).toBe(account);
  });

  it.each<[string, unknown]>([
    ['no list', undefined],
    ['null', null],
    ['an object', { ada: 'x' }],
    ['an empty list', []],
    ['an entry that is null', [null]],
    ['an entry that is undefined', [HASHED, undefined]],
    ['an entry that is a text', [`ada:${CANARY}`]],
    ['an entry without a name', [{ password: CANARY }]],
    ['an empty name', [{ username: '', password: CANARY }]],
    ['a name with a colon', [{ username: 'a:b', password: CANARY }]],
    ['a name with a control character', [{ username: 'a\nb', password: CANARY }]],
    ['a name with a lone surrogate', [{ username: 'a\ud800', password: CANARY }]],
    ['a name of 256 bytes', [{ username: 'ä'.repeat(128), password: CANARY }]],
    ['a name that is not a text', [{ username: 1, password: CANARY }]],
    ['a repeated name', [HASHED, { username: 'ada', password: CANARY }]],
    ['a repeated name with the same account', [HASHED, { username: 'ada', passwordHash: HASH }]],
    ['no password', [{ username: 'ada' }]],
    ['an empty password', [{ username: 'ada', password: '' }]],
    ['a password that is not a text', [{ username: 'ada', password: 1234 }]],
    ['a password that is null', [{ username: 'ada', password: null }]],
    ['a password with a line break', [{ username: 'ada', password: `${CANARY}\n` }]],
    ['both a password and a hash', [{ username: 'ada', password: CANARY, passwordHash: HASH }]],
    ['an empty hash', [{ username: 'ada', passwordHash: '' }]],
    ['a password as a hash', [{ username: 'ada', passwordHash: CANARY }]],
    ['a hash that is null', [{ username: 'ada', passwordHash: null }]],
    ['a truncated hash', [{ username: 'ada', passwordHash: HASH.slice(0, -1) }]],
    ['a hash with trailing text', [{ username: 'ada', passwordHash: `${HASH}=` }]],
    ['a hash with a line break', [{ username: 'ada', passwordHash: `${HASH}\n` }]],
    ['a cheaper hash', [{ username: 'ada', passwordHash: HASH.replace('ln=14', 'ln=10') }]],
    ['a hash of another kind', [{ username: 'ada', passwordHash: `$2b$10$${CANARY}` }]],
    ['an empty account', [{ ...ADA, account: '' }]],
    ['an account with a control character', [{ ...ADA, account: 'a\u0000' }]],
    ['an account of 256 bytes', [{ ...ADA, account: 'a'.repeat(256) }]],
    ['an account that is null', [{ ...ADA, account: null }]],
  ])('refuses %s and does not show it', (_, accounts) => {
    const error = thrownBy(() => fixedAccounts(accounts as never));

    expect(error).toMatchObject({ name: 'TokenError', code: 'invalid_options' });
    const shown = inspect(error, { depth: 9, showHidden: true });
    expect(shown).not.toContain(CANARY);
    expect(shown).not.toContain(ADA.password);
  });

  it.each<[string, object]>([
    ['accounts[1].password', { username: 'bob', password: '' }],
    ['accounts[1].passwordHash', { username: 'bob', passwordHash: `x${HASH}` }],
  ])('names %s when it is wrong', (field, account) => {
    const error = thrownBy(() => fixedAccounts([HASHED, account] as never));

    expect(error).toMatchObject({ message: expect.stringContaining(`${field} must be`) });
  });

  it('refuses an onRenew that is not a function', () => {
    expect(thrownBy(() => fixedAccounts([HASHED], { onRenew: true } as never))).toMatchObject({
      code: 'invalid_options',
    });
  });

  it('accepts a name and an account of 255 bytes', async () => {
    const username = 'ä'.repeat(127);
    const account = 'a'.repeat(255);
    const authenticate = fixedAccounts([{ username, password: 'x', account }]);

    expect(await authenticate({ username, password: 'x' })).toBe(account);
  });

  it('lets two users share an account with separate passwords', async () => {
    const accounts = ['a', 'b'].map((name) => ({ username: name, password: name, account: 'c' }));
    const authenticate = fixedAccounts(accounts);

    for (const username of ['a', 'b']) {
      expect(await authenticate({ username, password: username })).toBe('c');
      expect(await authenticate({ username, password: username === 'a' ? 'b' : 'a' })).toBe(null);
    }
  });

  it('is not affected by later changes to the list', async () => {
    const entry = { ...ADA };
    const accounts = [entry];
    const authenticate = fixedAccounts(accounts);

    entry.password = 'changed';
    accounts.length = 0;

    expect(await authenticate(ADA)).toBe('ada');
    expect(await authenticate({ ...ADA, password: 'changed' })).toBe(null);
  });

  it('does not reveal a password when it is printed', async () => {
    const authenticate = fixedAccounts([{ username: 'ada', password: CANARY }]);
    await authenticate({ username: 'ada', password: CANARY });

    const shown = inspect(authenticate, { depth: 9, showHidden: true });

    expect(shown).not.toContain(CANARY);
    expect(JSON.stringify({ authenticate })).toBe('{}');
  });

  it('authenticates the calls of a service', async () => {
    const { call, issue } = setUp({ authenticate: list() });
    const { id } = await issue('acme');
    const as = (name: string, password: string) => ({
      headers: { authorization: basic(name, password) },
    });

    expect(await call('GET', `/token/${id}`, as('bob', 'pa:ss:'))).toMatchObject({ status: 200 });
    expectFailure(await call('GET', `/token/${id}`, as('ädä', 'пароль 😀')), 'not_found');
    for (const [name, password] of [
      ['bob', 'pa:ss'],
      ['acme', 'pa:ss:'],
      ['', 'pa:ss:'],
      ['bob', ''],
    ] as const) {
      expectFailure(await call('GET', `/token/${id}`, as(name, password)), 'unauthenticated');
    }
  });
});

describe('a correct password', () => {
  it('is remembered for exactly sixty seconds', async () => {
    const clock = manualClock();
    const authenticate = fixedAccounts([HASHED], { clock });

    expect(await isRemembered(authenticate)).toBe(false);
    expect(await isRemembered(authenticate)).toBe(true);
    clock.advance(59.999);
    expect(await isRemembered(authenticate)).toBe(true);
    clock.advance(0.001);
    expect(await isRemembered(authenticate)).toBe(false);
    expect(await isRemembered(authenticate)).toBe(true);
  });

  it('is not remembered longer when it is used', async () => {
    const clock = manualClock();
    const authenticate = fixedAccounts([HASHED], { clock });
    await authenticate(ADA);

    for (let second = 0; second < 59; second++) {
      clock.advance(1);
      expect(await isRemembered(authenticate)).toBe(true);
    }
    clock.advance(1);
    expect(await isRemembered(authenticate)).toBe(false);
  });

  it('stays remembered after wrong passwords, which are still refused', async () => {
    const authenticate = fixedAccounts([HASHED], { clock: manualClock() });
    await authenticate(ADA);

    for (const password of ['', 'wrong', `${ADA.password} `]) {
      expect(await authenticate({ ...ADA, password })).toBe(null);
      expect(await isRemembered(authenticate, { ...ADA, password })).toBe(false);
    }
    expect(await isRemembered(authenticate)).toBe(true);
  });

  it('is remembered only for its own user', async () => {
    const accounts = ['ada', 'bob'].map((username) => ({ ...HASHED, username }));
    const authenticate = fixedAccounts(accounts, { clock: manualClock() });
    await authenticate(ADA);

    expect(await isRemembered(authenticate, { ...ADA, username: 'eve' })).toBe(false);
    expect(await isRemembered(authenticate, { ...ADA, username: 'bob' })).toBe(false);
    expect(await isRemembered(authenticate, { ...ADA, username: 'bob' })).toBe(true);
  });

  it('is hashed again by another list', async () => {
    const clock = manualClock();
    await fixedAccounts([HASHED], { clock })(ADA);

    expect(await isRemembered(fixedAccounts([HASHED], { clock }))).toBe(false);
  });
});

describe('many concurrent calls', () => {
  it('share one hash per user and password', async () => {
    const scrypt = watchScrypt();
    const check = fixedAccounts([HASHED, { username: 'bob', password: 'battery staple' }]);
    const ten = (username: string, password: string) =>
      Array.from({ length: 10 }, () => check({ username, password }));

    const answers = await Promise.all([
      ...ten('ada', 'correct horse'),
      ...ten('ada', 'battery staple'),
      ...ten('bob', 'correct horse'),
      ...ten('eve', 'correct horse'),
    ]);

    expect(answers).toEqual([
      ...Array(10).fill('ada'),
      ...Array(10).fill(null),
      ...Array(10).fill(null),
      ...Array(10).fill(null),
    ]);
    expect(scrypt).toHaveBeenCalledTimes(4);
    expect(await check({ username: 'ada', password: 'battery staple' })).toBeNull();
    expect(scrypt).toHaveBeenCalledTimes(5);
  });
});

describe('a hash of an earlier version', () => {
  /** A hash with p = 1. */
  const old = () => {
    const salt = randomBytes(16);
    const hash = scryptSync(ADA.password, salt, 32, { N: 16_384, r: 8, p: 1 });
    return `$scrypt$ln=14,r=8,p=1$${salt.toString('base64url')}$${hash.toString('base64url')}`;
  };

  /** A list with an old hash, and a promise of the renewed one. */
  function renewing() {
    const renewal = Promise.withResolvers<readonly [username: string, passwordHash: string]>();
    const onRenew = vi.fn((...args: [string, string]) => renewal.resolve(args));
    const clock = manualClock();
    const accounts = [{ username: 'ada', passwordHash: old() }];
    return {
      clock,
      onRenew,
      renewed: renewal.promise,
      check: fixedAccounts(accounts, { clock, onRenew }),
    };
  }

  it('is accepted, and renewed once for many concurrent calls', async () => {
    const { check, onRenew, renewed } = renewing();

    const answers = await Promise.all(Array.from({ length: 10 }, () => check(ADA)));
    const [username, passwordHash] = await renewed;

    expect(answers).toEqual(Array(10).fill('ada'));
    expect(onRenew).toHaveBeenCalledTimes(1);
    expect(username).toBe('ada');
    expect(passwordHash).toMatch(/^\$scrypt\$ln=14,r=8,p=5\$[\w-]{22}\$[\w-]{43}$/);
    const kept = fixedAccounts([{ username: 'ada', passwordHash }]);
    expect(await kept(ADA)).toBe('ada');
    expect(await kept({ ...ADA, password: 'wrong' })).toBeNull();
  });

  it('is replaced in memory, too', async () => {
    const { check, clock, renewed } = renewing();
    await check(ADA);
    await renewed;
    clock.advance(60);
    const scrypt = watchScrypt();

    expect(await check(ADA)).toBe('ada');
    expect(await check({ ...ADA, password: 'wrong' })).toBeNull();

    expect(workOf(scrypt)).toEqual([5, 5]);
  });

  it('is not renewed by a wrong password', async () => {
    const { check, onRenew } = renewing();

    expect(await check({ ...ADA, password: 'wrong' })).toBeNull();
    expect(await check({ username: 'eve', password: ADA.password })).toBeNull();

    expect(onRenew).not.toHaveBeenCalled();
  });

  it('is still accepted when onRenew throws', async () => {
    const renewal = Promise.withResolvers<void>();
    const onRenew = () => {
      renewal.resolve();
      throw new Error('read-only file system');
    };
    const check = fixedAccounts([{ username: 'ada', passwordHash: old() }], { onRenew });

    expect(await check(ADA)).toBe('ada');
    await renewal.promise;

    expect(await check(ADA)).toBe('ada');
  });

  it('differs from a current hash, which is not renewed', async () => {
    const onRenew = vi.fn();
    const clock = manualClock();
    const check = fixedAccounts([HASHED], { clock, onRenew });
    const scrypt = watchScrypt();

    expect(await check(ADA)).toBe('ada');
    clock.advance(60);
    expect(await check(ADA)).toBe('ada');

    expect(workOf(scrypt)).toEqual([5, 5]);
    expect(onRenew).not.toHaveBeenCalled();
  });

  it('costs a wrong password as much work as a current hash or an unknown user', async () => {
    const accounts = [
      { username: 'old', passwordHash: old() },
      { ...HASHED, username: 'new' },
    ];
    const check = fixedAccounts(accounts);
    const scrypt = watchScrypt();
    const work: number[][] = [];

    for (const username of ['old', 'new', 'unknown']) {
      expect(await check({ username, password: 'wrong' })).toBeNull();
      work.push(workOf(scrypt));
      scrypt.mockClear();
    }

    expect(work).toEqual([[1, 4], [5], [5]]);
  });

  /** The `p` of each scrypt call; expects all other parameters to be the same. */
  function workOf(scrypt: ReturnType<typeof watchScrypt>): number[] {
    return scrypt.mock.calls.map(([, , length, { N, r, p = 0 }]) => {
      expect([length, N, r]).toEqual([32, 16_384, 8]);
      return p;
    });
  }
});

describe('a password whose hash takes long', () => {
  it.each([
    [30_000, true],
    [30_001, false],
  ])('is accepted and remembered after %s ms: %s', async (ms, isInTime) => {
    const time = { ms: 0 };
    const queue = new PasswordQueue({ now: () => time.ms });
    const accounts = [HASHED];
    const authenticate = accountsIn(queue, accounts, { clock: manualClock() });

    const answer = authenticate(ADA).catch(({ code }) => code);
    time.ms = ms;

    expect(await answer).toBe(isInTime ? 'ada' : 'overloaded');
    expect(await isRemembered(authenticate)).toBe(isInTime);
  });
});

describe('hashPassword', () => {
  it.each([[42], [undefined], [''], ['a\nb'], [Buffer.from('a')]])('refuses %j', (password) => {
    expect(() => hashPassword(password as string)).toThrow(
      expect.objectContaining({ code: 'invalid_options' }),
    );
  });

  it('returns another text each time, without the password', () => {
    const hashes = [hashPassword(CANARY), hashPassword(CANARY)];

    expect(hashes[0]).not.toBe(hashes[1]);
    for (const hash of hashes) {
      expect(hash).toMatch(/^\$scrypt\$ln=14,r=8,p=5\$[\w-]{22}\$[\w-]{43}$/);
      expect(hash).not.toContain(CANARY);
    }
  });
});

let listed: Authentication | undefined;

/** One list for all tests, because hashing is slow. */
function list(): Authentication {
  listed ??= fixedAccounts([
    ADA,
    { username: 'bob', password: 'pa:ss:', account: 'acme' },
    { username: 'ädä', password: 'пароль 😀' },
    { username: 'eve', passwordHash: hashPassword('hashed') },
    { username: 'kim', password: ' ' },
    { username: 'lee', password: 'x'.repeat(2000), account: 'acme' },
  ]);
  return listed;
}

function thrownBy(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  return expect.unreachable('nothing was thrown');
}
