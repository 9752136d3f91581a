import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { TokenId, TokenOrigin, TokenService } from '../../src/index.ts';
import { codeOf, OTHER_SCOPE, recordOf, refusalOf, SCOPE, setUp } from '../support.ts';

const MADE = { createdBy: 'grace@shop.example', purpose: 'Nightly report: größer' };
const BOTH = [SCOPE, OTHER_SCOPE];

async function made(input: object = MADE) {
  const setting = setUp();
  const token = await setting.tokens.issue({ account: 'acme', scopes: BOTH, ...input });
  return { ...setting, token };
}

describe('how a token came to be', () => {
  it('is shown with the token wherever it is shown', async () => {
    const { tokens, token } = await made();

    expect(token).toMatchObject(MADE);
    expect(await tokens.get('acme', token.id)).toMatchObject(MADE);
    expect((await tokens.list({ account: 'acme' })).tokens).toEqual([
      expect.objectContaining(MADE),
    ]);
    expect(await tokens.verify(token.value, { scope: SCOPE })).toMatchObject({ token: MADE });
    expect(await tokens.introspect(token.value)).toMatchObject(MADE);
  });

  it.each<[string, (tokens: TokenService, id: string) => Promise<unknown>]>([
    ['modify', (tokens, id) => tokens.modify('acme', id, { scopes: [SCOPE] })],
    ['patch', (tokens, id) => tokens.patch('acme', id, { name: 'new', metadata: { a: 1 } })],
    ['suspend', (tokens, id) => tokens.patch('acme', id, { suspended: true })],
    ['rotate', (tokens, id) => tokens.rotate('acme', id)],
    ['rotate at first use', (tokens, id) => tokens.rotate('acme', id, { activate: 'first-use' })],
    ['revoke', (tokens, id) => tokens.revoke('acme', id)],
  ])('is not changed by %s', async (_, change) => {
    const { tokens, token } = await made();

    await change(tokens, token.id);

    expect(await tokens.get('acme', token.id, { state: 'all' })).toMatchObject(MADE);
  });

  it.each(['createdBy', 'purpose', 'actor', 'origin'])('cannot be changed: %s', async (member) => {
    const { tokens, token } = await made();

    const change = tokens.patch('acme', token.id, { [member]: 'x' } as object);

    expect(await refusalOf(change)).toMatchObject({
      code: 'invalid_request',
      details: { unknown: member },
    });
  });

  it.each([
    ['createdBy', '', false],
    ['createdBy', 'ä'.repeat(127), true],
    ['createdBy', 'ä'.repeat(128), false],
    ['createdBy', 'line\nbreak', false],
    ['createdBy', 7, false],
    ['purpose', '', false],
    ['purpose', 'ä'.repeat(200), true],
    ['purpose', 'x'.repeat(201), false],
    ['purpose', 'bell\u0007', false],
    ['purpose', null, false],
  ])('may have the %s %j: %s', async (member, value, isAllowed) => {
    const { tokens } = setUp();

    const issued = codeOf(
      tokens.issue({ account: 'acme', scopes: BOTH, [member]: value } as never),
    );

    await (isAllowed
      ? expect(issued).rejects.toThrow('was not refused')
      : expect(issued).resolves.toBe('invalid_request'));
  });

  it('leaves records without it as they were', async () => {
    const { store, token } = await made({});

    expect((await recordOf(store, token.id)).origin).toBeUndefined();
    expect(token).not.toHaveProperty('createdBy');
  });
});

