import { createServer } from 'node:http';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { fixedAccounts, tokenHandler, toNodeListener } from '../../../../src/http/index.ts';
import { generateKey, MemoryTokenStore, TokenService } from '../../../../src/index.ts';
import { hideVariables, listen, newFolder, outcomeOf, run, serviceOn } from '../support.ts';

const ORDERS = 'GET:shop.example/orders';
const VALUE = /^tw_1k1[0-9A-Za-z]{55}$/;
const DERIVED = /^derived {2}(\d+) live/m;
const ALL_LIVE = ['ok', 'ok', 'ok', 'ok', 'ok'];

beforeEach(hideVariables);

/** A token, one that was derived from it and one from that, and another token with a derived one. */
async function familiesOf(tokens: TokenService) {
  const asked = { scopes: [ORDERS] };
  const issue = () => tokens.issue({ account: 'ada', ...asked });
  const [root, stranger] = [await issue(), await issue()];
  const child = await tokens.derive(root.value, asked);
  const grandchild = await tokens.derive(child.value, asked);
  const strangers = await tokens.derive(stranger.value, asked);
  /** What a verification says of each of them: `ok`, or why not. */
  const answers = () =>
    Promise.all(
      [root, child, grandchild, stranger, strangers].map(async ({ value }) => {
        const verdict = await tokens.verify(value, { scope: ORDERS });
        return verdict.ok ? 'ok' : verdict.reason;
      }),
    );
  return { root, grandchild, answers };
}

/** The families in a store like that of serve, and the flags of their account. */
async function stored() {
  const data = newFolder();
  return { ...(await familiesOf(serviceOn(data))), as: ['--data', data, '--account', 'ada'] };
}

/** The families in a running service, with the credentials of their account in variables. */
async function served() {
  const tokens = new TokenService({
    store: new MemoryTokenStore(),
    keys: [generateKey()],
    prefix: 'tw',
  });
  const authenticate = fixedAccounts([{ username: 'ada', password: 'pw' }]);
  const handler = toNodeListener(tokenHandler({ tokens, authenticate }));
  const url = `http://127.0.0.1:${await listen(createServer(handler))}`;
  vi.stubEnv('TOKENWRIGHT_USER', 'ada');
  vi.stubEnv('TOKENWRIGHT_PASSWORD', 'pw');
  return { ...(await familiesOf(tokens)), as: ['--url', url] };
}

describe.each([
  ['in a store', stored],
  ['behind a service', served],
])('the tokens that were derived from one %s', (_, families) => {
  it('outlive its rotation, which tells how many there are', async () => {
    const { root, grandchild, answers, as } = await families();

    const rotated = await outcomeOf(['token', 'rotate', root.id, ...as]);
    const last = await outcomeOf(['token', 'rotate', grandchild.id, '--grace', '1m', ...as]);

    expect(rotated.json).toMatchObject({ id: root.id, version: 2, descendants: 2 });
    expect(DERIVED.exec(`${rotated.notes}`)?.[1]).toBe('2');
    expect(last.json).toMatchObject({ id: grandchild.id, descendants: 0 });
    expect(last.notes).not.toMatch(DERIVED);
    expect(await answers()).toEqual(['unknown', 'ok', 'ok', 'ok', 'ok']);
  });

  it('end with --end-derived, and no others do', async () => {
    const { root, answers, as } = await families();

    const rotated = await outcomeOf(['token', 'rotate', root.id, '--end-derived', ...as]);

    expect(rotated.text).toMatch(VALUE);
    expect(rotated.json).toMatchObject({ token: rotated.text, version: 2, descendants: 0 });
    expect(rotated.notes).not.toMatch(DERIVED);
    expect(await answers()).toEqual(['unknown', 'revoked', 'revoked', 'ok', 'ok']);
  });

  it.each([
    [['--descendants'], 'revoked'],
    [[], 'ancestor_revoked'],
  ])('are refused after its revocation with %j as %s', async (flags, reason) => {
    const { root, answers, as } = await families();

    const revoked = await outcomeOf(['token', 'revoke', root.id, ...flags, ...as]);

    expect(revoked.json).toEqual({ revoked: 1 });
    expect(await answers()).toEqual(['revoked', reason, reason, 'ok', 'ok']);
  });

  it.each([
    ['rotate', ['--end-derived', '--grace', '1m'], 'leave --activate, --grace and --cancel out'],
    ['rotate', ['--end-derived', '--activate', 'first-use'], 'leave --activate, --grace'],
    ['rotate', ['--end-derived', '--cancel'], 'leave --activate, --grace and --cancel out'],
    ['rotate', ['--end-derived', '--if-version', '7'], 'the token has version 1 now'],
    ['rotate', ['--end-derive'], 'has no flag --end-derive'],
    ['rotate', ['--descendants'], 'has no flag --descendants'],
    ['revoke', ['--descendants', '--if-version', '7'], 'the token has version 1 now'],
    ['revoke', ['--descendant'], 'has no flag --descendant'],
    ['revoke', ['--end-derived'], 'has no flag --end-derived'],
  ])('and the token itself stay after %s %j, which is refused', async (verb, flags, message) => {
    const { root, answers, as } = await families();

    const refused = outcomeOf(['token', verb, root.id, ...flags, ...as]);

    await expect(refused).rejects.toThrow(message);
    expect(await answers()).toEqual(ALL_LIVE);
  });

  it.each(['rotate --end-derived', 'revoke --descendants'])(
    'stay after %s of a token that the account does not have',
    async (words) => {
      const { answers, as } = await families();
      const [verb = '', flag = ''] = words.split(' ');

      const absent = await outcomeOf(['token', verb, '0'.repeat(22), flag, ...as]);

      expect(absent).toMatchObject({ json: null, isNegative: true });
      expect(await answers()).toEqual(ALL_LIVE);
    },
  );
});

describe('token rotate --end-derived and token revoke --descendants with --json', () => {
  it.each([
    ['rotate', '--end-derived', { descendants: 0 }, ['unknown', 'revoked', 'revoked', 'ok', 'ok']],
    ['revoke', '--descendants', { revoked: 1 }, ['revoked', 'revoked', 'revoked', 'ok', 'ok']],
  ] as const)('%s %s prints one object, and null for another account', async (...row) => {
    const [verb, flag, printed, after] = row;
    const { root, answers, as } = await stored();
    const call = ['token', verb, root.id, flag, '--json', ...as];

    expect(await run([...call, '--account', 'bob'])).toMatchObject({ code: 3, stdout: 'null\n' });
    expect(await answers()).toEqual(ALL_LIVE);
    const { code, stdout, stderr } = await run(call);

    expect([code, stderr]).toEqual([0, '']);
    expect(JSON.parse(stdout)).toMatchObject(printed);
    expect(await answers()).toEqual(after);
  });
});
