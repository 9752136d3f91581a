import { createServer } from 'node:http';
import fc from 'fast-check';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { fixedAccounts, tokenHandler, toNodeListener } from '../../../../src/http/index.ts';
import { generateKey, MemoryTokenStore, TokenService } from '../../../../src/index.ts';
import { catalogFromOpenApi } from '../../../../src/openapi/index.ts';
import { runs } from '../../../laws.ts';
import { filesOf, hideVariables, listen, newFolder, outcomeOf, serviceOn } from '../support.ts';

beforeEach(hideVariables);

const operation = (tag: string) => ({ tags: [tag], summary: `Do ${tag}` });
const document = {
  openapi: '3.1.0',
  servers: [{ url: 'https://shop.example' }],
  tags: [{ name: 'pull-requests' }, { name: 'issues' }],
  paths: {
    '/issues': { get: operation('issues'), post: operation('issues') },
    '/issues/{id}': { get: operation('issues'), delete: operation('issues') },
    '/pulls': { get: operation('pull-requests'), put: operation('pull-requests') },
    '/login': { post: operation('login') },
  },
};
const pay = {
  openapi: '3.1.0',
  servers: [{ url: 'https://pay.example' }],
  paths: { '/issues': { get: operation('issues') } },
};
const READ = ['GET:shop.example/issues$', 'GET:shop.example/issues/{}$'];
const WRITE = ['DELETE:shop.example/issues/{}$', ...READ, 'POST:shop.example/issues$'];
const presets = [
  {
    name: 'CI',
    scopes: ['GET:shop.example/*'],
    ttl: '12h',
    limits: { addresses: ['10.0.0.0/8'], uses: 100 },
  },
];

/** The words of a command on a store, with a catalog. */
function local({ documents = { 'shop.json': document } as Record<string, object> } = {}) {
  const data = newFolder();
  serviceOn(data);
  const file = filesOf({ ...documents, 'presets.json': presets });
  const catalog = Object.keys(documents).flatMap((name) => ['--catalog', file(name)]);
  const as = ['--data', data, '--account', 'ada'];
  const issue = (...words: string[]) => outcomeOf(['token', 'issue', ...as, ...catalog, ...words]);
  return { as, issue, presets: ['--presets', file('presets.json')] };
}

/** The words of a command that calls a service with a catalog and presets. */
async function remote() {
  const tokens = new TokenService({
    store: new MemoryTokenStore(),
    keys: [generateKey()],
    prefix: 'tw',
    catalog: await catalogFromOpenApi(document),
    presets: presets.map(({ ttl: _, ...preset }) => ({ ...preset, ttlSeconds: 43_200 })),
    limits: true,
  });
  const authenticate = fixedAccounts([{ username: 'ada', password: 'pw' }]);
  const handler = tokenHandler({ tokens, authenticate });
  const port = await listen(createServer(toNodeListener(handler)));
  vi.stubEnv('TOKENWRIGHT_PASSWORD', 'pw');
  const as = ['--url', `http://127.0.0.1:${port}`, '--user', 'ada'];
  return { as, issue: (...words: string[]) => outcomeOf(['token', 'issue', ...as, ...words]) };
}

describe.each([
  ['a store', () => local()],
  ['a service', remote],
])('token issue --permission in %s', (_, setUp) => {
  it.each([
    [['issues:read'], READ],
    [['issues:write'], WRITE],
    [['ISSUES:Read'], READ],
    [['Pull requests:read'], ['GET:shop.example/pulls$']],
    [['issues@shop.example:read'], READ],
    [
      ['pull-requests:read', 'issues:read'],
      [...READ, 'GET:shop.example/pulls$'],
    ],
  ])('%j grants the same scopes as by hand', async (permissions, scopes) => {
    const { issue } = await setUp();

    const chosen = await issue(...permissions.flatMap((each) => ['--permission', each]));
    const written = await issue('--scope', scopes.join(','));

    expect(chosen.json.scopes).toEqual(scopes);
    expect(chosen.json.scopes).toEqual(written.json.scopes);
  });

  it('adds to the scopes of --scope', async () => {
    const { issue } = await setUp();

    const { json } = await issue(
      ...['--scope', 'POST:shop.example/login$', '--permission', 'pull-requests:read'],
    );

    expect(json.scopes).toEqual(['GET:shop.example/pulls$', 'POST:shop.example/login$']);
  });

  it.each([
    ['isues:read', '--permission: there is no permission "isues"; did you mean issues?'],
    ['issues@pay.example:read', 'there is no permission "issues@pay.example"'],
    ['issues', '--permission must be a tag and a level, such as issues:read'],
    ['issues:admin', '--permission must be a tag and a level, such as issues:read'],
    ['login:read', 'nothing of "login" only reads; write login:write'],
  ])('refuses %s', async (permission, message) => {
    const { issue } = await setUp();

    await expect(issue('--permission', permission)).rejects.toThrow(message);
  });
});