describe('a derived token', () => {
  it('inherits who made it, and nothing else', async () => {
    const { tokens, token } = await made();

    const child = await tokens.derive(token.value, { scopes: [SCOPE] });
    const grandchild = await tokens.derive(child.value, { scopes: [SCOPE], createdBy: 'bob' });

    expect(child.createdBy).toBe(MADE.createdBy);
    expect(child).not.toHaveProperty('purpose');
    expect(grandchild.createdBy).toBe('bob');
  });

  it('names who acts, proven by a live value of any account', async () => {
    const { tokens, token } = await made();
    const bot = await tokens.issue({ account: 'bot', scopes: [OTHER_SCOPE] });

    const child = await tokens.derive(token.value, {
      scopes: [SCOPE],
      purpose: 'one task',
      actorToken: bot.value,
    });
    await tokens.revoke('bot', bot.id);

    const actor: TokenOrigin['actor'] = { sub: 'bot', token: bot.id };
    expect(child).toMatchObject({ account: 'acme', actor, purpose: 'one task' });
    expect((await tokens.verify(child.value, { scope: SCOPE })).ok).toBe(true);
    expect((await tokens.verify(child.value, { scope: OTHER_SCOPE })).ok).toBe(false);
  });

  it.each<[string, (tokens: TokenService, id: string) => Promise<unknown>]>([
    ['revoked', (tokens, id) => tokens.revoke('bot', id)],
    ['suspended', (tokens, id) => tokens.patch('bot', id, { suspended: true })],
    ['rotated away', (tokens, id) => tokens.rotate('bot', id)],
  ])('is refused an actor that was %s', async (_, end) => {
    const { tokens, token } = await made();
    const bot = await tokens.issue({ account: 'bot', scopes: [SCOPE] });
    await end(tokens, bot.id);

    const derived = tokens.derive(token.value, { scopes: [SCOPE], actorToken: bot.value });

    expect(await refusalOf(derived)).toMatchObject({
      code: 'invalid_token',
      details: { member: 'actorToken' },
    });
    expect((await tokens.list({ account: 'acme' })).tokens).toHaveLength(1);
  });

  it('is refused an actor from a wrong address', async () => {
    const { tokens, token } = await made();
    const limits = { addresses: ['10.0.0.0/8'] };
    const bot = await tokens.issue({ account: 'bot', scopes: [SCOPE], limits });
    const input = { scopes: [SCOPE], actorToken: bot.value };

    expect(await codeOf(tokens.derive(token.value, input, { address: '192.0.2.1' }))).toBe(
      'invalid_token',
    );
    const child = await tokens.derive(token.value, input, { address: '10.0.0.7' });
    expect(child.actor?.sub).toBe('bot');
  });

  it('says of its own value first what is wrong', async () => {
    const { tokens } = await made();

    const derived = tokens.derive('x', { scopes: [SCOPE], actorToken: 'y' });

    expect((await refusalOf(derived)).details).not.toHaveProperty('member');
  });
});

describe('list by who made it', () => {
  it('finds exactly those, page by page', async () => {
    const { tokens, clock } = setUp();
    for (const createdBy of ['ann', 'bob', 'ann', 'Ann', undefined, 'ann']) {
      await tokens.issue({ account: 'acme', scopes: [SCOPE], createdBy });
      clock.advance(1);
    }
    const list = { account: 'acme', createdBy: 'ann', limit: 2 };

    const first = await tokens.list(list);
    const second = await tokens.list({ ...list, cursor: first.cursor });

    expect([...first.tokens, ...second.tokens].map((token) => token.createdBy)).toEqual([
      'ann',
      'ann',
      'ann',
    ]);
    expect(second.cursor).toBeUndefined();
    const other = tokens.list({ ...list, createdBy: 'bob', cursor: first.cursor });
    expect(await codeOf(other)).toBe('invalid_request');
  });
});

describe('an imported token', () => {
  it('can have been made by somebody', async () => {
    const foreign = [{ name: 'sanctum', hashedPart: (value: string) => value }];
    const { tokens, clock } = setUp({ foreign });
    const digest = createHash('sha256').update('old').digest('hex');
    const expiresAt = new Date(clock.now().getTime() + 86_400_000);

    const old = { account: 'acme', digest, format: 'sanctum', scopes: [SCOPE], expiresAt };
    expect(await tokens.import({ ...old, createdBy: 'ann' })).toMatchObject({ createdBy: 'ann' });
  });
});

