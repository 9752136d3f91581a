import type { Locator, Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { ScopeCatalog } from '../../../../src/scope/index.ts';
import { largeCatalog } from '../page/picker/support.ts';
import {
  faultsOf,
  hasChromium,
  LOOKS,
  type Opened,
  type OpenOptions,
  openForTest,
  signIn,
  USERNAME,
} from './support.ts';

const SHOP = [
  'GET:api.shop.example/orders$',
  'POST:api.shop.example/orders$',
  'GET:api.shop.example/orders/{}$',
  'DELETE:api.shop.example/orders/{}$',
  'GET:git.shop.example/repos/{}/{}$',
  'GET:git.shop.example/repos/{}/{}/issues$',
  'POST:git.shop.example/repos/{}/{}/issues$',
  'GET:git.shop.example/users/{}$',
  'GET:git.shop.example/users/me$',
];

/** The accessibility tree of the picker with one endpoint selected. */
const TREE = `
- list "Endpoints":
  - listitem:
    - button "What is below api.shop.example" [expanded]
    - checkbox "api.shop.example, everything below" [checked=mixed]
    - text: api.shop.example 1 of 4
    - 'button "Read-only: api.shop.example"': Read-only
    - list:
      - listitem:
        - button "What is below /orders" [expanded]
        - checkbox "/orders, everything below" [checked=mixed]
        - text: orders 1 of 4
        - 'button "Read-only: /orders"': Read-only
        - text: this path
        - checkbox "GET /orders (api.shop.example)" [checked]
        - text: GET
        - checkbox "POST /orders (api.shop.example)"
        - text: POST
        - list:
          - listitem:
            - 'textbox "One name in place of {} at the end of /orders/{}; empty for any"':
              - /placeholder: any
            - 'checkbox "GET /orders/{} (api.shop.example)"'
            - text: GET
            - 'checkbox "DELETE /orders/{} (api.shop.example)"'
            - text: DELETE
`.trim();

/** The screen of a new token, for a service with a catalog. */
async function newToken(scopes: readonly string[], options: OpenOptions = {}): Promise<Opened> {
  const service = { catalog: ScopeCatalog.from(scopes), ...options.service };
  const opened = await openForTest({ ...options, service });
  await signIn(opened.page);
  await opened.page.goto(`${opened.url}#/new`);
  await opened.page.getByRole('group', { name: 'What the token may do' }).waitFor();
  return opened;
}

const box = (page: Page, name: string) => page.getByRole('checkbox', { name, exact: true });
const create = (page: Page) => page.getByRole('button', { name: 'Create token' });
const created = (page: Page) => page.getByRole('heading', { name: 'Token created' });

/** The error of a field as a screen reader reads it; empty if the field is valid. */
async function errorOf(page: Page, field: Locator): Promise<string> {
  if ((await field.getAttribute('aria-invalid')) !== 'true') return '';
  const ids = (await field.getAttribute('aria-describedby'))?.split(' ') ?? [];
  return (await page.locator(`[id="${ids.at(-1)}"]`).textContent()) ?? '';
}

async function held({ tokens }: Opened): Promise<readonly string[]> {
  const page = await tokens.list({ account: USERNAME });
  return page.tokens[0]?.scopes ?? [];
}

describe.skipIf(!hasChromium)('the screen for a new token', () => {
  it('creates a token with the keyboard alone', async () => {
    const { page, tokens } = await newToken(SHOP);
    const press = async (...keys: string[]) => {
      for (const key of keys) await page.keyboard.press(key);
    };
    const focused = () => page.evaluate('document.activeElement.ariaLabel');
    const tabTo = async (name: string) => {
      for (let tries = 0; tries < 80; tries++) {
        await press('Tab');
        if ((await focused()) === name) return;
      }
      throw new Error(`Tab does not lead to ${name}`);
    };

    // A new screen focuses its heading, so Tab starts there.
    await press('Tab');
    await page.keyboard.type('nightly');
    await press('Tab', 'ArrowUp', 'Tab');
    await page.keyboard.type('orders');
    await tabTo('GET /orders (api.shop.example)');
    await press('Space', 'ArrowDown');
    expect(await focused()).toBe('One name in place of {} at the end of /orders/{}; empty for any');
    await tabTo('DELETE /orders/{} (api.shop.example)');
    await press('Space');
    await page.getByRole('button', { name: 'Create token' }).focus();
    await press('Enter');
    await created(page).waitFor();

    expect(await page.evaluate('document.activeElement.textContent')).toBe('Token created');
    const [token] = (await tokens.list({ account: USERNAME })).tokens;
    expect(token?.name).toBe('nightly');
    expect(token?.scopes).toEqual([
      'DELETE:api.shop.example/orders/{}$',
      'GET:api.shop.example/orders$',
    ]);
    const days =
      ((token?.expiresAt.getTime() ?? 0) - (token?.createdAt.getTime() ?? 0)) / 86_400_000;
    expect(days).toBe(7);
  });

  it('opens and closes branches, and moves between rows, with the arrow keys', async () => {
    const { page } = await newToken(largeCatalog());
    const twisty = page.getByRole('button', { name: 'What is below api0.example' });

    await twisty.focus();
    await page.keyboard.press('ArrowRight');
    expect(await twisty.getAttribute('aria-expanded')).toBe('true');
    await page.keyboard.press('ArrowDown');
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('What is below /r0');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowLeft');

    expect(await twisty.getAttribute('aria-expanded')).toBe('false');
  });

  it('requests one resource by its path, and previews exactly the scopes that are granted', async () => {
    const it = await newToken(SHOP);
    const { page } = it;

    await page.getByLabel('at the end of /repos/{};').fill('acme');
    await page.getByLabel('at the end of /repos/{}/{};').fill('site');
    await page.getByRole('button', { name: 'Read-only: /repos/{}/{}', exact: true }).click();
    const preview = page.getByRole('region', { name: 'What would be granted' });

    expect(await preview.getByRole('status').textContent()).toBe(
      '2 endpoints on git.shop.example. All of them only read data.',
    );
    expect(await preview.getByRole('listitem').allTextContents()).toEqual([
      'GET:git.shop.example/repos/acme/site',
    ]);
    await preview.getByText('Exactly these 2 scopes').click();
    const granted = ['repos/acme/site$', 'repos/acme/site/issues$'].map(
      (path) => `GET:git.shop.example/${path}`,
    );
    await expect
      .poll(() => preview.locator('details').last().locator('li').allTextContents())
      .toEqual(granted);
    await create(page).click();
    await created(page).waitFor();
    expect(await held(it)).toEqual(granted);
  });

  it('gives hosts, branches and methods their full names for screen readers', async () => {
    const { page } = await newToken(SHOP.slice(0, 4));

    await box(page, 'GET /orders (api.shop.example)').check();

    expect(await page.getByRole('list', { name: 'Endpoints' }).ariaSnapshot()).toBe(TREE);
  });

  it('marks the checkbox of a branch as partly selected', async () => {
    const { page } = await newToken(SHOP);
    const branch = box(page, '/orders, everything below');

    await box(page, 'GET /orders (api.shop.example)').check();
    expect(await branch.ariaSnapshot()).toContain('[checked=mixed]');
    await branch.click();
    expect(await branch.ariaSnapshot()).toContain('[checked]');
    await branch.click();
    expect(await branch.isChecked()).toBe(false);
    expect(await box(page, 'GET /orders (api.shop.example)').isChecked()).toBe(false);
  });

  it('refuses an invalid resource name, and never requests more instead', async () => {
    const it = await newToken(SHOP);
    const { page } = it;

    await box(page, 'GET /users/{} (git.shop.example)').check();
    const field = page.getByLabel('at the end of /users/{};');
    await field.fill('a/b');
    await create(page).click();

    expect(await field.getAttribute('aria-invalid')).toBe('true');
    // Once at the tree, and once in the preview.
    expect(await page.getByText('The name in /users/{} cannot be used.').count()).toBe(2);
    await expect.poll(() => page.evaluate('document.activeElement.value')).toBe('a/b');
    await field.fill('me');
    expect(await page.getByText('That is an endpoint of its own.').isVisible()).toBe(true);
    expect(await held(it)).toEqual([]);
    await field.fill('ada');
    await create(page).click();
    await created(page).waitFor();
    expect(await held(it)).toEqual(['GET:git.shop.example/users/ada$']);
  });

  it('adds a scope as text, and suggests a correction', async () => {
    const it = await newToken(SHOP);
    const { page } = it;

    await page.getByText('Add a scope as text').click();
    await page.getByLabel('Scope', { exact: true }).fill('GET:api.shop.example/ordres$');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'GET:api.shop.example/orders$' }).click();
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    expect(await box(page, 'GET /orders (api.shop.example)').isChecked()).toBe(true);

    for (const name of ['site', 'docs']) {
      await page
        .getByLabel('Scope', { exact: true })
        .fill(`GET:git.shop.example/repos/acme/${name}$`);
      await page.keyboard.press('Enter');
    }
    await create(page).click();
    await created(page).waitFor();
    expect(await held(it)).toEqual([
      'GET:api.shop.example/orders$',
      'GET:git.shop.example/repos/acme/docs$',
      'GET:git.shop.example/repos/acme/site$',
    ]);
  });

  it('shows errors of the service at the field that they concern', async () => {
    const { page } = await newToken(SHOP);
    const name = page.getByLabel('Name', { exact: true });
    const date = page.getByLabel('Date');

    await create(page).click();
    await page.getByText('Choose at least one endpoint.').waitFor();
    await box(page, 'GET /orders (api.shop.example)').check();
    await page.getByLabel('Expires').selectOption('On a date');
    await date.fill('2020-01-01');
    await create(page).click();
    await expect.poll(() => errorOf(page, date)).toMatch(/^expire must be later than now/i);
    await expect.poll(() => page.evaluate('document.activeElement.type')).toBe('date');
    await date.fill('2900-01-01');
    await create(page).click();
    await expect.poll(() => errorOf(page, date)).toMatch(/at most/);
    await page.getByLabel('Expires').selectOption('In 7 days');
    await name.fill('x'.repeat(201));
    await create(page).click();

    await expect.poll(() => errorOf(page, name)).toMatch(/^Name must be .*200/);
    expect(await faultsOf(page)).toEqual([]);
  });

  it('offers only the lifetimes that the service allows', async () => {
    const it = await newToken(SHOP, {
      service: { lifetime: { defaultSeconds: 3600, maxSeconds: 86_400 } },
    });
    const { page, tokens } = it;

    expect(await page.getByLabel('Expires').locator('option').allTextContents()).toEqual([
      'After the usual time of this service',
      'On a date',
    ]);
    await box(page, 'GET /orders (api.shop.example)').check();
    await create(page).click();
    await created(page).waitFor();
    const [token] = (await tokens.list({ account: USERNAME })).tokens;
    expect(Number(token?.expiresAt) - Number(token?.createdAt)).toBe(3_600_000);
  });

  it('sets limits, and shows errors of the service at each of them', async () => {
    const { page, tokens } = await newToken(SHOP, {
      service: { limits: true },
    });
    const [addresses, uses, rate] = [
      page.getByLabel('Only from these addresses'),
      page.getByLabel('Uses in total'),
      page.getByLabel('Uses', { exact: true }),
    ];

    await box(page, 'GET /orders (api.shop.example)').check();
    expect(await addresses.isVisible()).toBe(false);
    await page.getByText('Limits', { exact: true }).click();
    await addresses.fill('192.0.2.0/24\n192.0.2.999');
    await create(page).click();
    await expect.poll(() => errorOf(page, addresses)).toMatch(/192\.0\.2\.999/);
    await addresses.fill('192.0.2.0/24, 2001:db8::1');
    await uses.fill('many');
    await create(page).click();
    await expect.poll(() => errorOf(page, uses)).toMatch(/^limits\.uses must be/);
    await uses.fill('1000');
    await rate.fill('0');
    await page.getByLabel('In each').selectOption('hour');
    await create(page).click();
    await expect.poll(() => errorOf(page, rate)).toMatch(/^limits\.rate\.uses must be/);
    expect(await faultsOf(page)).toEqual([]);
    await rate.fill('50');
    await create(page).click();
    await created(page).waitFor();

    expect((await tokens.list({ account: USERNAME })).tokens[0]?.limits).toEqual({
      addresses: ['192.0.2.0/24', '2001:db8::1'],
      uses: 1000,
      rate: { uses: 50, seconds: 3600 },
    });
  });

  it('opens the section of limits to show an error in it', async () => {
    const { page } = await newToken(SHOP);
    const uses = page.getByLabel('Uses in total');

    await box(page, 'GET /orders (api.shop.example)').check();
    await page.getByText('Limits', { exact: true }).click();
    await uses.fill('10');
    await page.getByText('Limits', { exact: true }).click();
    await create(page).click();

    await expect.poll(() => errorOf(page, uses)).toMatch(/counts uses/);
    expect(await uses.isVisible()).toBe(true);
  });

  it('offers no limits if the service has none', async () => {
    const { page, url } = await openForTest({ service: { catalog: ScopeCatalog.from(SHOP) } });
    await page.route('**/openapi.json', async (route) => {
      const answer = await route.fetch();
      const text = (await answer.text()).replaceAll('"limits":', '"former":');
      await route.fulfill({ response: answer, body: text });
    });
    await page.reload();
    await signIn(page);
    await page.goto(`${url}#/new`);
    await create(page).waitFor();

    expect(await page.getByText('Limits', { exact: true }).count()).toBe(0);
  });

  it('offers a suggestion of the service for a scope that has left the catalog', async () => {
    let catalog = ScopeCatalog.from(SHOP);
    const it = await newToken(SHOP, { service: { catalog: () => catalog } });
    const { page } = it;

    await box(page, 'GET /orders (api.shop.example)').check();
    catalog = ScopeCatalog.from(['GET:api.shop.example/orders/all$']);
    await create(page).click();
    await page.getByRole('button', { name: 'GET:api.shop.example/orders/all$' }).waitFor();

    expect(await page.getByText('The catalog does not know').isVisible()).toBe(true);
  });

  it('accepts scopes as text if there is no catalog', async () => {
    const opened = await openForTest();
    const { page } = opened;
    await signIn(page);
    await page.goto(`${opened.url}#/new`);

    await page.getByLabel('What the token may do').fill('GET:*.shop.example/*\nget:shop.example/x');
    await create(page).click();
    await page.getByRole('button', { name: 'GET:shop.example/x' }).click();
    await create(page).click();
    await created(page).waitFor();

    expect(await held(opened)).toEqual(['GET:*.shop.example/*', 'GET:shop.example/x']);
  });

  it.each(LOOKS)(
    'has no accessibility faults at $viewport.width px, $colorScheme',
    async (browser) => {
      const { page } = await newToken(SHOP, { browser });

      expect(await faultsOf(page)).toEqual([]);
      await page.getByRole('button', { name: 'Read-only: All hosts' }).click();
      await page.getByLabel('at the end of /users/{};').fill('a/b');
      await page.getByText('The same call as JSON').click();
      await page.getByText('Add a scope as text').click();
      await page.getByLabel('Scope', { exact: true }).fill('GET:api.shop.example/ordres$');
      await page.keyboard.press('Enter');
      expect(await faultsOf(page)).toEqual([]);
      await page.getByLabel('at the end of /users/{};').fill('');
      await page.getByLabel('Search endpoints').fill('get');
      await page.getByText('Exactly these').click();
      expect(await faultsOf(page)).toEqual([]);
      await create(page).click();
      await created(page).waitFor();
      expect(await faultsOf(page)).toEqual([]);
      await page.getByRole('button', { name: 'Done' }).click();
      await page.getByRole('dialog').waitFor();
      expect(await faultsOf(page)).toEqual([]);
    },
  );

  it('fits a window of 320 px with hosts and paths of maximum length', async () => {
    const label = 'a'.repeat(63);
    const host = [label, label, label, 'b'.repeat(57), 'example']
      .join('.')
      .slice(-253)
      .replace(/^\.+/, '');
    const { page } = await newToken(
      [`GET:${host}/${'p'.repeat(500)}$`, `GET:${host}/constructor/__proto__$`],
      { browser: LOOKS[1] },
    );

    await box(page, `GET /constructor/__proto__ (${host})`).check();

    expect(await faultsOf(page)).toEqual([]);
  });

  it.each([
    ['<img src=x onerror="window.hit=1">'],
    ['\u202Egnp.exe\u2066'],
    ['x'.repeat(200)],
    [`'; rm -rf / #`],
  ])('shows the name %j as plain text', async (name) => {
    const { page, tokens } = await newToken(SHOP, { browser: LOOKS[1] });

    await page.getByLabel('Name', { exact: true }).fill(name);
    await box(page, 'GET /orders (api.shop.example)').check();
    await page.getByText('The same call as JSON').click();
    await create(page).click();
    await created(page).waitFor();

    expect(await page.getByText(name, { exact: true }).isVisible()).toBe(true);
    expect(await page.evaluate('window.hit')).toBeUndefined();
    expect(await faultsOf(page)).toEqual([]);
    expect((await tokens.list({ account: USERNAME })).tokens[0]?.name).toBe(name);
  });

  it('renders only the visible rows of 1 500 entries', async () => {
    const { page } = await newToken(largeCatalog());
    const rows = page.locator('[data-row]');

    // A row for all hosts, and one for each of five hosts.
    expect(await rows.count()).toBe(6);
    await page.getByRole('button', { name: 'What is below api0.example' }).click();
    expect(await rows.count()).toBe(6 + 21);
    await page.getByLabel('Search endpoints').fill('get items');
    await page.getByText('200 endpoints found; the first 60 shown').waitFor();
    expect(await rows.count()).toBe(60);
    await page.getByRole('button', { name: 'Select all 200' }).click();
    expect(await page.getByText('200 endpoints on 5 hosts').isVisible()).toBe(true);
  });

  it('renders the first 100 entries of a wide branch, and more on request', async () => {
    const wide = Array.from({ length: 250 }, (_, at) => `GET:api.shop.example/p${at}$`);
    const { page } = await newToken(wide);
    const rows = page.locator('[data-row]');

    expect(await rows.count()).toBe(101);
    await page.getByRole('button', { name: 'Show 100 more' }).click();
    await page.getByRole('button', { name: 'Show 50 more' }).click();

    expect(await rows.count()).toBe(251);
  });
});
