import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { SessionAccount } from '../../../../src/http/sign-in/sign-in.ts';
import { ScopeCatalog } from '../../../../src/scope/index.ts';
import {
  byPassword,
  hasChromium,
  type Opened,
  type OpenOptions,
  openForTest,
  signIn,
} from './support.ts';

const catalog = ScopeCatalog.from([
  'GET:api.shop.example/orders$',
  'POST:api.shop.example/orders$',
]);
const COOKIE = { name: 'session', value: 'of-bea', domain: '127.0.0.1', path: '/' };

/** Accepts the cookie of a person who is signed in to the application around the console. */
const session: SessionAccount = ({ headers }) =>
  headers.get('cookie') === 'session=of-bea' ? 'bea' : null;
/** Accepts a cookie for any account, which it names. */
const accountOf: SessionAccount = ({ headers }) =>
  /session=of-(\w+)/.exec(headers.get('cookie') ?? '')?.[1] ?? null;

const SIGNED_IN = {
  storageState: {
    cookies: [{ ...COOKIE, expires: -1, httpOnly: true, secure: false, sameSite: 'Lax' as const }],
    origins: [],
  },
};

function open(options: OpenOptions): Promise<Opened> {
  return openForTest({ service: { catalog }, ...options });
}

const tokensOf = async ({ tokens }: Opened, account: string) =>
  (await tokens.list({ account })).tokens.length;

describe.skipIf(!hasChromium)('a console with the session of its host', () => {
  it.each([
    ['with sessions only', { session }],
    ['with sessions and passwords', { session, authenticate: byPassword }],
  ])('creates tokens for its account without a password, %s', async (_, ways) => {
    const shown = await open({ ways, browser: SIGNED_IN });
    const { page, url } = shown;
    await page.getByRole('heading', { name: 'Tokens', exact: true }).waitFor();

    await page.goto(`${url}#/new`);
    await page.getByRole('button', { name: 'Read-only: api.shop.example' }).click();
    await page.getByRole('button', { name: 'Create token' }).click();
    await page.getByRole('heading', { name: 'Token created' }).waitFor();

    expect(await tokensOf(shown, 'bea')).toBe(1);
  });

  it('refuses people without a session until they sign in', async () => {
    const { page, context } = await open({ ways: { session } });

    await page.getByText('You are not signed in.').waitFor();
    expect(await page.getByLabel('Password').count()).toBe(0);
    await context.addCookies([COOKIE]);
    await page.getByRole('button', { name: 'Try again' }).click();

    await page.getByRole('heading', { name: 'Tokens', exact: true }).waitFor();
  });

  it('never completes the action of one account for another', async () => {
    const shown = await open({ ways: { session: accountOf }, browser: SIGNED_IN });
    const { page, tokens, context, url } = shown;
    await tokens.issue({
      account: 'cid',
      scopes: ['GET:api.shop.example/orders$'],
      name: 'of cid',
    });
    await page.goto(`${url}#/new`);
    await page.getByLabel('Name', { exact: true }).fill('of bea');
    await page.getByRole('button', { name: 'Read-only: api.shop.example' }).click();

    // In another tab, she signs out and somebody else signs in.
    await context.addCookies([{ ...COOKIE, value: 'of-cid' }]);
    await page.getByRole('button', { name: 'Create token' }).click();
    const dialog = page.getByRole('dialog', { name: 'Sign in again' });
    await dialog.getByRole('button', { name: 'Go on' }).click();
    await dialog.getByText('signed in with another account').waitFor();
    expect(await tokensOf(shown, 'cid')).toBe(1);
    expect(await page.content()).not.toContain('of cid');

    await context.addCookies([COOKIE]);
    await dialog.getByRole('button', { name: 'Go on' }).click();
    await page.getByRole('heading', { name: 'Token created' }).waitFor();
    expect((await tokens.list({ account: 'bea' })).tokens.map(({ name }) => name)).toEqual([
      'of bea',
    ]);
  });

  it('shows another account after a sign-out, and nothing of the first one', async () => {
    const { page, tokens, context } = await open({
      ways: { session: accountOf },
      browser: SIGNED_IN,
    });
    for (const account of ['bea', 'cid']) {
      const scopes = ['GET:api.shop.example/orders$'];
      await tokens.issue({ account, scopes, name: `of ${account}` });
    }
    await page.reload();
    await page.getByText('of bea').waitFor();

    await context.addCookies([{ ...COOKIE, value: 'of-cid' }]);
    await page.getByLabel('State').selectOption('all');
    await page.getByRole('dialog').getByRole('button', { name: 'Sign out' }).click();

    await page.getByText('of cid').waitFor();
    expect(await page.content()).not.toContain('of bea');
  });

  it('accepts a password without a session if both are enabled', async () => {
    const { page } = await open({ ways: { session, authenticate: byPassword } });

    await signIn(page);
  });

  it('cannot be used by a script of another origin', async () => {
    const accounts: unknown[] = [];
    const noted: SessionAccount = async (request, incoming) => {
      const account = await session(request, incoming);
      if (request.method === 'POST') accounts.push(account);
      return account;
    };
    const shown = await open({ ways: { session: noted }, browser: SIGNED_IN });
    const { page, url } = shown;
    await page.getByRole('heading', { name: 'Tokens', exact: true }).waitFor();
    // Another port is another origin of the same site, so even a strict cookie is sent.
    const evil = createServer((_, response) => void response.end('<title>evil</title>'));
    await once(evil.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void evil.close());
    const other = await shown.context.newPage();
    await other.goto(`http://127.0.0.1:${(evil.address() as AddressInfo).port}/`);
    const api = url.replace('/console', '/auth/token');

    await other.evaluate(async (address) => {
      const post = (init: object) =>
        fetch(address, { method: 'POST', credentials: 'include', ...init }).catch(() => {});
      const body = '{"scopes":["GET:api.shop.example/orders$"]}';
      await post({ mode: 'no-cors', body });
      // Browsers send a preflight request before such headers, and the service refuses it.
      await post({ headers: { 'content-type': 'application/json', 'x-tokenwright': 'x' }, body });
    }, api);

    // The first request was sent with the session of the person, and was refused.
    expect(accounts).toEqual(['bea']);
    expect(await tokensOf(shown, 'bea')).toBe(0);
  });
});
