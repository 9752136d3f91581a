import { describe, expect, it } from 'vitest';
import { fromFetch, ownForms } from '../../src/http/request.ts';
import { Reservation, Slots } from '../../src/http/slots.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import {
  asForm,
  basic,
  CATALOG,
  expectFailure,
  ORDERS,
  PASSWORD,
  type SetUpOptions,
  setUp,
  slowBody,
  toRequest,
} from './support.ts';

describe('slots', () => {
  const taken = (slots: Slots, ...parties: (string | undefined)[]): Reservation | undefined => {
    const reservation = new Reservation();
    return reservation.take(slots, parties) ? reservation : undefined;
  };

  it.each([
    [1, 1],
    [4, 1],
    [5, 2],
    [1000, 250],
  ])('out of %i are limited to %i for one party', (total, share) => {
    const slots = new Slots(total);
    for (let i = 0; i < share; i++) expect(taken(slots, 'a')).toBeDefined();

    expect(taken(slots) !== undefined).toBe(share < total);
    expect(taken(slots, 'a')).toBeUndefined();
  });

  it('are limited in total', () => {
    const slots = new Slots(8);
    const [first] = ['a', 'b', 'c', 'd'].flatMap((party) => [
      taken(slots, party),
      taken(slots, party),
    ]);

    expect(taken(slots, 'e')).toBeUndefined();
    first?.release();
    expect(taken(slots, 'e')).toBeDefined();
  });

  it('count for each party of a call, even one that becomes known later', () => {
    const slots = new Slots(8);
    const first = taken(slots, 'address');
    expect(first?.take(slots, ['address', 'account'])).toBe(true);
    expect(taken(slots, 'elsewhere', 'account')).toBeDefined();

    const third = taken(slots, 'anywhere');
    expect(third?.take(slots, ['anywhere', 'account'])).toBe(false);
    first?.release();
    expect(third?.take(slots, ['anywhere', 'account'])).toBe(true);
  });

  it('move to another kind as many as they are, or stay', () => {
    const [small, large] = [new Slots(8), new Slots(40)];
    const one = taken(large, 'a');
    expect(one?.holdBytes(3 * 131_072)).toBe(true);

    // The share of a party is two of eight.
    expect(one?.take(small, ['a'])).toBe(false);
    for (let i = 0; i < 7; i++) expect(taken(large, 'a')).toBeDefined();
    expect(taken(large, 'a')).toBeUndefined();
    expect(one?.holdBytes(2 * 131_072) && one.take(small, ['a'])).toBe(true);
    expect(taken(small, 'a')).toBeUndefined();
    for (let i = 0; i < 3; i++) expect(taken(large, 'a')).toBeDefined();
    expect(taken(large, 'a')).toBeUndefined();
  });

  it('are taken by the bytes that a call holds, and given back', () => {
    const slots = new Slots(40);
    const one = taken(slots, 'a');
    const others = Array.from({ length: 9 }, () => taken(slots, 'a'));

    expect(one?.holdBytes(1)).toBe(true);
    // The calls already hold the whole share, so there is no room for nine more slots.
    expect(one?.holdBytes(10 * 131_072)).toBe(false);
    for (const other of others) other?.release();
    expect(one?.holdBytes(10 * 131_072)).toBe(true);
    expect(taken(slots, 'a')).toBeUndefined();
    expect(one?.holdBytes(131_072)).toBe(true);
    expect(taken(slots, 'a')).toBeDefined();
  });

  it('are capped at one share per call, since a larger call could never run', () => {
    expect(taken(new Slots(4), 'a')?.holdBytes(100 * 131_072)).toBe(true);
  });

  it('are limited only in total for an unknown party', () => {
    const slots = new Slots(4);
    for (let i = 0; i < 4; i++) expect(taken(slots, undefined)).toBeDefined();
    expect(taken(slots, undefined)).toBeUndefined();
  });
});

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a slow body', () => {
  it('does not block other calls', async () => {
    const { call } = setUp({ maxInFlight: 1 });
    const { raw, end } = slowBody();
    const pending = call('POST', '/token', { raw });
    await turn();

    for (const as of ['ada', 'bob']) expect((await call('GET', '/token', { as })).status).toBe(200);
    end();
    expect((await pending).status).toBe(200);
  });

  it('counts toward the share of its account, and not of another one', async () => {
    const { call } = setUp({ maxInFlight: 4 });
    const { raw, end } = slowBody();
    const pending = call('POST', '/token', { raw });
    await turn();

    const json = { scopes: [ORDERS] };
    expectFailure(await call('POST', '/token', { json }), 'overloaded');
    expect((await call('POST', '/token', { json, as: 'bob' })).status).toBe(200);
    end();
    expect((await pending).status).toBe(200);
    expect((await call('POST', '/token', { json })).status).toBe(200);
  });

  it('takes more slots as it grows', async () => {
    const { call } = setUp({ maxInFlight: 16, maxBodyBytes: 2 * 1_048_576 });
    const { raw, end } = slowBody(' '.repeat(2 * 131_072 + 1));
    const pending = call('POST', '/token', { raw });
    await turn();
    const second = slowBody();
    const other = call('POST', '/token', { raw: second.raw });
    await turn();

    // The share of one account is four of sixteen slots.
    expectFailure(await call('POST', '/token', { json: { scopes: [ORDERS] } }), 'overloaded');
    end(JSON.stringify({ scopes: [ORDERS] }));
    second.end();
    expect((await pending).status).toBe(200);
    expect((await other).status).toBe(200);
  });

  it('takes slots of another kind if it is a form', async () => {
    const { call } = setUp({ maxInFlight: 1, revocation: true });
    const { raw, end } = slowBody('token=');
    const form = asForm('');
    const pending = call('POST', '/revoke', { ...form, raw, as: null });
    await turn();

    expect((await call('POST', '/token', { json: { scopes: [ORDERS] } })).status).toBe(200);
    expect((await call('POST', '/revoke', { ...asForm({ token: 'x' }), as: null })).status).toBe(
      503,
    );
    end('x');
    expect((await pending).status).toBe(200);
  });

  it.each([
    [4096, 200],
    [4097, 413],
  ])('that is a form of %i bytes is answered with %i', async (length, status) => {
    const { call } = setUp({ revocation: true });
    const answer = await call('POST', '/revoke', {
      ...asForm('token='.padEnd(length, 'x')),
      as: null,
    });
    expect(answer.status).toBe(status);
  });
});

