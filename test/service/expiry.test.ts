import { describe, expect, it } from 'vitest';
import { refusalOf, SCOPE, setUp } from '../support.ts';

const input = { account: 'acme', scopes: [SCOPE] };
const DAY = 86_400;

async function begin() {
  const setting = setUp({ lifetime: { maxSeconds: 90 * DAY } });
  const { id } = await setting.tokens.issue(input);
  const start = setting.clock.now().getTime();
  return { ...setting, id, start };
}

type Lifetime = { ttlSeconds?: number; expiresIn?: number | string; expiresAt?: Date };

/** The three verbs that take a lifetime. */
const VERBS = {
  issue: ({ tokens }: Awaited<ReturnType<typeof begin>>, lifetime: Lifetime) =>
    tokens.issue({ ...input, ...lifetime }),
  modify: ({ tokens, id }: Awaited<ReturnType<typeof begin>>, lifetime: Lifetime) =>
    tokens.modify('acme', id, { scopes: [SCOPE], ...lifetime }),
  patch: ({ tokens, id }: Awaited<ReturnType<typeof begin>>, lifetime: Lifetime) =>
    tokens.patch('acme', id, lifetime),
};

describe.each(Object.entries(VERBS))('%s', (_, call) => {
  it.each([
    ['30d', 30 * DAY],
    ['90d', 90 * DAY],
    ['12h', 43_200],
    ['1s', 1],
    [3600, 3600],
  ])('accepts expiresIn %j', async (expiresIn, seconds) => {
    const setting = await begin();

    const token = await call(setting, { expiresIn });

    expect(token.expiresAt.getTime()).toBe(setting.start + seconds * 1000);
  });

  it('accepts expiresAt', async () => {
    const setting = await begin();
    const expiresAt = new Date(setting.start + 5000);

    expect((await call(setting, { expiresAt })).expiresAt).toEqual(expiresAt);
  });

  it.each(['91d', '0d', '30', '30 days', 0, -1, 1.5, 90 * DAY + 1, Number.NaN, true, null, {}])(
    'refuses expiresIn $0, naming the member',
    async (expiresIn) => {
      const setting = await begin();

      const { code, message } = await refusalOf(call(setting, { expiresIn } as Lifetime));

      expect(code).toBe('invalid_ttl');
      expect(message).toMatch(/^expiresIn /);
    },
  );

  it('refuses an expiresAt that is not in the future, or too far in it', async () => {
    const setting = await begin();

    for (const offset of [0, -1000, (90 * DAY + 1) * 1000]) {
      const expiresAt = new Date(setting.start + offset);
      expect((await refusalOf(call(setting, { expiresAt }))).code).toBe('invalid_expire');
    }
  });

  it('refuses expiresIn together with expiresAt', async () => {
    const setting = await begin();
    const expiresAt = new Date(setting.start + 5000);

    const { code, message } = await refusalOf(call(setting, { expiresIn: '1d', expiresAt }));

    expect(code).toBe('invalid_request');
    expect(message).toBe(
      'expiresAt cannot be given together with another lifetime or expiry; give one of them',
    );
  });
});

describe('issue', () => {
  it('refuses ttlSeconds together with another lifetime, and accepts it alone', async () => {
    const { tokens, start } = await begin();

    for (const other of [{ expiresIn: 60 }, { expiresAt: new Date(start + 5000) }]) {
      const refusal = await refusalOf(tokens.issue({ ...input, ttlSeconds: 60, ...other }));
      expect(refusal.code).toBe('invalid_request');
      expect(refusal.message).toMatch(/^ttlSeconds cannot be given together/);
    }
    const { expiresAt } = await tokens.issue({ ...input, ttlSeconds: 60 });
    expect(expiresAt.getTime()).toBe(start + 60_000);
  });
});
