import { describe, expect, it } from 'vitest';
import { expectFailure, expectSuccess, ORDERS, setUp } from './support.ts';

const ITEMS = 'GET:shop.example/items';

describe.each(['PUT', 'PATCH'])('%s with dryRun', (method) => {
  const json = { scopes: [ITEMS] };

  it('shows the result, and changes nothing', async () => {
    const { call, issue } = setUp();
    const { id } = await issue();

    const answer = await call(method, `/token/${id}?dryRun=true`, { json });
    const found = await call('GET', `/token/${id}`);

    const data = [expect.objectContaining({ id, scopes: [ITEMS] })];
    expectSuccess(answer, { data, diff: { added: [ITEMS], removed: [ORDERS] } });
    expect(answer.headers.has('etag')).toBe(false);
    expect(found.body['data']).toMatchObject([{ scopes: [ORDERS], version: 1 }]);
  });

  it.each(['', '?dryRun=false'])(
    'changes the token with the query %j (the control)',
    async (query) => {
      const { call, issue } = setUp();
      const { id } = await issue();

      const answer = await call(method, `/token/${id}${query}`, { json });
      const found = await call('GET', `/token/${id}`);

      expectSuccess(answer, { data: [expect.objectContaining({ scopes: [ITEMS], version: 2 })] });
      expect(answer.headers.get('etag')).toBe('"2"');
      expect(found.body['data']).toMatchObject([{ scopes: [ITEMS], version: 2 }]);
    },
  );

  it.each(['?dryRun', '?dryRun=1', '?dryRun=true&dryRun=true', '?dryrun=true', '?dryRuns=true'])(
    'is refused rather than ignored: %s',
    async (query) => {
      const { call, issue } = setUp();
      const { id } = await issue();

      const answer = await call(method, `/token/${id}${query}`, { json });
      const found = await call('GET', `/token/${id}`);

      expectFailure(answer, 'invalid_request');
      expect(answer.body['details']).toMatchObject({ member: 'dryRun' });
      expect(found.body['data']).toMatchObject([{ version: 1 }]);
    },
  );

  it('is refused for what the change would be refused for', async () => {
    const { call, issue } = setUp();
    const { id } = await issue();
    const path = `/token/${id}?dryRun=true`;

    expectFailure(
      await call(method, path, { json, headers: { 'if-match': '"2"' } }),
      'version_conflict',
    );
    expectFailure(await call(method, path, { json: { scopes: [] } }), 'scopes_required');
    expectFailure(await call(method, path, { json, as: 'bob' }), 'not_found');
  });
});
