import { describe, expect, it } from 'vitest';
import { filesOf, outcomeOf } from '../support.ts';

const server = (host: string) => [{ url: `https://${host}` }];
const get = (summary: string, tag: string, more = {}) => ({ summary, tags: [tag], ...more });

const shop = {
  openapi: '3.1.0',
  servers: server('shop.example'),
  paths: {
    '/orders': {
      get: get('List orders', 'orders'),
      post: get('Create an order', 'orders', { operationId: 'orders/create' }),
    },
    '/orders/{id}': { delete: get('Delete an order', 'orders', { deprecated: true }) },
    '/orders/{id}/comments': { post: get('Create an order comment', 'order-comments') },
    '/health': { get: {} },
  },
};
const bills = {
  openapi: '3.1.0',
  servers: server('bills.example'),
  paths: { '/orders': { get: get('List billed orders', 'orders') } },
};

function files() {
  const file = filesOf({ 'shop.json': shop, 'bills.json': bills });
  return { shop: file('shop.json'), both: [file('shop.json'), file('bills.json')] };
}

describe('catalog list', () => {
  it('lists the entries, and with --words what people call them', async () => {
    const { shop } = files();

    const plain = await outcomeOf(['catalog', 'list', shop]);
    const words = await outcomeOf(['catalog', 'list', shop, '--words']);

    expect(plain.text.split('\n')).toHaveLength(5);
    expect(plain.text).toContain('POST:shop.example/orders$\n');
    expect(plain.text).not.toContain('Create');
    expect(plain.notes).toBe('5 scopes');
    expect(words.text.split('\n').map((line) => line.replaceAll(/ +/g, ' '))).toEqual([
      'SCOPE TAG SUMMARY',
      'DELETE:shop.example/orders/{}$ orders Delete an order (deprecated)',
      'GET:shop.example/health$',
      'GET:shop.example/orders$ orders List orders',
      'POST:shop.example/orders$ orders Create an order',
      'POST:shop.example/orders/{}/comments$ order-comments Create an order comment',
    ]);
  });

  it('prints as JSON a catalog that has the same words', async () => {
    const { shop } = files();

    const { json } = await outcomeOf(['catalog', 'list', shop]);
    const again = await outcomeOf(['catalog', 'list', filesOf({ 'a.json': json })('a.json')]);

    expect(json).toContainEqual({
      scope: 'DELETE:shop.example/orders/{}$',
      summary: 'Delete an order',
      tag: 'orders',
      segments: ['id'],
      deprecated: true,
    });
    expect(json).toContainEqual({ scope: 'GET:shop.example/health$' });
    expect(again.json).toEqual(json);
  });

  it.each([
    ['orders', 3],
    ['ORDERS', 3],
    ['order-comments', 1],
    ['Order comments', 1],
    ['health', 1],
  ])('with --tag %s lists %i entries', async (tag, total) => {
    const { shop } = files();

    const { json } = await outcomeOf(['catalog', 'list', shop, '--tag', tag]);

    expect(json).toHaveLength(total);
  });

  it('asks for the host of a tag that two hosts have', async () => {
    const { both } = files();
    const list = (tag: string) => outcomeOf(['catalog', 'list', ...both, '--tag', tag]);

    expect((await list('orders@Bills.example')).json).toHaveLength(1);
    expect((await list('orders@shop.example')).json).toHaveLength(3);
    await expect(list('orders')).rejects.toThrow(
      '--tag: "orders" can be several permissions; write orders@shop.example or orders@bills.example',
    );
    await expect(list('orders@pay.example')).rejects.toThrow('there is no permission');
  });

  it.each([
    ['order', 'did you mean orders?'],
    ['payments', 'there is no permission "payments"; there are orders, health, order-comments'],
  ])('refuses the unknown tag %s', async (tag, message) => {
    const { shop } = files();

    await expect(outcomeOf(['catalog', 'list', shop, '--tag', tag])).rejects.toThrow(message);
  });
});

describe('catalog search', () => {
  it.each([
    ['create an order', 'POST:shop.example/orders$'],
    ['order comment', 'POST:shop.example/orders/{}/comments$'],
    ['delete', 'DELETE:shop.example/orders/{}$'],
    ['billed', 'GET:bills.example/orders$'],
    ['bills.example', 'GET:bills.example/orders$'],
  ])('finds %j', async (query, first) => {
    const { both } = files();

    const outcome = await outcomeOf(['catalog', 'search', query, ...both]);

    expect(outcome.json[0].scope).toBe(first);
    expect(outcome.isNegative).toBe(false);
  });

  it('shows as many as --limit says, and how many there are', async () => {
    const { shop } = files();

    const found = await outcomeOf(['catalog', 'search', 'order', shop, '--limit', '2']);

    expect(found.json).toHaveLength(2);
    expect(found.notes).toBe('4 of 5 scopes; --limit 4 lists all');
  });

  it('finds nothing for a word that is nowhere', async () => {
    const { shop } = files();

    const found = await outcomeOf(['catalog', 'search', 'order unicorn', shop]);

    expect(found).toMatchObject({ text: '', json: [], isNegative: true, notes: '0 of 5 scopes' });
  });
});
