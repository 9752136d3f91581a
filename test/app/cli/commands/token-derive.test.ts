import { createServer } from 'node:http';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { fixedAccounts, tokenHandler, toNodeListener } from '../../../../src/http/index.ts';
import { generateKey, MemoryTokenStore, TokenService } from '../../../../src/index.ts';
import { hideVariables, listen, newFolder, outcomeOf, run, serve, serviceOn } from '../support.ts';

const ORDERS = 'GET:shop.example/orders';
const BILLS = 'GET:shop.example/bills';
const BOTH = [BILLS, ORDERS];
const VALUE = /^tw_1k1[0-9A-Za-z]{55}$/;

beforeEach(hideVariables);

/** A token with both scopes, in a store like that of serve. */
async function stored() {
  const data = newFolder();
  const tokens = serviceOn(data);
  const parent = await tokens.issue({ account: 'ada', scopes: BOTH });
  const derive = (...words: readonly string[]) =>
    outcomeOf(['token', 'derive', '--data', data, '--token', parent.value, ...words]);
  return { data, tokens, parent, derive };
}

describe('token derive, with a store', () => {
  it('issues a token for the account of the value, with the id of its parent', async () => {
    const { data, tokens, parent, derive } = await stored();

    const made = await derive('--scope', ORDERS);

    const { id } = made.json;
    expect(made.text).toMatch(VALUE);
    expect(made.json).toMatchObject({ token: made.text, scopes: [ORDERS], parent: parent.id });
    expect(made.notes).toContain(`state    active\nparent   ${parent.id}\nscopes   ${ORDERS}\n`);
    expect(await tokens.allows(made.text, { scope: ORDERS })).toBe(true);
    expect(await tokens.allows(made.text, { scope: BILLS })).toBe(false);

    const as = ['--data', data, '--account', 'ada'];
    const shown = await outcomeOf(['token', 'get', id, ...as]);
    expect(shown.text).toContain(`parent   ${parent.id}\n`);
    expect(shown.json).toEqual({ ...made.json, token: id });
    expect((await outcomeOf(['token', 'get', parent.id, ...as])).text).not.toContain('parent');
    const children = await outcomeOf(['token', 'list', ...as, '--parent', parent.id]);
    expect(children.json.tokens).toMatchObject([{ id, parent: parent.id }]);
  });

  it('accepts the flags of issue, and expands wildcards against the parent', async () => {
    const { derive } = await stored();

    const made = await derive(
      ...['--scope', '*:*/*', '--ttl', '15m', '--name', 'job', '--metadata', '{"run":7}'],
      ...['--address', '10.0.0.0/8', '--uses', '2', '--rate', '1/60s'],
    );

    expect(made.json).toMatchObject({
      scopes: BOTH,
      name: 'job',
      metadata: { run: 7 },
      limits: { addresses: ['10.0.0.0/8'], uses: 2, rate: { uses: 1, seconds: 60 } },
    });
    expect(made.json.expire - made.json.createdAt).toBe(900);
  });

  it('reads the value from standard input, the variable or the flag, and prefers the flag', async () => {
    const { data, parent } = await stored();
    const words = ['token', 'derive', '--scope', ORDERS, '--data', data];
    const TOKENWRIGHT_TOKEN = parent.value;

    const piped = await run(words, {}, `${parent.value}\n`);
    const named = await run(words, { TOKENWRIGHT_TOKEN });
    const given = await run([...words, '--token', 'other'], { TOKENWRIGHT_TOKEN });

    expect([piped, named, given].map(({ code }) => code)).toEqual([0, 0, 3]);
    expect(piped.stdout.trim()).toMatch(VALUE);
    expect(given).toMatchObject({
      stdout: '',
      stderr: 'the value is not, or no longer, valid\n',
    });
  });

  it.each([
    [
      ['--scope', 'GET:shop.example/items'],
      'the parent token does not hold GET:shop.example/items',
    ],
    [['--scope', ORDERS, '--uses', '6'], '--uses must not be more than 5'],
    [['--scope', ORDERS, '--ttl', '0'], '--ttl'],
    [['--scope', 'canary'], '--scope must be scopes separated by commas'],
    [[], '--scope is required'],
    [['--scope', ORDERS, '--account', 'ada'], 'has no flag --account'],
    [['--scope', ORDERS, '--user', 'ada'], 'has no flag --user'],
  ])('refuses %j', async (words, message) => {
    const { data, parent } = await stored();
    await outcomeOf([
      'token',
      'modify',
      parent.id,
      '--data',
      data,
      '--account',
      'ada',
      '--uses',
      '5',
    ]);
    const environment = { TOKENWRIGHT_TOKEN: parent.value };

    const { code, stdout, stderr } = await run(
      ['token', 'derive', '--data', data, ...words],
      environment,
    );

    expect(code === 1 || code === 2).toBe(true);
    expect(stdout).toBe('');
    expect(stderr).toContain(message);
    expect(stderr).not.toContain(parent.value);
  });

  it('rejects the value of a revoked token', async () => {
    const { tokens, parent, derive } = await stored();
    await tokens.revoke('ada', parent.id);

    expect(await derive('--scope', ORDERS)).toMatchObject({
      text: '',
      json: null,
      notes: 'the value is not, or no longer, valid',
      isNegative: true,
    });
  });
});

