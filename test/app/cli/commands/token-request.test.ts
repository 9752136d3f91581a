import { createServer } from 'node:http';
import { beforeEach, describe, expect, it } from 'vitest';
import { fixedAccounts, tokenHandler, toNodeListener } from '../../../../src/http/index.ts';
import {
  generateKey,
  MemoryTokenStore,
  TokenRequests,
  TokenService,
} from '../../../../src/index.ts';
import { manualClock } from '../../../../src/testing/index.ts';
import { hideVariables, listen, run } from '../support.ts';

const ORDERS = 'GET:shop.example/orders';
const REFUND = 'POST:shop.example/refunds';
const VALUE = /^tw_1k1[0-9A-Za-z]{55}\n$/;

beforeEach(hideVariables);

/** Decides about a request, after so many polls that were answered before. */
type Decide = (requests: TokenRequests, userCode: string) => Promise<unknown>;

/** A service that asks for no pauses, whose requests are decided before their first poll, or a later one. */
async function servedRequests(decide: Decide, { after = 0 } = {}) {
  const clock = manualClock();
  const store = new MemoryTokenStore({ clock });
  const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'tw', clock });
  const verificationUri = 'https://auth.example/approve';
  const requests = new TokenRequests({ tokens, verificationUri, anonymous: true });
  const handler = tokenHandler({
    tokens,
    authenticate: fixedAccounts([{ username: 'ada', password: 'correct-horse' }]),
    oauth: { issuer: 'https://auth.example', requests },
  });
  let userCode = '';
  let polls = 0;
  const answer = async (request: Request): Promise<Response> => {
    const isPoll = request.url.endsWith('/oauth/token');
    if (isPoll && polls === after) await decide(requests, userCode);
    if (isPoll) polls += 1;
    const response = await handler(request);
    clock.advance(10);
    if (!request.url.endsWith('/oauth/device') || response.status !== 200) return response;
    const opened = await response.json();
    userCode = opened.user_code;
    return Response.json({ ...opened, interval: 0 });
  };
  const port = await listen(createServer(toNodeListener(answer)));
  const ask = (words: readonly string[], input?: string) =>
    run(
      ['token', 'request', '--server', `http://127.0.0.1:${port}`, '--client', 'bot', ...words],
      {},
      input,
    );
  return { tokens, requests, ask, polls: () => polls };
}

const approve: Decide = (requests, userCode) => requests.approve('ada', userCode, { by: 'ada' });

describe('token request', () => {
  it('prints the value, and to standard error where to approve it', async () => {
    const { ask, tokens } = await servedRequests(approve);

    const { stdout, stderr, code } = await ask([
      ...['--scope', ORDERS, '--purpose', 'release', '--ttl', '15m'],
    ]);

    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(VALUE) });
    expect(stderr).toMatch(
      /^Somebody has to approve this\. Open\n {2}https:\/\/auth\.example\/approve\nand type\n {2}[A-Z]{4}-[A-Z]{4}\nIt can be approved for 10 minutes\.\n$/,
    );
    const token = await tokens.introspect(stdout.trim());
    expect(token).toMatchObject({ account: 'ada', name: 'bot', purpose: 'release' });
    expect(token && (token.expiresAt.getTime() - token.createdAt.getTime()) / 1000).toBe(900);
  });

  it('goes on asking while nobody has decided', async () => {
    const { ask, polls } = await servedRequests(approve, { after: 2 });

    expect(await ask(['--scope', ORDERS])).toMatchObject({ code: 0 });
    expect(polls()).toBe(3);
  });

  it('ends with 3 once somebody has denied it', async () => {
    const { ask } = await servedRequests((requests, code) => requests.deny('ada', code));

    const { code, stdout, stderr } = await ask(['--scope', ORDERS]);

    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toMatch(/\nthe request was denied\n$/);
  });

  it('asks for more than the token on standard input holds', async () => {
    const { ask, tokens } = await servedRequests(approve);
    const first = await tokens.issue({ account: 'ada', scopes: [ORDERS] });

    const { stdout } = await ask(['--scope', REFUND, '--elevate'], `${first.value}\n`);

    expect(await tokens.introspect(stdout.trim())).toMatchObject({
      elevates: first.id,
      scopes: [REFUND],
    });
  });

  it('asks for the scopes of a challenge on the host that refused', async () => {
    const { ask, tokens } = await servedRequests(approve);
    const challenge = `Bearer error="insufficient_scope", scope="${REFUND} GET:bank.example/*"`;

    const { stdout } = await ask([
      ...['--challenge', challenge, '--resource', 'https://shop.example/mcp'],
    ]);

    expect(await tokens.introspect(stdout.trim())).toMatchObject({ scopes: [REFUND] });
  });

  it.each<[string, readonly string[], RegExp]>([
    ['nothing to ask for', [], /give either --scope, or --challenge/],
    ['both', ['--scope', ORDERS, '--challenge', 'x'], /give either --scope, or --challenge/],
    ['a challenge alone', ['--challenge', 'Bearer scope="x"'], /belong together/],
    ['a resource alone', ['--scope', ORDERS, '--resource', 'https://a.example'], /belong together/],
    [
      'a challenge without scopes',
      ['--challenge', 'Bearer', '--resource', 'https://a.example'],
      /must be a WWW-Authenticate header that names a scope/,
    ],
  ])('refuses %s', async (_, words, message) => {
    const { ask } = await servedRequests(approve);

    expect(await ask(words)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(message),
    });
  });

  it('says how to start a service that takes none', async () => {
    const store = new MemoryTokenStore();
    const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'tw' });
    const handler = tokenHandler({ tokens, authenticate: () => null });
    const port = await listen(createServer(toNodeListener(handler)));
    const words = ['token', 'request', '--client', 'bot', '--scope', ORDERS];

    const { code, stderr } = await run([...words, '--server', `http://127.0.0.1:${port}`]);

    expect(code).toBe(1);
    expect(stderr).toContain('takes no requests for tokens: start it with serve --issuer URL');
  });
});
