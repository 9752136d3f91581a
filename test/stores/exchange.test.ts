import { describe, expect, it } from 'vitest';
import { fixedAccounts, tokenHandler } from '../../src/http/index.ts';
import { generateKey, TokenService } from '../../src/index.ts';
import type { EngineStore } from '../../src/ports/engine-store.ts';
import { exchangeForm, ORDERS, PASSWORD } from '../http/support.ts';
import { ENGINES, opened } from './engine-places.ts';

/** A service, and a call that exchanges a value: resolves to the status and the body. */
function setUp(store: EngineStore, derivedPerRoot = 100) {
  const tokens = new TokenService({
    store,
    keys: [generateKey()],
    prefix: 'acme',
    limits: { store: store.leases },
    quotas: { derivedPerRoot },
  });
  const authenticate = fixedAccounts([{ username: 'ada', password: PASSWORD }]);
  const oauth = { issuer: 'https://auth.example', exchange: true };
  const handler = tokenHandler({ tokens, authenticate, oauth, clientAddress: () => '10.0.0.1' });
  const exchange = async (value: string) => {
    const body = new URLSearchParams(exchangeForm(value));
    const response = await handler(
      new Request('http://localhost/oauth/token', { method: 'POST', body }),
    );
    const { access_token: token, error } = await response.json();
    return { status: response.status, token, error };
  };
  return { tokens, exchange };
}

describe.each(ENGINES)('an exchange over $name', ({ isMissing, newPlace }) => {
  it.skipIf(isMissing)('obeys quota, uses, address and grace, as derive does', async () => {
    const { tokens, exchange } = setUp(opened(await newPlace()), 2);
    const issue = (limits?: object) =>
      tokens.issue({ account: 'ada', scopes: [ORDERS], ...(limits && { limits }) });
    const root = await issue();
    const [once, elsewhere, rotated] = [
      await issue({ uses: 1 }),
      await issue({ addresses: ['10.9.9.9'] }),
      await issue(),
    ];
    await tokens.rotate('ada', rotated.id, { graceSeconds: 3600 });

    const first = await exchange(root.value);
    expect(await tokens.allows(first.token, { scope: ORDERS })).toBe(true);
    const statuses = [];
    for (const value of [root.value, root.value, first.token]) {
      statuses.push((await exchange(value)).status);
    }
    expect(statuses).toEqual([200, 400, 400]);
    expect((await exchange(once.value)).status).toBe(200);
    expect(await exchange(once.value)).toMatchObject({ error: 'temporarily_unavailable' });
    expect(await exchange(elsewhere.value)).toMatchObject({ error: 'invalid_request' });
    expect((await exchange(rotated.value)).status).toBe(200);
    await tokens.revoke('ada', root.id);
    expect(await tokens.allows(first.token, { scope: ORDERS })).toBe(false);
    expect(await exchange(first.token)).toMatchObject({ error: 'invalid_request' });
  });
});
