import { describe, expect, it } from 'vitest';
import { generateKey, isTokenError, TokenRequests, TokenService } from '../../src/index.ts';
import type { EngineStore } from '../../src/ports/engine-store.ts';
import { OTHER_SCOPE, SCOPE } from '../support.ts';
import { ENGINES, opened } from './engine-places.ts';

const CLIENT = 'deploy bot';

/** Two processes on one store: the second one has a cache, which hears of changes if the store reports them. */
function setUp(store: EngineStore) {
  const options = { store, keys: [generateKey()], prefix: 'acme', deadlineMs: 20_000 };
  const tokens = new TokenService(options);
  const other = new TokenService({ ...options, cache: { maxStaleMs: 60_000 } });
  const verificationUri = 'https://shop.example/approve';
  const requests = new TokenRequests({ tokens, verificationUri, anonymous: true });
  const elevated = async (elevate: string) => {
    const asked = { client: CLIENT, scopes: [OTHER_SCOPE], elevate };
    const { userCode, deviceCode } = await requests.open(asked);
    await requests.approve('acme', userCode);
    const { token } = await requests.poll(deviceCode, { client: CLIENT });
    if (token === undefined) throw new Error('nothing was issued');
    return token;
  };
  const isAccepted = async (value: string) =>
    (await tokens.verify(value, { scope: OTHER_SCOPE })).ok;
  return { tokens, other, requests, elevated, isAccepted };
}

const CHANGES: readonly [
  name: string,
  change: (tokens: TokenService, id: string) => Promise<unknown>,
][] = [
  ['rotate', (tokens, id) => tokens.rotate('acme', id)],
  ['name', (tokens, id) => tokens.patch('acme', id, { name: 'new' })],
  ['narrow', (tokens, id) => tokens.patch('acme', id, { removeScopes: [OTHER_SCOPE] })],
  ['suspend', (tokens, id) => tokens.patch('acme', id, { suspended: true })],
  ['modify', (tokens, id) => tokens.modify('acme', id, { scopes: [SCOPE] })],
  ['revoke', (tokens, id) => tokens.revoke('acme', id)],
];

describe.each(ENGINES)('elevations over $name', ({ isMissing, newPlace }) => {
  it.skipIf(isMissing)('end with each change of the first token, or of its root', async () => {
    const { tokens, elevated, isAccepted } = setUp(opened(await newPlace()));
    const scopes = [SCOPE, OTHER_SCOPE];
    const left: string[] = [];
    for (const [name, change] of CHANGES) {
      for (const isRoot of [true, false]) {
        const root = await tokens.issue({ account: 'acme', scopes });
        const child = await tokens.derive(root.value, { scopes });
        const elevation = await elevated(isRoot ? root.value : child.value);
        expect(await isAccepted(elevation.value)).toBe(true);

        await change(tokens, root.id);

        if (await isAccepted(elevation.value)) left.push(`${name}, ${isRoot}`);
      }
    }
    expect(left).toEqual([]);
  });

  it.skipIf(isMissing)('are prolonged and widened by no verb', async () => {
    const { tokens, requests, elevated, isAccepted } = setUp(opened(await newPlace()));
    const { value } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    const elevation = await elevated(value);
    const { id } = elevation;
    const calls: (() => Promise<unknown>)[] = [
      () => tokens.derive(elevation.value, { scopes: [OTHER_SCOPE] }),
      () => tokens.rotate('acme', id),
      () => tokens.patch('acme', id, { addScopes: [SCOPE] }),
      () => tokens.patch('acme', id, { expiresIn: '30m' }),
      () => tokens.modify('acme', id, { scopes: [OTHER_SCOPE] }),
      () => requests.open({ client: CLIENT, scopes: [SCOPE], elevate: elevation.value }),
    ];

    for (const call of calls) {
      await expect(call()).rejects.toSatisfy(
        (error) => isTokenError(error) && error.code === 'invalid_request',
      );
    }
    expect(await tokens.get('acme', id)).toMatchObject({ version: 1, elevates: elevation.parent });
    expect(await isAccepted(elevation.value)).toBe(true);
  });

  it.skipIf(isMissing)('are found by a cache that knows only an older first token', async () => {
    const { tokens, other, elevated } = setUp(opened(await newPlace()));
    const first = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    await other.verify(first.value, { scope: SCOPE });
    await tokens.patch('acme', first.id, { name: 'new' });

    const elevation = await elevated(first.value);

    expect(await other.verify(elevation.value, { scope: OTHER_SCOPE })).toMatchObject({ ok: true });
    await other.close();
  });
});

describe.each(ENGINES)('makers over $name', ({ isMissing, newPlace }) => {
  it.skipIf(isMissing)('are listed, and their tokens end as the preview says', async () => {
    const { tokens } = setUp(opened(await newPlace()));
    const issue = (createdBy?: string, account = 'acme') =>
      tokens.issue({ account, scopes: [SCOPE], ...(createdBy !== undefined && { createdBy }) });
    const [first, second] = [await issue('grace'), await issue('grace')];
    const bystanders = [await issue('grac'), await issue(), await issue('grace', 'other')];
    const child = await tokens.derive(first.value, { scopes: [SCOPE] });
    const others = await tokens.derive(second.value, { scopes: [SCOPE], createdBy: 'ada' });
    const mine = [first.id, second.id, child.id].sort();

    const { tokens: listed } = await tokens.list({ account: 'acme', createdBy: 'grace' });
    expect(listed.map(({ id }) => id).sort()).toEqual(mine);
    const preview = await tokens.revokeAll('acme', { createdBy: 'grace', dryRun: true });
    expect(preview.tokens.map(({ id }) => id).sort()).toEqual(mine);
    expect([preview.count, preview.ending]).toEqual([3, 1]);
    expect(await tokens.revokeAll('acme', { createdBy: 'grace' })).toBe(3);

    const isLive = async ({ value }: { value: string }) => tokens.allows(value, { scope: SCOPE });
    for (const ended of [first, second, child, others]) expect(await isLive(ended)).toBe(false);
    for (const spared of bystanders) expect(await isLive(spared)).toBe(true);
  });
});
