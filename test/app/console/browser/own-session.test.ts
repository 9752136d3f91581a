import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SESSION_MS } from '../../../../src/app/server/sessions.ts';
import { ScopeCatalog } from '../../../../src/scope/index.ts';
import {
  bySession,
  faultsOf,
  hasChromium,
  type OpenOptions,
  OTHER_USERNAME,
  openForTest,
  PASSWORD,
  press,
  signIn,
} from './support.ts';

const ORDERS = 'GET:api.shop.example/orders';
const catalog = ScopeCatalog.from([ORDERS, 'POST:api.shop.example/orders']);

async function open(options: OpenOptions = {}) {
  const { ways, clock, endSessions } = bySession();
  const opened = await openForTest({ ways, ...options, service: { catalog } });
  const { context, url, page } = opened;
  /** Status of a call with a cookie, from outside of the browser. */
  const statusWith = async (cookie: string) => {
    const api = url.replace('/console', '/auth/token');
    return (await fetch(api, { headers: { cookie } })).status;
  };
  const cookies = async () =>
    (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
  const newTab = async () => {
    const tab = await context.newPage();
    tab.setDefaultTimeout(10_000);
    await tab.goto(url);
    return tab;
  };
  return { ...opened, page, clock, endSessions, statusWith, cookies, newTab };
}

const list = (page: Page) => page.getByRole('heading', { name: 'Tokens', exact: true }).waitFor();
const password = (page: Page) => page.getByLabel('Password');

describe.skipIf(!hasChromium)('a session of the service', () => {
  it('survives a reload, and opens a bookmark in a new tab', async () => {
    const { page, newTab, context, tokens } = await open();
    const { id } = await tokens.issue({ account: 'ada', scopes: [ORDERS], name: 'build' });
    expect(await faultsOf(page)).toEqual([]);
    await signIn(page);

    await page.reload();
    await list(page);
    const tab = await newTab();
    await list(tab);
    await tab.goto(`${tab.url()}#/token/${id}`);
    await tab.getByRole('heading', { name: 'build' }).waitFor();

    expect(await password(page).count()).toBe(0);
    expect(await page.getByTitle('Signed in as ada').textContent()).toBe('ada');
    expect(await page.evaluate('document.cookie')).toBe('');
    expect(await context.cookies()).toMatchObject([
      { httpOnly: true, sameSite: 'Strict', secure: false, path: '/auth' },
    ]);
  });

  it('sends the password once', async () => {
    const { page } = await open();
    const sent: string[] = [];
    page.on('request', async (request) => {
      if ((await request.headerValue('authorization')) !== null) {
        sent.push(`${request.method()} ${new URL(request.url()).pathname}`);
      }
    });

    await signIn(page);
    await page.getByText('No tokens yet').waitFor();
    await page.getByRole('link', { name: 'New token' }).first().click();
    await page.getByRole('button', { name: 'Create token' }).waitFor();

    expect(sent).toEqual(['POST /auth/session']);
  });

  it('ends after eight hours, and the page asks for the password in place', async () => {
    const { page, clock } = await open();
    await signIn(page);
    clock.advance(SESSION_MS / 1000);

    await page.getByLabel('State').selectOption('all');

    await page.getByRole('dialog', { name: 'Sign in again' }).waitFor();
    await page.reload();
    await password(page).waitFor();
  });

  it('never takes over a cookie that was set before', async () => {
    const { page, context, cookies, statusWith, url } = await open();
    const planted = { name: 'tokenwright-session', value: 'planted', domain: '127.0.0.1' };
    await context.addCookies([{ ...planted, path: '/auth' }]);
    await page.goto(url);

    await signIn(page);

    expect(await cookies()).not.toContain('planted');
    expect(await statusWith('tokenwright-session=planted')).toBe(401);
    expect(await statusWith(await cookies())).toBe(200);
  });

  it('asks again if the browser keeps no cookie', async () => {
    const { page, context } = await open();
    await page.route('**/auth/session', async (route) => {
      const response = await route.fetch();
      const { 'set-cookie': _, ...headers } = response.headers();
      // Playwright keeps the cookie, unlike the browser that this one stands for.
      await context.clearCookies();
      await route.fulfill({ response, headers });
    });
    await page.getByLabel('User name').fill('ada');
    await password(page).fill(PASSWORD);
    await page.keyboard.press('Enter');

    await page.getByText('Your browser does not keep the cookie').waitFor();
    expect(await faultsOf(page)).toEqual([]);
  });

  it('refuses a wrong password without a dialog of the browser', async () => {
    const { page } = await open();
    await page.getByLabel('User name').fill('ada');
    await password(page).fill('wrong');
    await page.keyboard.press('Enter');

    await page.getByText('The user name or the password is wrong.').waitFor();
  });
});

describe.skipIf(!hasChromium)('signing out', () => {
  it('ends the session in all tabs, and for a copy of the cookie', async () => {
    const { page, newTab, cookies, statusWith, tokens } = await open();
    await tokens.issue({ account: 'ada', scopes: [ORDERS], name: 'of ada' });
    await signIn(page);
    const tab = await newTab();
    await tab.getByText('of ada').waitFor();
    const copy = await cookies();
    expect(await statusWith(copy)).toBe(200);

    await press(page, 'Sign out');

    for (const each of [page, tab]) {
      await password(each).waitFor();
      expect(await each.content()).not.toContain('of ada');
    }
    expect(await cookies()).toBe('');
    expect(await statusWith(copy)).toBe(401);
    await page.reload();
    await password(page).waitFor();
  });

  it('says so if it fails, and works the next time', async () => {
    const { page, cookies, statusWith } = await open();
    await signIn(page);
    const copy = await cookies();
    await page.route('**/auth/session', (route) => route.abort());
    await press(page, 'Sign out');
    await page.getByText('The service does not answer.').waitFor();
    expect(await statusWith(copy)).toBe(200);
    await page.unroute('**/auth/session');

    await press(page, 'Sign out');

    await password(page).waitFor();
    expect(await statusWith(copy)).toBe(401);
  });

  it('of one browser leaves the others of the account signed in', async () => {
    const { page, context, url } = await open();
    const browser = context.browser();
    const elsewhere = await (await browser?.newContext())?.newPage();
    if (elsewhere === undefined) throw new Error('no browser');
    onTestFinished(() => elsewhere.context().close());
    await elsewhere.goto(url);
    await signIn(elsewhere);
    await signIn(page);

    await press(page, 'Sign out');
    await password(page).waitFor();

    await elsewhere.reload();
    await list(elsewhere);
  });
});

describe.skipIf(!hasChromium)('another tab', () => {
  it('that signs in with another account does not get the action of the first one', async () => {
    const { page, newTab, tokens, url } = await open();
    await signIn(page);
    await page.goto(`${url}#/new`);
    await page.getByLabel('Name', { exact: true }).fill('of ada');
    await page.getByRole('button', { name: 'Read-only: api.shop.example' }).click();
    const tab = await newTab();
    await list(tab);
    // As if the first tab had missed the sign-out.
    await tab.evaluate('BroadcastChannel.prototype.postMessage = () => {}');
    await press(tab, 'Sign out');
    await signIn(tab, OTHER_USERNAME);

    await press(page, 'Create token');
    const again = page.getByRole('dialog', { name: 'Sign in again' });
    await again.waitFor();
    expect((await tokens.list({ account: OTHER_USERNAME })).tokens).toEqual([]);
    await again.getByLabel('Password').fill(PASSWORD);
    await again.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Token created' }).waitFor();

    expect((await tokens.list({ account: 'ada' })).tokens).toMatchObject([{ name: 'of ada' }]);
    // The second tab sees that somebody else is signed in now.
    await tab.getByLabel('State').selectOption('all');
    await tab.getByRole('dialog', { name: 'Sign in again' }).waitFor();
    expect(await tab.content()).not.toContain('of ada');
  });
});

describe.skipIf(!hasChromium)('a page of another origin', () => {
  it.each([
    ['of the same site', '127.0.0.1', 'same-site', true],
    ['of another site', 'localhost', 'cross-site', false],
  ])('%s can neither use nor read the session', async (_, host, site, isCookieSent) => {
    const { page, context, tokens, url } = await open();
    const { id } = await tokens.issue({ account: 'ada', scopes: [ORDERS], name: 'build' });
    await signIn(page);
    const evil = createServer((_request, response) => {
      response.setHeader('content-type', 'text/html').end('<title>evil</title>');
    });
    await once(evil.listen(0), 'listening');
    onTestFinished(() => void evil.close());
    const other = await context.newPage();
    const sent: { readonly from: string | undefined; readonly hasCookie: boolean }[] = [];
    const statuses: number[] = [];
    other.on('request', async (request) => {
      if (!request.url().includes('/auth/')) return;
      const { 'sec-fetch-site': from, cookie } = await request.allHeaders();
      sent.push({ from, hasCookie: cookie !== undefined });
    });
    other.on('response', (answer) => {
      if (answer.url().includes('/auth/') && answer.request().method() !== 'GET') {
        statuses.push(answer.status());
      }
    });
    await other.goto(`http://${host}:${(evil.address() as AddressInfo).port}/`);
    const api = url.replace('/console', '/auth');

    const read = await other.evaluate(
      async ([base, token]) => {
        const body = '{"scopes":["GET:api.shop.example/orders"]}';
        const script = { 'content-type': 'application/json', 'x-tokenwright': 'x' };
        const all: [string, object][] = [
          ['/token', {}],
          ['/session', {}],
          ['/token', { mode: 'no-cors' }],
          ['/token', { method: 'POST', mode: 'no-cors', body }],
          ['/token', { method: 'POST', headers: script, body }],
          [`/token/${token}/rotate`, { method: 'POST', mode: 'no-cors' }],
          [`/token/${token}`, { method: 'DELETE', headers: script }],
          ['/session', { method: 'DELETE', headers: script }],
          ['/session', { method: 'POST', mode: 'no-cors' }],
        ];
        const texts: string[] = [];
        for (const [path, init] of all) {
          const answer = await fetch(base + path, { credentials: 'include', ...init }).catch(
            () => undefined,
          );
          texts.push((await answer?.text()) ?? '');
        }
        return texts.join('');
      },
      [api, id] as const,
    );
    const form = `<form method="post" action="${api}/token/${id}/rotate"></form>`;
    await other.setContent(form);
    await Promise.all([
      other.waitForRequest((request) => request.isNavigationRequest()),
      other.evaluate('document.forms[0].submit()'),
    ]);

    expect(read).toBe('');
    await expect.poll(() => sent.at(-1)?.from).toBe(site);
    expect(sent.some(({ hasCookie }) => hasCookie)).toBe(isCookieSent);
    expect(statuses.length).toBeGreaterThan(0);
    expect(statuses.filter((status) => status < 400)).toEqual([]);
    expect((await tokens.list({ account: 'ada' })).tokens).toMatchObject([{ id, version: 1 }]);
    await page.reload();
    await list(page);
  });
});
