import { readFileSync } from 'node:fs';
import type { Locator } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { ScopeCatalog } from '../../../../src/scope/index.ts';
import {
  faultsOf,
  hasChromium,
  LOOKS,
  type Opened,
  type OpenOptions,
  openForTest,
  signIn,
} from './support.ts';

const SCOPE = 'GET:api.shop.example/orders';
const catalog = ScopeCatalog.from([SCOPE, 'POST:api.shop.example/orders']);
/** How many tokens the long list has. */
const MANY = Number(process.env['CONSOLE_TOKENS'] ?? 1000);

let opened: Opened | undefined;

/** A list of tokens with these names, the last one first, as its owner sees it. */
async function listed(names: readonly string[], options: OpenOptions = {}): Promise<Opened> {
  opened = await openForTest({ ...options, service: { catalog, ...options.service } });
  for (const name of names) await issue(name);
  await signIn(opened.page);
  return opened;
}

function issue(name: string, scopes: readonly string[] = [SCOPE]) {
  if (opened === undefined) throw new Error('nothing is open');
  return opened.tokens.issue({ account: 'ada', scopes, name });
}

const namesOf = (rows: Locator) => rows.locator('a').allTextContents();

const HOSTILE = [
  '<img src=x onerror="document.title=1">',
  '"><script>alert(1)</script>',
  '\u202egnp.exe',
  'x'.repeat(200),
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it must be shown as it is
  '{{7*7}} ${7*7} &amp;',
];