describe('an answer that nobody reads', () => {
  const many = Array.from({ length: 3000 }, (_, i) => `GET:shop.example/orders/${i}`);

  async function filled(options: SetUpOptions) {
    const setting = setUp({ store: new MemoryTokenStore(), catalog: CATALOG, ...options });
    for (let i = 0; i < 3; i++) await setting.issue('ada', many);
    return { ...setting, list: () => setting.handler(toRequest('GET', '/token')) };
  }

  it('holds its slots until it has been sent', async () => {
    const { call, list } = await filled({ maxInFlight: 4 });
    const response = await list();

    expectFailure(await call('GET', '/token'), 'overloaded');
    expect((await call('GET', '/token', { as: 'bob' })).status).toBe(200);
    expect(JSON.parse(await response.text()).data).toHaveLength(3);
    expect((await call('GET', '/scopes')).status).toBe(200);
  });

  it('is given up after the send timeout', async () => {
    const { call, list } = await filled({ maxInFlight: 4, sendTimeoutMs: 20 });
    const response = await list();
    expectFailure(await call('GET', '/token'), 'overloaded');

    await expect(response.text()).resolves.toBeDefined();
    const abandoned = await list();
    await expect.poll(async () => (await call('GET', '/scopes')).status).toBe(200);
    await expect(abandoned.text()).rejects.toThrow('not read in time');
  });

  it('frees its slots when its reader cancels', async () => {
    const { call, list } = await filled({ maxInFlight: 4 });
    const response = await list();
    await response.body?.cancel();

    expect((await call('GET', '/scopes')).status).toBe(200);
  });
});

describe('an answer that cannot be sent', () => {
  const failures: readonly (readonly [string, () => Promise<void>])[] = [
    [
      'throws',
      () => {
        throw new Error('gone');
      },
    ],
    ['rejects', () => Promise.reject(new Error('gone'))],
  ];

  it.each(failures)('gives its slot back when sending %s', async (_, send) => {
    const { handler, call } = setUp({ maxInFlight: 1 });
    const answer = ownForms.get(handler)?.answer;
    await answer?.(fromFetch(toRequest('GET', '/scopes')), send).catch(() => {});

    expect((await call('GET', '/scopes')).status).toBe(200);
  });
});

describe('an answer that is never read to its end', () => {
  it.each([
    ['holds no slot if it refuses credentials', 'wrong', 200],
    ['holds its slot otherwise', PASSWORD, 503],
  ])('%s', async (_, password, status) => {
    const { handler, call } = setUp({ maxInFlight: 1 });
    const headers = { authorization: basic('ada', password) };
    const request = fromFetch(toRequest('GET', '/scopes', { headers }));
    void ownForms.get(handler)?.answer?.(request, () => new Promise(() => {}));
    await turn();

    expect((await call('GET', '/scopes')).status).toBe(status);
  });
});

describe('calls of one address', () => {
  const ADDRESS = 'x-address';

  function gated(options: SetUpOptions) {
    const waiting: (() => void)[] = [];
    const authenticate = ({ username }: { readonly username: string }) =>
      new Promise<string>((resolve) => void waiting.push(() => resolve(username)));
    const { call } = setUp({ authenticate, maxInFlight: 8, ...options });
    const from = (address: string, as: string) =>
      call('GET', '/scopes', { headers: { [ADDRESS]: address, authorization: basic(as) } });
    const open = () => {
      for (const resolve of waiting.splice(0)) resolve();
    };
    return { from, open, count: () => waiting.length };
  }

  it.each<[string, SetUpOptions, number]>([
    [
      'are limited to a quarter before their credentials are checked, if the address is known',
      { clientAddress: ({ headers }) => headers.get(ADDRESS) ?? '', maxInFlight: 32 },
      8,
    ],
    ['can take all slots if the address is unknown', {}, 8],
    ['can take all slots if every address is empty', { clientAddress: () => '' }, 8],
  ])('%s', async (_, options, share) => {
    const { from, open } = gated(options);
    const pending = Array.from({ length: share }, (__, i) => from('192.0.2.1', `user${i}`));
    expectFailure(await from('192.0.2.1', 'other'), 'overloaded');
    const elsewhere = from('192.0.2.2', 'other');
    const answers = Promise.all(pending);
    let isDone = false;
    void answers.finally(() => {
      isDone = true;
    });
    while (!isDone) {
      open();
      await turn();
    }

    expect((await elsewhere).status).toBe('maxInFlight' in options ? 200 : 503);
    for (const answer of await answers) expect(answer.status).toBe(200);
  });

  it('are checked a sixteenth at a time', async () => {
    const { from, open, count } = gated({
      clientAddress: ({ headers }) => headers.get(ADDRESS) ?? '',
      maxInFlight: 32,
    });
    const pending = Array.from({ length: 5 }, (_, i) => from('192.0.2.1', `user${i}`));

    for (const expected of [2, 2, 1]) {
      await expect.poll(count).toBe(expected);
      open();
    }
    for (const answer of await Promise.all(pending)) expect(answer.status).toBe(200);
  });
});