describe('token derive, with a service', () => {
  it('needs no credentials other than the value', async () => {
    const { url, tokens, parent } = await served();
    const derive = (...words: readonly string[]) =>
      outcomeOf(['token', 'derive', '--url', url, '--token', parent.value, ...words]);

    const made = await derive('--scope', '*:*/*', '--ttl', '1h', '--name', 'job', '--uses', '2');

    expect(made.text).toMatch(VALUE);
    expect(made.json).toMatchObject({
      scopes: BOTH,
      parent: parent.id,
      name: 'job',
      limits: { uses: 2 },
    });
    expect(made.json.expire - made.json.createdAt).toBe(3600);
    await expect(derive('--scope', 'GET:a.example/x')).rejects.toThrow(
      /refuses with 422: the parent token does not hold GET:a\.example\/x/,
    );
    await expect(derive('--scope', ORDERS, '--uses', '9')).rejects.toThrow(
      'refuses with 422: --uses must not be more than 5',
    );
    await tokens.revoke('ada', parent.id);
    expect(await derive('--scope', ORDERS)).toMatchObject({ json: null, isNegative: true });
  });

  it.each(['tw_nonsense', 'a\nb', 'ä'])('rejects the value %j', async (value) => {
    const { url } = await served();
    const words = ['token', 'derive', '--url', url, '--scope', ORDERS, '--token', value];

    expect(await outcomeOf(words)).toMatchObject({ json: null, isNegative: true });
  });

  it('does not send the password of a variable', async () => {
    const { url, parent, headers } = await served();
    vi.stubEnv('TOKENWRIGHT_USER', 'ada');
    vi.stubEnv('TOKENWRIGHT_PASSWORD', 'canary');

    await outcomeOf(['token', 'derive', '--url', url, '--scope', ORDERS, '--token', parent.value]);

    expect(headers).toEqual([`Bearer ${parent.value}`]);
  });

  it('names the flag that the service lacks, and reports an address without a service', async () => {
    const plain = await serve(['--data', newFolder(), '--account', 'ada:correct-horse']);
    const derive = (url: string) =>
      outcomeOf(['token', 'derive', '--url', url, '--scope', ORDERS, '--token', 'tw_canary']);

    await expect(derive(plain.url)).rejects.toThrow('start it with serve --derivation');
    await expect(derive(`${plain.url}/nowhere`)).rejects.toThrow(
      'does not answer as a token service does (404)',
    );
    await expect(derive('http://127.0.0.1:1')).rejects.toThrow('cannot be reached');
    await expect(derive(plain.url)).rejects.not.toThrow('canary');
  });
});

/** A service with derivation, and a token of an account. */
async function served() {
  const tokens = new TokenService({
    store: new MemoryTokenStore(),
    keys: [generateKey()],
    prefix: 'tw',
    limits: true,
  });
  const handler = toNodeListener(
    tokenHandler({
      tokens,
      authenticate: fixedAccounts([{ username: 'ada', password: 'pw' }]),
      basePath: '/auth',
      derivation: true,
    }),
  );
  const headers: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    headers.push(request.headers.authorization);
    return handler(request, response);
  });
  const url = `http://127.0.0.1:${await listen(server)}/auth`;
  const parent = await tokens.issue({ account: 'ada', scopes: BOTH, limits: { uses: 5 } });
  return { url, tokens, parent, headers };
}
