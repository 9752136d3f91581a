import { describe, expect, it } from 'vitest';
import { ALL_METHODS, RecordingStore } from '../support.ts';
import { type Code, expectFailure, ORDERS, type Setup, setUp } from './support.ts';

/** Every call that honors If-Match. */
const CHANGES: [method: string, path: string, json?: unknown][] = [
  ['PUT', '/token/ID', { scopes: [ORDERS] }],
  ['PATCH', '/token/ID', { name: 'second' }],
  ['DELETE', '/token/ID'],
  ['POST', '/token/ID/rotate'],
];

/** A token of version 3. */
async function setUpThird(): Promise<Setup & { id: string }> {
  const setup = setUp();
  const { id } = await setup.issue();
  await setup.tokens.patch('ada', id, { name: 'zeroth' });
  await setup.tokens.patch('ada', id, { name: 'first' });
  return { ...setup, id };
}

describe('If-Match', () => {
  const conditions: [tag: string, isMet: boolean][] = [
    ['"3"', true],
    ['"2"', false],
    ['"4"', false],
    ['*', true],
    ['W/"3"', true],
    ['W/"2"', false],
    ['3', true],
    ['2', false],
    ['"1", "3"', true],
    ['"3","1"', true],
    ['"1" , "2",   "3"', true],
    ['"1", "2"', false],
    ['W/"1", "3"', true],
    ['"1", W/"3"', true],
    ['W/"3", "1"', true],
    ['W/"1", 2', false],
    ['1, 3', true],
    [', "3",', true],
    ['"999999999999999"', false],
    ['"1",'.repeat(1000), false],
    ['"abc", "3"', true],
    ['"abc"', false],
    ['W/"abc"', false],
    ['"a,b", "3"', true],
    ['"3,4"', false],
    ['""', false],
    ['"", "3"', true],
    [',,\t, "3"\t,,', true],
    ['"0"', false],
    ['"-1"', false],
    ['"1", "7"', false],
    ['"03"', false],
    ['"+3"', false],
    ['"3.0"', false],
    ['"3e0"', false],
    ['"\u00b3"', false],
    ['"W/3"', false],
    ['W/""', false],
    ['"*"', false],
    ['"*", "3"', true],
    ['"9007199254740991"', false],
    ['"99999999999999999999"', false],
    ['"99999999999999999999", "3"', true],
  ];
  const malformed = [
    'w/"3"',
    'W/3',
    'W/ "3"',
    '"3", *',
    "'3'",
    '"3',
    '3"',
    '""3""',
    '',
    ',',
    '0',
    '03',
    '-3',
    '3.0',
    '" 3"',
    '"3" x',
    'x "3"',
    '"3";q=1',
    '"3" "4"',
    '"3"\t"4"',
    '"3""4"',
    '"4,\t3"',
    '1 3',
    '3"4"',
    '9999999999999999',
    `"3"${' '.repeat(10_000)}x`,
    'CaNaRy7',
    'x'.repeat(5000),
  ];

  for (const [method, path, json] of CHANGES) {
    it.each(conditions)(`%s lets ${method} ${path} change version 3: %s`, async (tag, isMet) => {
      const { call, id, tokens } = await setUpThird();
      const headers = { 'if-match': tag };

      const answer = await call(method, path.replace('ID', id), { json, headers });

      if (isMet) {
        expect(answer.status).toBe(200);
        expect(answer.headers.get('etag')).toBe(method === 'DELETE' ? null : '"4"');
        return;
      }
      expectFailure(answer, 'version_conflict');
      expect(await tokens.get('ada', id)).toMatchObject({ version: 3, name: 'first' });
    });

    it.each(malformed)(`%s is refused as malformed by ${method} ${path}`, async (tag) => {
      const { call, id, tokens } = await setUpThird();

      const answer = await call(method, path.replace('ID', id), {
        json,
        headers: { 'if-match': tag },
      });

      expectFailure(answer, 'invalid_request');
      expect(answer.body['message']).toBe('If-Match must be like "1", a list of such tags, or *');
      expect(await tokens.get('ada', id)).toMatchObject({ version: 3, name: 'first' });
    });
  }

  it('accepts the ETag of the last answer and refuses an older one', async () => {
    const { call } = setUp();
    const created = await call('POST', '/token', { json: { scopes: [ORDERS] } });
    const path = `/token/${created.body['id']}`;

    let etag = created.headers.get('etag') ?? '';
    for (const [method, below, json] of [CHANGES[0], CHANGES[1], CHANGES[3]].filter((c) => !!c)) {
      const target = below.replace('/token/ID', path);
      const changed = await call(method, target, { json, headers: { 'if-match': etag } });
      const stale = await call(method, target, { json, headers: { 'if-match': etag } });
      expect(changed.status).toBe(200);
      expectFailure(stale, 'version_conflict');
      etag = changed.headers.get('etag') ?? '';
      expect((await call('GET', path)).headers.get('etag')).toBe(etag);
    }
  });

  it('lets one of many concurrent changes win', async () => {
    const { call, id } = await setUpThird();
    const headers = { 'if-match': '"3"' };

    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        call('PATCH', `/token/${id}`, { json: { name: `n${index}` }, headers }),
      ),
    );

    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 412)).toHaveLength(19);
  });

  it('is ignored by GET and by POST /token', async () => {
    const { call, id } = await setUpThird();
    const headers = { 'if-match': '"9"', 'if-none-match': '"3"' };

    for (const path of [`/token/${id}`, '/token', '/scopes']) {
      expect(await call('GET', path, { headers })).toMatchObject({ status: 200 });
    }
    const json = { scopes: [ORDERS] };
    expect(await call('POST', '/token', { json, headers })).toMatchObject({ status: 200 });
  });

  it('does not change the not_found answer for a token of another account', async () => {
    const { call, issue } = setUp();
    const { id } = await issue('bob');
    const tags = [undefined, '*', '"1"', '"2"', 'W/"1"', '"1", "2"', '"8", "9"'];

    for (const [method, path, json] of CHANGES) {
      for (const tag of tags) {
        const headers = tag === undefined ? {} : { 'if-match': tag };
        const answer = await call(method, path.replace('ID', id), { json, headers });
        expectFailure(answer, 'not_found');
        expect(answer.headers.has('etag')).toBe(false);
      }
    }
  });

  it('applies to an expired token and still lets it be revoked', async () => {
    const { call, id, clock } = await setUpThird();
    clock.advance(31_536_000);

    const stale = await call('DELETE', `/token/${id}`, { headers: { 'if-match': '"2"' } });
    const current = await call('DELETE', `/token/${id}`, { headers: { 'if-match': '"3"' } });

    expectFailure(stale, 'version_conflict');
    expect(current.status).toBe(200);
  });

  it.each<[string, string, unknown, Code]>([
    ['PUT', '/token/ID', { scopes: ['x'] }, 'invalid_scope'],
    ['PATCH', '/token/ID', { name: '' }, 'invalid_request'],
    ['POST', '/token/ID/rotate', { graceSeconds: -1 }, 'invalid_request'],
  ])('lets %s %s refuse a body before the store is read', async (method, path, json, code) => {
    const store = new RecordingStore();
    const { call, issue } = setUp({ store });
    const target = path.replace('ID', (await issue()).id);
    const headers = { 'if-match': '"1", "2"' };
    const [, , good] = CHANGES.find(([verb]) => verb === method) ?? [];
    store.break(ALL_METHODS, () => Promise.reject(new Error('down')));

    expectFailure(await call(method, target, { json, headers }), code);
    expectFailure(await call(method, target, { json: good, headers }), 'store_unavailable');
  });
});
