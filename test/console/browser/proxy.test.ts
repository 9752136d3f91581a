import { afterEach, describe, expect, it } from 'vitest';
import { ScopeCatalog } from '../../../src/scope/index.ts';
import { type StartedProxy, startProxy } from '../proxy.ts';
import { hasChromium, type Opened, openConsole, signIn, USERNAME } from './support.ts';

const catalog = ScopeCatalog.from(['GET:api.shop.example/orders$']);
const ADDED = '/tokens-ui';
const asItIs = (path: string) => path;
const renamed = (path: string) => path.replace(`${ADDED}/`, '/console/');
const stripped = (path: string) => (path.startsWith(ADDED) ? path.slice(ADDED.length) : '/nowhere');

let opened: Opened | undefined;
let proxy: StartedProxy | undefined;
afterEach(async () => {
  await proxy?.close();
  await opened?.close();
  [opened, proxy] = [undefined, undefined];
});

describe.skipIf(!hasChromium)('the console behind a proxy that adds a path', () => {
  it.each([
    ['strips it', '', `${ADDED}/console`, `${ADDED}/auth`, stripped],
    ['strips it, with a slash at the end', '', `${ADDED}/console/`, `${ADDED}/auth`, stripped],
    ['passes it on', ADDED, `${ADDED}/console`, `${ADDED}/auth`, asItIs],
    ['passes it on, with a slash at the end', ADDED, `${ADDED}/console/`, `${ADDED}/auth`, asItIs],
    ['gives the page another name', '', `${ADDED}/`, '/auth', renamed],
  ])('makes a token if the proxy %s', async (_, prefix, path, api, rewrite) => {
    opened = await openConsole({ service: { catalog }, prefix });
    const { page, tokens, url } = opened;
    proxy = await startProxy(new URL(url).origin, rewrite);

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
