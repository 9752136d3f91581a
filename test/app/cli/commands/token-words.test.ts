import { beforeEach, describe, expect, it } from 'vitest';
import {
  ACCOUNT,
  call,
  filesOf,
  hideVariables,
  newFolder,
  outcomeOf,
  run,
  serve,
  serviceOn,
} from '../support.ts';

beforeEach(hideVariables);

const LIST = 'GET:shop.example/orders$';
const CREATE = 'POST:shop.example/orders$';
const BILLS = 'GET:shop.example/bills$';
const HEALTH = 'GET:shop.example/health$';
const EVIL = 'a\u001b[2J\u202e';
const catalog = [
  { scope: LIST, summary: 'List orders', tag: 'orders' },
  { scope: CREATE, summary: 'Create an order', tag: 'orders' },
  { scope: BILLS, tag: 'bills' },
  { scope: HEALTH, tag: EVIL },
];
const SENTENCE = 'Orders: read · 1 single endpoint';

async function setUp() {
  const data = newFolder();
  const tokens = serviceOn(data);
  const { id } = await tokens.issue({
    account: 'ada',
    scopes: [LIST, CREATE.replace('orders', 'x')],
  });
  const file = filesOf({ 'catalog.json': catalog, 'broken.json': '{' });
  const as = ['--data', data, '--account', 'ada'];
  return { data, tokens, id, as, catalog: file('catalog.json'), broken: file('broken.json') };
}

describe('the words of a catalog', () => {
  it('say in token get and token list what a token may do', async () => {
    const { id, as, catalog } = await setUp();
    const words = ['--catalog', catalog];

    const shown = await outcomeOf(['token', 'get', id, ...as, ...words]);
    const plain = await outcomeOf(['token', 'get', id, ...as]);
    const listed = await outcomeOf(['token', 'list', ...as, ...words]);
    const bare = await outcomeOf(['token', 'list', ...as]);

    expect(shown.text).toContain(`may      ${SENTENCE}\nscopes   ${LIST}\n`);
    expect(plain.text).not.toContain('may ');
    expect(shown.json).toEqual(plain.json);
    expect(listed.text).toContain(`  ${SENTENCE}`);
    expect(bare.text).toContain(`  ${LIST} and 1 more`);
    expect(listed.json).toEqual(bare.json);
  });

  it('do not stand in the way if the catalog cannot be read, or holds no permission', async () => {
    const { tokens, as, catalog, broken } = await setUp();
    const { id } = await tokens.issue({ account: 'ada', scopes: ['GET:else.example/a'] });

    const unread = await outcomeOf(['token', 'get', id, ...as, '--catalog', broken]);
    const listed = await outcomeOf(['token', 'list', ...as, '--catalog', catalog]);

    expect(unread.text).not.toContain('may ');
    expect(listed.text).toContain('  GET:else.example/a');
  });

  it('cannot steer a terminal', async () => {
    const { tokens, as, catalog } = await setUp();
    const { id } = await tokens.issue({ account: 'ada', scopes: [HEALTH] });

    const { text } = await outcomeOf(['token', 'get', id, ...as, '--catalog', catalog]);

    expect(text).toContain('may      A [2J');
    expect(text).toMatch(/^[^\p{Cf}]*$/u);
  });

  it('come with the answers of a service', async () => {
    const { catalog } = await setUp();
    const service = await serve(['--data', newFolder(), ...ACCOUNT, '--catalog', catalog]);
    const made = await call(service, '/token', {
      method: 'POST',
      body: { scopes: [LIST, BILLS] },
    });
    const { id } = made.body;
    const as = ['--url', service.url, '--user', 'ada'];
    const password = { TOKENWRIGHT_PASSWORD: 'correct-horse' };
    const token = (...words: string[]) => run(['token', ...words, ...as], password);

    expect((await token('get', id)).stdout).toContain('may      Bills: read · Orders: read\n');
    expect((await token('list')).stdout).toContain('  Bills: read · Orders: read\n');
    const explained = await token('explain', id, 'POST', 'https://shop.example/orders');
    expect(explained.stdout).toContain(`endpoint  ${CREATE} (Create an order)\n`);
    const { body } = await call(service, `/token/${id}/explain`, {
      method: 'POST',
      body: { scope: BILLS },
    });
    expect(body.data).not.toHaveProperty('summary');
    expect(await service.stop()).toMatchObject({ code: 0 });
  });

  it('name the endpoint of a request in token explain and catalog explain', async () => {
    const { id, as, catalog } = await setUp();
    const request = ['POST', 'https://shop.example/orders', '--catalog', catalog];

    const token = await outcomeOf(['token', 'explain', id, ...as, ...request]);
    const list = await outcomeOf(['catalog', 'explain', LIST, ...request]);
    const known = await outcomeOf(['catalog', 'explain', CREATE, ...request]);
    const without = await outcomeOf(['catalog', 'explain', CREATE, ...request.slice(0, 2)]);

    for (const { json } of [token, list, known]) expect(json.summary).toBe('Create an order');
    expect(token.text).toContain(`endpoint  ${CREATE} (Create an order)`);
    expect(list.text).toContain(`catalog  knows it as ${CREATE} (Create an order)`);
    expect(without.json).not.toHaveProperty('summary');
  });
});