describe('revokeAll of what somebody made', () => {
  /** Ann's root with three below it (one of which Bob made, and one of his below hers), and tokens of others. */
  async function family() {
    const setting = setUp();
    const { tokens } = setting;
    const issue = (account: string, createdBy?: string) =>
      tokens.issue({ account, scopes: BOTH, createdBy });
    const root = await issue('acme', 'ann');
    const child = await tokens.derive(root.value, { scopes: BOTH });
    const bobs = await tokens.derive(root.value, { scopes: BOTH, createdBy: 'bob' });
    const below = await tokens.derive(bobs.value, { scopes: BOTH, createdBy: 'ann' });
    const spared = [
      await issue('acme', 'bob'),
      await issue('acme', 'Ann'),
      await issue('acme'),
      await issue('other', 'ann'),
    ];
    const dead = await issue('acme', 'ann');
    await tokens.revoke('acme', dead.id);
    const suspended = await issue('acme', 'ann');
    await tokens.patch('acme', suspended.id, { suspended: true });
    return { ...setting, made: [root, child, below, suspended], bobs, spared };
  }

  it('names exactly what would die, and then ends it', async () => {
    const { tokens, store, made, bobs, spared } = await family();
    const ids = made.map(({ id }) => id).sort();

    const preview = await tokens.revokeAll('acme', { createdBy: 'ann', dryRun: true });

    expect(preview).toMatchObject({ count: 4, ending: 1 });
    expect(preview.tokens.map(({ id }) => id).sort()).toEqual(ids);
    expect(JSON.stringify(preview)).not.toContain(made[0]?.value);
    expect((await recordOf(store, made[0]?.id as never)).revokedAt).toBeUndefined();
    expect(await tokens.revokeAll('acme', { createdBy: 'ann' })).toBe(4);
    for (const { value } of [...made, bobs]) {
      expect((await tokens.verify(value, { scope: SCOPE })).ok).toBe(false);
    }
    for (const { value } of spared) {
      expect((await tokens.verify(value, { scope: SCOPE })).ok).toBe(true);
    }
    const after = await tokens.revokeAll('acme', { createdBy: 'ann', dryRun: true });
    expect(after).toEqual({ count: 0, ending: 0, tokens: [] });
    expect(await tokens.revokeAll('acme', { createdBy: 'ann' })).toBe(0);
  });

  it('previews all tokens of an account without a name', async () => {
    const { tokens } = await family();

    const preview = await tokens.revokeAll('acme', { dryRun: true });

    expect(preview).toMatchObject({ count: 8, ending: 0 });
  });

  it('shows the first hundred, counts all, and reports each batch', async () => {
    const { tokens } = setUp();
    const input = { account: 'acme', scopes: [SCOPE], createdBy: 'ann' };
    await Promise.all(Array.from({ length: 250 }, () => tokens.issue(input)));
    const counts: number[] = [];

    const preview = await tokens.revokeAll('acme', { createdBy: 'ann', dryRun: true });
    const count = await tokens.revokeAll('acme', {
      createdBy: 'ann',
      onProgress: (sofar) => counts.push(sofar),
    });

    expect([preview.count, preview.tokens.length, count]).toEqual([250, 100, 250]);
    expect(counts).toEqual([100, 200, 250]);
  });

  it('finds what is made while it runs', async () => {
    const { tokens, store } = setUp();
    const input = { account: 'acme', scopes: [SCOPE], createdBy: 'ann' };
    await tokens.issue(input);
    let late = 3;
    store.break('revoke', async (id: TokenId, account: string, at: Date) => {
      late -= 1;
      if (late >= 0) await tokens.issue(input);
      return store.inner.revoke(id, account, at);
    });

    expect(await tokens.revokeAll('acme', { createdBy: 'ann' })).toBe(4);
  });

  it.each([{ createdBy: '' }, { createdBy: 7 }, { dryRun: 'yes' }, { madeBy: 'ann' }])(
    'refuses %j',
    async (options) => {
      const { tokens } = await family();

      expect(await codeOf(tokens.revokeAll('acme', options as never))).toBe('invalid_request');
    },
  );
});