describe.skipIf(!hasChromium)('the list of tokens', () => {
  it('explains what to do when it is empty', async () => {
    const { page } = await listed([]);

    await page.getByText('No tokens yet').waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await page.getByRole('main').getByRole('link', { name: 'New token' }).last().click();
    await page.getByRole('heading', { name: 'New token' }).waitFor();
  });

  it('shows the rights, the expiry and the last use of a token', async () => {
    const { page, tokens } = await listed([]);
    const { value } = await issue('build');
    await tokens.verify(value, { scope: SCOPE });
    await page.getByRole('link', { name: 'Review' }).click();
    await page.getByRole('link', { name: 'Tokens' }).click();

    const row = page.getByRole('row').filter({ hasText: 'build' });
    await row.getByText('Orders: read').waitFor();
    const text = await row.textContent();
    expect(text).toMatch(/Expires.*in \d+ /);
    expect(text).not.toContain('Never used');
    expect(text).not.toContain(value);
    expect(await row.locator('time').first().getAttribute('title')).toMatch(/\d{4}/);
  });

  it('searches by name, filters by state and sorts', async () => {
    const { page, tokens } = await listed(['beta', 'alpha', 'gamma']);
    const rows = page.locator('table.token-table tbody > tr');
    await expect.poll(() => rows.count()).toBe(3);

    await page.getByLabel('Sort by').selectOption('name');
    await expect.poll(() => namesOf(rows)).toEqual(['alpha', 'beta', 'gamma']);
    await page.getByLabel('Search by name').fill('MM');
    await expect.poll(() => namesOf(rows)).toEqual(['gamma']);

    const [gamma] = (await tokens.list({ account: 'ada', name: 'gamma' })).tokens;
    await tokens.patch('ada', gamma?.id ?? '', { suspended: true });
    await page.getByLabel('State').selectOption('suspended');
    await expect.poll(() => rows.allTextContents()).toEqual([expect.stringContaining('Suspended')]);
    await page.getByLabel('Search by name').fill('nobody');
    await page.getByText('No token matches').waitFor();
    await page.getByRole('button', { name: 'Remove the filter Name: nobody' }).click();
    await expect.poll(() => namesOf(rows)).toEqual(['gamma']);
    await page.getByLabel('Search by name').fill('nobody');
    await page.getByText('No token matches').waitFor();
    await page.getByRole('button', { name: 'Remove all filters' }).click();
    await expect.poll(() => namesOf(rows)).toEqual(['alpha', 'beta', 'gamma']);
    expect(await page.getByLabel('Search by name').inputValue()).toBe('');
  });

  it('opens on active and suspended tokens, without those that have ended', async () => {
    const { page, tokens } = await listed([]);
    const ids: string[] = [];
    for (const name of ['active', 'suspended', 'revoked']) ids.push((await issue(name)).id);
    await tokens.patch('ada', ids[1] ?? '', { suspended: true });
    await tokens.revoke('ada', ids[2] ?? '');
    await page.reload();
    await signIn(page);

    const rows = page.locator('table.token-table tbody > tr');
    await expect.poll(async () => (await namesOf(rows)).sort()).toEqual(['active', 'suspended']);
    await page.getByLabel('State').selectOption('all');
    await expect.poll(() => rows.count()).toBe(3);
  });

  it('says that tokens have ended, rather than that there are none', async () => {
    const { page, tokens } = await listed([]);
    const { id } = await issue('nightly');
    await tokens.revoke('ada', id);
    await page.reload();
    await signIn(page);

    await page.getByText('No active or suspended tokens').waitFor();
    await page.getByText('The newest token, nightly, was revoked.').waitFor();
    expect(await page.getByText('No tokens yet').count()).toBe(0);
    expect(await faultsOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Show all tokens' }).click();
    await page.getByRole('link', { name: 'nightly' }).waitFor();
  });

  it('sorts all tokens in the service, also those that are not loaded', async () => {
    const { page, tokens } = await listed([]);
    // The first one is the oldest, and expires first.
    for (let days = 1; days <= 60; days += 1) {
      await tokens.issue({
        account: 'ada',
        scopes: [SCOPE],
        name: `job ${days}`,
        ttlSeconds: days * 86_400,
      });
    }
    await page.reload();
    await signIn(page);
    const rows = page.locator('table.token-table tbody > tr');
    await expect.poll(() => rows.count()).toBe(50);

    await page.getByLabel('Sort by').selectOption('expire');
    await expect.poll(async () => (await namesOf(rows))[0]).toBe('job 1');
    await page.getByRole('button', { name: 'Load more' }).click();
    await expect.poll(() => rows.count()).toBe(60);
    expect((await namesOf(rows)).at(-1)).toBe('job 60');
  });

  it('shows why the service does not sort, and keeps the list', async () => {
    const { page, context } = await listed(['beta', 'alpha']);
    const message = 'sort "name" takes at most 10 000 tokens';
    await context.route('**/auth/token?*sort=name*', (route) =>
      route.fulfill({
        status: 422,
        json: { code: 'invalid_request', message, details: { member: 'sort' } },
      }),
    );

    await page.getByLabel('Sort by').selectOption('name');

    await page.getByText(`S${message.slice(1)}. The newest tokens come first instead.`).waitFor();
    const rows = page.locator('table.token-table tbody > tr');
    await expect.poll(() => namesOf(rows)).toEqual(['alpha', 'beta']);
    await page.getByLabel('Sort by').selectOption('expire');
    await expect.poll(() => page.getByText('instead').count()).toBe(0);
  });

  it('filters by scope, by host and by use, and says how many filters are active', async () => {
    const { page, tokens } = await listed([], {
      service: { catalog: ScopeCatalog.from([SCOPE, 'GET:ship.shop.example/labels']) },
    });
    await issue('orders');
    const { value } = await issue('labels', ['GET:ship.shop.example/labels']);
    await tokens.verify(value, { scope: 'GET:ship.shop.example/labels' });
    await page.reload();
    await signIn(page);
    const rows = page.locator('table.token-table tbody > tr');
    await expect.poll(() => rows.count()).toBe(2);

    await page.getByText('Filters', { exact: true }).click();
    await page.getByLabel('Host').selectOption('ship.shop.example');
    await expect.poll(() => namesOf(rows)).toEqual(['labels']);
    await page.getByLabel('Never used').check();
    await page.getByText('No token matches').waitFor();
    await page.getByText('Filters: 2 active').waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Remove the filter Host' }).click();
    await expect.poll(() => namesOf(rows)).toEqual(['orders']);
    await page.getByLabel('Never used').uncheck();
    await page.getByLabel('Scope').fill('orders');
    await page.getByText('"orders" is not a scope').waitFor();
    await expect.poll(() => rows.count()).toBe(2);
    await page.getByLabel('Scope').fill('GET:api.shop.example/orders/7');
    await expect.poll(() => namesOf(rows)).toEqual(['orders']);
  });

  it('keeps the filters in the address, for the way back and a reload', async () => {
    const { page } = await listed(['beta', 'alpha', 'gamma']);
    const rows = page.locator('table.token-table tbody > tr');
    await page.getByLabel('Sort by').selectOption('name');
    await page.getByLabel('Search by name').fill('a');
    await page.getByLabel('State').selectOption('active');
    await expect.poll(() => new URL(page.url()).hash).toBe('#/?state=active&sort=name&name=a');
    await page.getByRole('link', { name: 'beta' }).click();
    await page.getByRole('heading', { name: 'beta' }).waitFor();

    await page.goBack();

    await expect.poll(() => namesOf(rows)).toEqual(['alpha', 'beta', 'gamma']);
    expect(await page.getByLabel('Search by name').inputValue()).toBe('a');
    await page.reload();
    await signIn(page);
    await expect.poll(() => namesOf(rows)).toEqual(['alpha', 'beta', 'gamma']);
    expect(await page.getByLabel('State').inputValue()).toBe('active');
    await page.getByRole('link', { name: 'Tokens' }).click();
    await expect.poll(() => page.getByLabel('State').inputValue()).toBe('live');
    expect(await page.getByLabel('Search by name').inputValue()).toBe('');
  });

  it('neither searches for a value nor keeps it in the address', async () => {
    const { page } = await listed([]);
    const { value } = await issue('build');
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));

    await page.getByLabel('Search by name').fill(value);
    await page.getByText('That is the value of a token, not its name.').waitFor();
    await page.getByLabel('State').selectOption('all');
    await page.getByRole('link', { name: 'build' }).waitFor();

    expect([page.url(), ...asked].filter((url) => url.includes(value))).toEqual([]);
  });

  it('exports all tokens that match as CSV, without their values', async () => {
    const { page } = await listed([]);
    const values: string[] = [];
    for (let count = 0; count < 120; count += 1) values.push((await issue(`job ${count}`)).value);
    await issue('=HYPERLINK("https://evil.example")');
    await issue('kept out');
    await page.getByLabel('Search by name').fill('j');
    await expect.poll(() => new URL(page.url()).hash).toBe('#/?name=j');
    await page.getByText('there are more').waitFor();
    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export CSV' }).click();
    const saved = await saving;
    await page.getByText('Exported 120 tokens.').waitFor();
    const csv = readFileSync(await saved.path(), 'utf8');

    expect(saved.suggestedFilename()).toMatch(/^tokens-\d{4}-\d\d-\d\d\.csv$/);
    const lines = csv.split('\r\n');
    expect(lines[0]).toMatch(/^id,name,masked,state,/);
    const names = lines.slice(1, -1).map((line) => line.split(',')[1]);
    expect(names.sort()).toEqual(Array.from({ length: 120 }, (_, at) => `job ${at}`).sort());
    expect(values.filter((value) => csv.includes(value))).toEqual([]);
    await page.getByLabel('Search by name').fill('=');
    await page.getByRole('link', { name: '=HYPERLINK' }).waitFor();
    const again = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export CSV' }).click();
    expect(readFileSync(await (await again).path(), 'utf8')).toContain(
      `"'=HYPERLINK(""https://evil.example"")"`,
    );
  });

  it('shows hostile names as plain text', async () => {
    const { page } = await listed(HOSTILE);
    const rows = page.locator('table.token-table tbody > tr');

    await expect.poll(async () => (await namesOf(rows)).sort()).toEqual(HOSTILE.toSorted());
    expect(await page.locator('.token-table img, .token-table script').count()).toBe(0);
    expect(await faultsOf(page)).toEqual([]);
  });

  it('shows a badge for a finding of the review', async () => {
    const { page } = await listed([]);
    await issue('everything', [SCOPE, 'POST:api.shop.example/orders']);
    await page.getByLabel('State').selectOption('all');

    const row = page.getByRole('row').filter({ hasText: 'everything' });
    await row.waitFor();
    await page.reload();
    await signIn(page);
    await row.getByText('Broad').waitFor();
  });

  it('revokes several selected tokens after a question that names them', async () => {
    const { page, tokens } = await listed(['one', 'two', 'three']);
    await page.getByLabel('Select one').check();
    await page.getByLabel('Select two').check();
    await page.getByRole('button', { name: 'Revoke selected' }).click();
    const dialog = page.getByRole('dialog', { name: 'Revoke 2 tokens?' });
    expect((await dialog.locator('li').allTextContents()).sort()).toEqual(['one', 'two']);
    expect(await faultsOf(page)).toEqual([]);

    await dialog.getByRole('button', { name: 'Revoke 2 tokens' }).click();

    await page.getByText('Revoked 2 tokens.').waitFor();
    const left = await tokens.list({ account: 'ada' });
    expect(left.tokens.map(({ name }) => name)).toEqual(['three']);
  });

  it('reports a token that could not be revoked, and can retry it', async () => {
    const { page, tokens } = await listed(['one', 'two', 'three']);
    await page.getByLabel('Select all shown').check();
    const [two] = (await tokens.list({ account: 'ada', name: 'two' })).tokens;
    await tokens.patch('ada', two?.id ?? '', { name: 'two of somebody' });
    await page.getByRole('button', { name: 'Revoke selected' }).click();
    const dialog = page.getByRole('dialog', { name: 'Revoke 3 tokens?' });
    await dialog.getByRole('button', { name: 'Revoke 3 tokens' }).click();

    await dialog.getByText('2 of 3 tokens were revoked.').waitFor();
    expect(await dialog.getByRole('alert').textContent()).toMatch(/1 token could not.*two: /);
    expect(await faultsOf(page)).toEqual([]);
    expect((await tokens.list({ account: 'ada' })).tokens).toHaveLength(1);
    await dialog.getByRole('button', { name: 'Go on with 1 token' }).click();

    await page.getByText('Revoked 3 tokens.').waitFor();
    expect((await tokens.list({ account: 'ada' })).tokens).toEqual([]);
  });

  it('pauses a bulk revocation if the service goes down, and resumes with the rest', async () => {
    const names = Array.from({ length: 30 }, (_, index) => `token ${index}`);
    const { page, tokens, goAway, comeBack } = await listed(names);
    let calls = 0;
    page.on('requestfinished', (request) => {
      if (request.method() !== 'DELETE') return;
      calls += 1;
      if (calls === 8) goAway();
    });
    await page.getByLabel('Select all shown').check();
    await page.getByRole('button', { name: 'Revoke selected' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Revoke 30 tokens' }).click();

    await dialog.getByText('The service does not answer.').waitFor();
    const left = Number(
      /(\d+) tokens? (?:was|were) not tried/.exec((await dialog.textContent()) ?? '')?.[1],
    );
    expect(await faultsOf(page)).toEqual([]);
    comeBack();
    await dialog.getByRole('button', { name: `Go on with ${left} tokens` }).click();

    await page.getByText('Revoked 30 tokens.').waitFor();
    expect(left).toBeGreaterThan(0);
    expect((await tokens.list({ account: 'ada' })).tokens).toEqual([]);
  });

  it('can stop a bulk revocation, and reports how many tokens still work', async () => {
    const names = Array.from({ length: 40 }, (_, index) => `token ${index}`);
    const { page, tokens, context } = await listed(names);
    const held: (() => void)[] = [];
    let calls = 0;
    await context.route('**/auth/token/*', async (route) => {
      if (route.request().method() === 'DELETE') {
        calls += 1;
        if (calls > 8) await new Promise<void>((resolve) => held.push(resolve));
      }
      await route.continue();
    });
    await page.getByLabel('Select all shown').check();
    await page.getByRole('button', { name: 'Revoke selected' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Revoke 40 tokens' }).click();
    await expect.poll(() => held.length).toBe(4);
    await dialog.getByRole('button', { name: 'Stop' }).click();
    for (const letGo of held) letGo();

    await dialog.getByText('28 tokens were not tried and still work.').waitFor();
    expect(await tokens.list({ account: 'ada' }).then((page) => page.tokens.length)).toBe(28);
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page.getByText('28 tokens shown').waitFor();
  });

  it('selects all matching tokens, including those that are not shown', async () => {
    const names = Array.from({ length: 120 }, (_, index) => `job ${index}`);
    const { page, tokens } = await listed([...names, 'kept']);
    await page.getByLabel('Search by name').fill('job');
    await expect.poll(() => page.getByRole('link', { name: 'kept' }).count()).toBe(0);
    await page.getByLabel('Select all shown').check();
    await page.getByText('50 tokens selected').waitFor();
    await page.getByRole('button', { name: 'Select all that match' }).click();
    await page.getByText('120 tokens selected').waitFor();
    expect(await faultsOf(page)).toEqual([]);
    // A change by hand reduces the selection to the tokens that are shown.
    await page.getByLabel('Select job 119').uncheck();
    await page.getByText('49 tokens selected').waitFor();
    await page.getByLabel('Select job 119').check();
    await page.getByRole('button', { name: 'Select all that match' }).click();
    await page.getByRole('button', { name: 'Revoke selected' }).click();
    const dialog = page.getByRole('dialog', { name: 'Revoke 120 tokens?' });
    await dialog.getByText('and 112 more').waitFor();

    await dialog.getByRole('button', { name: 'Revoke 120 tokens' }).click();

    await page.getByText('Revoked 120 tokens.').waitFor();
    const left = await tokens.list({ account: 'ada' });
    expect(left.tokens.map(({ name }) => name)).toEqual(['kept']);
  });

  it('shows that the service is down, and loads on retry', async () => {
    const { page, goAway, comeBack } = await listed(['build']);
    await page.getByRole('link', { name: 'build' }).waitFor();
    goAway();
    await page.getByLabel('State').selectOption('all');
    await page.getByText('The service does not answer.').waitFor();
    expect(await faultsOf(page)).toEqual([]);
    comeBack();

    await page.getByRole('button', { name: 'Try again' }).click();

    await page.getByRole('link', { name: 'build' }).waitFor();
  });

  it(`loads ${MANY} tokens page by page`, { timeout: 120_000 }, async () => {
    const { page } = await listed([]);
    for (let count = 0; count < MANY; count += 1) await issue(`token ${count}`);
    await page.reload();
    await signIn(page);
    const rows = page.locator('table.token-table tbody > tr');
    await expect.poll(() => rows.count()).toBe(50);

    await page.getByRole('button', { name: 'Load more' }).click();

    await expect.poll(() => rows.count()).toBe(100);
    expect(new Set(await namesOf(rows)).size).toBe(100);
    await page.getByLabel('Search by name').fill('token 0');
    await page.getByRole('link', { name: 'token 0', exact: true }).waitFor();
  });

  it.each(LOOKS)(
    'has no accessibility faults at $viewport.width px, $colorScheme',
    async (browser) => {
      const { page } = await listed(['build', 'x'.repeat(200), 'שלום'], { browser });
      await page.getByRole('link', { name: 'build' }).waitFor();

      expect(await faultsOf(page)).toEqual([]);
    },
  );
});
