import { describe, expect, it, onTestFinished } from 'vitest';
import { ScopeCatalog } from '../../../../src/scope/index.ts';
import { startProxy } from '../proxy.ts';
import { hasChromium, openForTest, signIn, USERNAME } from './support.ts';

const catalog = ScopeCatalog.from(['GET:api.shop.example/orders$']);
const ADDED = '/tokens-ui';
const unchanged = (path: string) => path;
const renamed = (path: string) => path.replace(`${ADDED}/`, '/console/');
const stripped = (path: string) => (path.startsWith(ADDED) ? path.slice(ADDED.length) : '/nowhere');

describe.skipIf(!hasChromium)('the console behind a proxy that adds a path', () => {
  it.each([
    ['strips the path', '', `${ADDED}/console`, `${ADDED}/auth`, stripped],
    [
      'strips the path, with a slash at the end',
      '',
      `${ADDED}/console/`,
      `${ADDED}/auth`,
      stripped,
    ],
    ['keeps the path', ADDED, `${ADDED}/console`, `${ADDED}/auth`, unchanged],
    [
      'keeps the path, with a slash at the end',
      ADDED,
      `${ADDED}/console/`,
      `${ADDED}/auth`,
      unchanged,
    ],
    ['gives the page another name', '', `${ADDED}/`, '/auth', renamed],
  ])('creates a token if the proxy %s', async (_, prefix, path, api, rewrite) => {
    const { page, tokens, url } = await openForTest({ service: { catalog }, prefix });
    const proxy = await startProxy(new URL(url).origin, rewrite);
    onTestFinished(proxy.close);

    await page.goto(proxy.url + path);
    await signIn(page);
    await page.getByRole('main').getByRole('link', { name: 'New token' }).first().click();
    await page.getByRole('checkbox', { name: 'GET /orders (api.shop.example)' }).check();
    await page.getByText('The same call as JSON and curl').click();
    const call = await page.getByRole('region', { name: 'curl', exact: true }).textContent();
    await page.getByRole('button', { name: 'Create token' }).click();
    await page.getByRole('heading', { name: 'Token created' }).waitFor();

    expect(call).toContain(`curl '${proxy.url}${api}/token'`);
    expect((await tokens.list({ account: USERNAME })).tokens).toHaveLength(1);
  });
});