describe('token issue --permission', () => {
  it('asks for the host of a tag that two hosts have', async () => {
    const { issue } = local({ documents: { 'shop.json': document, 'pay.json': pay } });

    const { json } = await issue('--permission', 'issues@pay.example:read');

    expect(json.scopes).toEqual(['GET:pay.example/issues$']);
    await expect(issue('--permission', 'issues:read')).rejects.toThrow(
      '"issues" can be several permissions; write issues@',
    );
  });

  it('needs the catalog of a store', async () => {
    const { as } = local();

    await expect(
      outcomeOf(['token', 'issue', ...as, '--permission', 'issues:read']),
    ).rejects.toThrow('--permission needs --catalog');
  });

  it('grants for any selection what a person would write', async () => {
    const { issue } = local();
    const catalog = await catalogFromOpenApi(document);
    const permissions = catalog.permissions();
    const choices = permissions.flatMap((one) =>
      (['read', 'write'] as const).flatMap((level) =>
        one[level].length === 0 ? [] : { text: `${one.tag}:${level}`, scopes: one[level] },
      ),
    );
    const selections = fc.record({
      chosen: fc.subarray(choices, { minLength: 1 }),
      single: fc.subarray(catalog.toArray()),
    });
    await fc.assert(
      fc.asyncProperty(selections, async ({ chosen, single }) => {
        const all = [...new Set([...chosen.flatMap(({ scopes }) => scopes), ...single])].sort();
        const flags = chosen.flatMap(({ text }) => ['--permission', text]);
        const { json } = await issue(...flags, ...single.flatMap((scope) => ['--scope', scope]));
        expect(json.scopes).toEqual(all);
      }),
      runs(0.1),
    );
  });
});

describe.each([
  [
    'a store',
    () => {
      const { issue, presets: flags } = local();
      return { issue: (...words: string[]) => issue(...flags, ...words) };
    },
  ],
  ['a service', remote],
])('token issue --preset in %s', (_, setUp) => {
  const scopes = [...READ, 'GET:shop.example/pulls$'];

  it('takes the scopes, the lifetime and the limits, which the own flags replace', async () => {
    const { issue } = await setUp();
    const lifetime = ({ json }: Awaited<ReturnType<typeof issue>>) => json.expire - json.createdAt;

    const plain = await issue('--preset', 'ci');
    const own = await issue('--preset', 'CI', '--ttl', '1h', '--uses', '5');
    const lifted = await issue('--preset', 'CI', '--uses', '', '--expire', '2099-01-01').catch(
      (error: Error) => error,
    );
    const narrow = await issue('--preset', 'CI', '--permission', 'issues:read');

    expect(plain.json.scopes).toEqual(scopes);
    expect(lifetime(plain)).toBe(43_200);
    expect(plain.json.limits).toEqual({ addresses: ['10.0.0.0/8'], uses: 100 });
    expect(lifetime(own)).toBe(3600);
    expect(own.json.limits).toEqual({ addresses: ['10.0.0.0/8'], uses: 5 });
    // The date of --expire is sent without the lifetime of the preset: it alone is refused.
    expect(lifted).toMatchObject({ message: expect.stringContaining('--expire must be') });
    expect(narrow.json.scopes).toEqual(READ);
    expect(lifetime(narrow)).toBe(43_200);
  });

  it('knows Read only, and lists the presets for an unknown name', async () => {
    const { issue } = await setUp();

    const { json } = await issue('--preset', 'read ONLY');

    expect(json.scopes).toEqual(scopes);
    await expect(issue('--preset', 'deploy')).rejects.toThrow(
      '--preset: there is no preset "deploy"; there are "CI", "Read only"',
    );
  });
});

describe('token issue --preset', () => {
  it('refuses a preset with wildcards without a catalog, except with --patterns', async () => {
    const { as, presets: flags } = local();
    const issue = ['token', 'issue', ...as, ...flags, '--preset', 'CI'];

    await expect(outcomeOf(issue)).rejects.toThrow('GET:shop.example/* has a wildcard');
    expect((await outcomeOf([...issue, '--patterns'])).json.scopes).toEqual(['GET:shop.example/*']);
  });

  it('says that there is none, and that --presets is for a store', async () => {
    const { as } = local();
    const words = ['token', 'issue', ...as, '--preset', 'CI'];

    await expect(outcomeOf(words)).rejects.toThrow('no preset "CI"; there are none');
    await expect(
      outcomeOf(['token', 'issue', '--url', 'http://a', '--presets', 'x', '--preset', 'CI']),
    ).rejects.toThrow('--presets is for a store');
  });
});
