import { describe, expect, it } from 'vitest';
import { filesOf, outcomeOf, run } from '../support.ts';

const catalog = [
  { scope: 'GET:shop.example/orders$', summary: 'List orders' },
  { scope: 'POST:shop.example/orders$', summary: 'Create an order' },
  'GET:shop.example/orders/{}$',
  'GET:shop.example/orders/export$',
];
const presets = [{ name: 'CI', scopes: ['*:shop.example/orders$'] }];
const ORDERS = 'https://shop.example/orders';
const rule = (allowed: boolean, request: string, more: object = { preset: 'ci' }) => ({
  ...more,
  request,
  allowed,
});

function files(rules: unknown) {
  const file = filesOf({ 'rules.json': rules, 'catalog.json': catalog, 'presets.json': presets });
  const flags = ['--catalog', file('catalog.json'), '--presets', file('presets.json')];
  return { file, words: ['catalog', 'test', file('rules.json'), ...flags] };
}

const test = (rules: unknown) => outcomeOf(files(rules).words);

describe('catalog test', () => {
  it('holds if each request is allowed or refused as the rules say', async () => {
    const scopes = ['GET:shop.example/orders/{}$'];
    const outcome = await test([
      rule(true, `GET ${ORDERS}`),
      rule(true, `POST ${ORDERS}?a=b`),
      rule(false, `GET ${ORDERS}/7`),
      rule(true, `GET ${ORDERS}/7`, { scopes }),
      // A request belongs to the entry that names it.
      rule(false, `GET ${ORDERS}/export`, { scopes }),
      rule(false, `GET ${ORDERS}//7`, { scopes }),
      rule(false, `POST ${ORDERS}`, { preset: 'Read only' }),
      rule(true, `GET ${ORDERS}/export`, { preset: 'read only' }),
    ]);

    expect(outcome).toMatchObject({
      text: '',
      json: [],
      notes: '8 rules, all hold',
      isFailed: false,
    });
  });

  it('shows each rule that differs, and why', async () => {
    const outcome = await test([
      rule(true, `GET ${ORDERS}`),
      rule(false, `POST ${ORDERS}`),
      rule(true, `GET ${ORDERS}/7`),
      rule(true, `GET ${ORDERS}//7`),
      rule(false, `GET ${ORDERS}`, { scopes: ['GET:shop.example/gone$'] }),
    ]);

    expect(outcome.isFailed).toBe(true);
    expect(outcome.notes).toBe('4 of 5 rules do not hold');
    expect(outcome.text).toContain(
      'rule 2  POST shop.example /orders\n        expected refused, but',
    );
    const [posted, read, ambiguous, gone] = outcome.json;
    expect(posted).toEqual({
      rule: 2,
      request: `POST ${ORDERS}`,
      expected: false,
      allowed: true,
      grantedBy: 'POST:shop.example/orders$',
      summary: 'Create an order',
      message: 'expected refused, but POST:shop.example/orders$ allows it (Create an order)',
    });
    expect(read).toMatchObject({
      rule: 3,
      allowed: false,
      reason: 'insufficient_scope',
      smallest: 'GET:shop.example/orders/7$',
      message: expect.stringContaining('; enough is GET:shop.example/orders/7$'),
    });
    expect(ambiguous).toMatchObject({ rule: 4, reason: 'path_empty_segment' });
    expect(gone).toMatchObject({
      rule: 5,
      allowed: false,
      reason: 'scope_unmatched',
      message: expect.stringContaining('the scopes cannot be granted: '),
    });
  });

  it.each([
    [[rule(true, `GET ${ORDERS}`)], 0, '', '1 rule, all hold\n'],
    [
      [rule(false, `GET ${ORDERS}`)],
      1,
      /^rule 1 {2}GET shop\.example \/orders\n/,
      '1 of 1 rule does not hold\n',
    ],
    ['{', 2, '', /rules\.json is not JSON/],
  ])('of %j ends with the code %i', async (rules, code, stdout, stderr) => {
    const ended = await run(files(rules).words);

    expect(ended.code).toBe(code);
    expect(ended.stdout).toMatch(stdout);
    expect(ended.stderr).toMatch(stderr);
  });

  it.each([
    [{}, 'rules.json must be a JSON array of rules, such as'],
    [[], 'rules.json must be a JSON array of rules, such as'],
    [['x'], 'rule 1 must be an object, such as'],
    [[rule(true, `GET ${ORDERS}`, {})], 'rule 1 must have either preset or scopes'],
    [
      [rule(true, `GET ${ORDERS}`, { preset: 'CI', scopes: [] })],
      'rule 1 must have either preset or scopes',
    ],
    [[rule(true, `GET ${ORDERS}`, { preset: 'x' })], 'no preset "x"; there are "CI", "Read only"'],
    [[rule(true, `GET ${ORDERS}`, { scopes: ['x'] })], 'rule 1: scopes: scope 1: '],
    [[rule(true, 'GET /orders')], 'rule 1: request must be a method and a full URL'],
    [[{ preset: 'CI', request: `GET ${ORDERS}` }], 'rule 1: allowed must be true or false'],
    [
      [{ ...rule(true, `GET ${ORDERS}`), alowed: true }],
      'unknown member "alowed"; did you mean allowed?',
    ],
    [[{ ...rule(true, `GET ${ORDERS}`), color: 1 }], 'unknown member "color" (known: preset'],
  ])('refuses the rules %j', async (rules, message) => {
    await expect(test(rules)).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining(message),
    });
  });

  it.each(['rules.json', 'catalog.json', 'presets.json'])(
    'ends with the code 2 if %s is missing',
    async (missing) => {
      const { words } = files([rule(true, `GET ${ORDERS}`)]);
      const args = words.map((word) => word.replace(missing, 'gone.json'));

      expect(await run(args)).toMatchObject({ code: 2, stdout: '' });
    },
  );
});
