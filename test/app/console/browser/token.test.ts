import { describe, expect, it } from 'vitest';
import type { IssuedToken } from '../../../../src/index.ts';
import { ScopeCatalog } from '../../../../src/scope/index.ts';
import { manualClock } from '../../../../src/testing/index.ts';
import {
  editScopes,
  faultsOf,
  hasChromium,
  LOOKS,
  type Opened,
  type OpenOptions,
  openForTest,
  PASSWORD,
  press,
  signIn,
  USERNAME,
} from './support.ts';

const ORDERS = 'GET:api.shop.example/orders';
const BILLS = 'GET:api.shop.example/bills';
const PAY = 'POST:api.shop.example/bills';
const catalog = ScopeCatalog.from([ORDERS, BILLS, PAY, 'GET:ship.shop.example/labels']);

interface Shown extends Opened {
  readonly token: IssuedToken;
}

/** The page of a token that can read orders and bills. */
async function shown(options: OpenOptions = {}): Promise<Shown> {
  const opened = await openForTest({ ...options, service: { catalog, ...options.service } });
  const { tokens, page } = opened;
  const scopes = [ORDERS, BILLS];
  const token = await tokens.issue({ account: 'ada', scopes, name: 'build', ttlSeconds: 86_400 });
  await signIn(page);
  await page.getByRole('link', { name: 'build' }).click();
  await page.getByRole('heading', { name: 'build' }).waitFor();
  return { ...opened, token };
}

describe.skipIf(!hasChromium)('the page of a token', () => {
  it('shows the rights of the token with their uses', async () => {
    const { page, tokens, token } = await shown();
    await tokens.verify(token.value, { scope: ORDERS });
    await page.getByRole('link', { name: 'All tokens' }).click();
    await page.getByRole('link', { name: 'build' }).click();

    const orders = page.getByRole('row').filter({ hasText: '/orders' });
    await orders.waitFor();
    expect(await orders.textContent()).toMatch(/below1.*ago|below1.*now/);
    expect(await page.getByRole('row').filter({ hasText: '/bills' }).textContent()).toContain(
      'Never',
    );
    expect((await page.content()).includes(token.value)).toBe(false);
    expect(await page.content()).toContain(token.masked);
  });

  it('edits the name and the expiry of the token', async () => {
    const { page, tokens, token } = await shown();
    await press(page, 'Edit');
    await page.getByLabel('Name').fill('nightly <build>');
    await page.getByLabel('Expires').selectOption('On a date');
    await page.getByLabel('Date').fill('2040-01-31');
    await press(page, 'Save');
    // The service refuses more than a year, and the page shows its error at the field.
    await page.locator('dialog .error').waitFor();
    expect(await page.locator('dialog .error').textContent()).toMatch(/expire/i);
    expect(await faultsOf(page)).toEqual([]);
    await page.getByLabel('Expires').selectOption('In 30 days');
    await press(page, 'Save');

    await page.getByRole('heading', { name: 'nightly <build>' }).waitFor();
    const now = await tokens.get('ada', token.id);
    expect(now?.name).toBe('nightly <build>');
    const days = ((now?.expiresAt.getTime() ?? 0) - Date.now()) / 86_400_000;
    expect(Math.round(days)).toBe(30);
  });

  it('edits the name and the scopes together, and keeps the expiry', async () => {
    const { page, tokens, token } = await shown();
    const dialog = await editScopes(page);
    expect(await dialog.getByLabel('Expires').inputValue()).toBe('kept');
    await dialog.getByLabel('Name', { exact: true }).fill('payer');
    await dialog.getByRole('checkbox', { name: /POST.*bills/ }).check();
    await dialog.getByText('Adds 1 scope').waitFor();
    expect(await dialog.locator('.changed').textContent()).toBe('Namebuild → payer');
    await press(page, 'Save');

    await page.getByRole('heading', { name: 'payer' }).waitFor();
    const now = await tokens.get('ada', token.id);
    expect(now?.scopes).toEqual([BILLS, ORDERS, PAY]);
    expect(now?.expiresAt).toEqual(token.expiresAt);
    expect(now?.version).toBe(2);
  });

  it('keeps scopes that the account has lost when only the name is edited', async () => {
    const { page, tokens, token, context } = await shown();
    const data = [{ scope: ORDERS }];
    await context.route('**/auth/scopes?*', (route) => route.fulfill({ json: { data } }));
    await page.evaluate("location.hash = '#/'");
    await page.reload();
    await signIn(page);
    await page.getByRole('link', { name: 'build' }).click();
    await editScopes(page);
    await page.getByLabel('Name', { exact: true }).fill('other');
    await press(page, 'Save');

    await page.getByRole('heading', { name: 'other' }).waitFor();
    expect((await tokens.get('ada', token.id))?.scopes).toEqual(token.scopes);
  });

  it('shows the error of the service at the scopes if none are left', async () => {
    const { page } = await shown();
    const dialog = await editScopes(page);
    for (const name of [/GET.*bills/, /GET.*orders/]) {
      await dialog.getByRole('checkbox', { name }).uncheck();
    }
    await press(page, 'Save');

    await dialog.locator('.picker .error').waitFor();
    expect(await faultsOf(page)).toEqual([]);
  });

  it('describes its rights in words', async () => {
    const words = [
      { scope: ORDERS, summary: 'List orders', tag: 'orders' },
      { scope: BILLS, summary: 'List bills', tag: 'bills' },
      { scope: PAY, summary: 'Pay a bill', tag: 'bills' },
    ];
    const { page } = await shown({ service: { catalog: ScopeCatalog.from(words) } });

    await page.getByText('Bills: read · Orders: read').waitFor();
    const row = page.getByRole('row').filter({ hasText: 'List orders' });
    expect(await row.getByRole('rowheader').textContent()).toMatch(/^List ordersGET.* \/orders$/);
    expect(await faultsOf(page)).toEqual([]);
  });

  it('sets limits after it has shown the difference, and removes them again', async () => {
    const { page, tokens, token } = await shown({
      service: { limits: true },
    });
    const dialog = page.getByRole('dialog', { name: 'Edit token' });
    const uses = dialog.getByLabel('Uses in total');
    const limits = async () => (await tokens.get('ada', token.id))?.limits;
    await press(page, 'Edit');
    await dialog.getByText('Limits', { exact: true }).click();
    await dialog.getByLabel('Only from these addresses').fill('192.0.2.0/24 192.0.2.999');
    await uses.fill('many');
    await press(page, 'Save');
    await expect.poll(() => dialog.locator('.error').textContent()).toMatch(/192\.0\.2\.999/);
    await dialog.getByLabel('Only from these addresses').fill('192.0.2.0/24');
    await press(page, 'Save');
    await expect
      .poll(() => dialog.locator('.error').textContent())
      .toMatch(/^limits\.uses must be/);
    await uses.fill('1000');
    await dialog.getByLabel('Uses', { exact: true }).fill('50');
    await dialog.getByLabel('In each').selectOption('hour');
    expect(await dialog.locator('.changed').textContent()).toMatch(
      /no limit → only from 192\.0\.2\.0\/24.*no limit → 1,000 uses in total.*no limit → 50 uses in 3,600 seconds/,
    );
    expect(await faultsOf(page)).toEqual([]);
    await press(page, 'Save');
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('only from 192.0.2.0/24; 1,000 uses in total; 50 uses in').waitFor();
    expect(await limits()).toEqual({
      addresses: ['192.0.2.0/24'],
      uses: 1000,
      rate: { uses: 50, seconds: 3600 },
    });

    await press(page, 'Edit');
    expect(await uses.inputValue()).toBe('1000');
    for (const label of ['Only from these addresses', 'Uses in total', 'Uses']) {
      await dialog.getByLabel(label, { exact: true }).fill('');
    }
    expect(await dialog.locator('.changed').textContent()).toContain('→ no limit');
    await press(page, 'Save');
    await dialog.waitFor({ state: 'detached' });
    expect(await limits()).toBeUndefined();
  });

  it('keeps a rate window that the form does not offer, and limits that were not edited', async () => {
    const limits = { uses: Number.MAX_SAFE_INTEGER, rate: { uses: 5, seconds: 300 } };
    const { page, tokens, token } = await shown({
      service: { limits: true },
    });
    await tokens.patch('ada', token.id, { limits });
    await page.goBack();
    await page.getByRole('link', { name: 'build' }).click();
    const dialog = page.getByRole('dialog', { name: 'Edit token' });
    await press(page, 'Edit');
    await dialog.getByLabel('Name').fill('other');
    await press(page, 'Save');
    await page.getByRole('heading', { name: 'other' }).waitFor();
    expect((await tokens.get('ada', token.id))?.limits).toEqual(limits);

    await press(page, 'Edit');
    await dialog.getByLabel('Uses', { exact: true }).fill('6');
    await press(page, 'Save');
    await dialog.waitFor({ state: 'detached' });

    expect((await tokens.get('ada', token.id))?.limits).toEqual({
      ...limits,
      rate: { uses: 6, seconds: 300 },
    });
  });

  it('offers no action for a revoked token', async () => {
    const { page, tokens, token } = await shown();
    await tokens.revoke('ada', token.id);
    await page.goBack();
    await page.getByLabel('State').selectOption('revoked');
    await page.getByRole('link', { name: 'build' }).click();

    await page.getByRole('heading', { name: 'build' }).waitFor();
    await page.getByText('Revoked', { exact: true }).waitFor();
    expect(await page.getByRole('main').getByRole('button').allTextContents()).toEqual(['Copy']);
    expect(await faultsOf(page)).toEqual([]);
  });

  it('copies the id and the masked value', async () => {
    const { page, context, token } = await shown();
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const copied = () => page.evaluate('navigator.clipboard.readText()');
    expect(await page.getByText(token.id).isVisible()).toBe(false);

    await press(page, 'Copy the masked value');
    await expect.poll(copied).toBe(token.masked);
    await page.getByText('Details', { exact: true }).click();
    await press(page, 'Copy the id');

    await expect.poll(copied).toBe(token.id);
  });

  it('suspends and resumes the token', async () => {
    const { page, tokens, token } = await shown();
    await press(page, 'Suspend');
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    expect((await tokens.get('ada', token.id))?.state).toBe('suspended');

    await press(page, 'Resume');

    await page.getByRole('button', { name: 'Suspend' }).waitFor();
    expect((await tokens.get('ada', token.id))?.state).toBe('active');
  });

  it('changes scopes after it has shown the difference', async () => {
    const { page, tokens, token } = await shown();
    const dialog = await editScopes(page);
    const box = dialog.getByRole('checkbox', { name: /POST.*bills/ });
    await box.check();
    await dialog.getByText('Adds 1 scope').waitFor();
    expect(await dialog.locator('.scopes.added li').allTextContents()).toEqual([PAY]);

    await dialog.getByRole('button', { name: 'Save' }).click();

    await dialog.waitFor({ state: 'detached' });
    expect((await tokens.get('ada', token.id))?.scopes).toEqual([BILLS, ORDERS, PAY]);
  });

  it('shows the same change as JSON and curl while scopes are picked', async () => {
    const { page, tokens, token, url } = await shown();
    const dialog = await editScopes(page);
    await dialog.locator('summary').filter({ hasText: 'The same call' }).click();
    const texts = () => dialog.locator('.code pre').allTextContents();
    const [before = ''] = await texts();
    await dialog.getByRole('checkbox', { name: /POST.*bills/ }).check();
    await expect.poll(async () => (await texts())[0]).not.toBe(before);
    await dialog.getByText('on api.shop.example.').waitFor();

    const [json = '', curl = ''] = await texts();
    expect(curl).toContain(`/auth/token/${token.id}' \\\n  --request PATCH`);
    expect(curl).toContain(`--header 'If-Match: "1"'`);
    const answer = await fetch(`${new URL(url).origin}/auth/token/${token.id}`, {
      method: 'PATCH',
      headers: {
        authorization: `Basic ${btoa(`${USERNAME}:${PASSWORD}`)}`,
        'content-type': 'application/json',
        'if-match': '"1"',
      },
      body: json,
    });
    expect(answer.status).toBe(200);
    expect((await tokens.get('ada', token.id))?.scopes).toEqual([BILLS, ORDERS, PAY]);
  });

  it('narrows the token to its used scopes after it has shown the difference', async () => {
    const clock = manualClock(new Date());
    const { page, tokens } = await shown({
      service: { clock },
    });
    const long = { account: 'ada', scopes: [ORDERS, BILLS], name: 'old', ttlSeconds: 31_536_000 };
    const { id, value } = await tokens.issue(long);
    clock.advance(99 * 86_400);
    await tokens.verify(value, { scope: ORDERS });
    await page.goBack();
    await page.getByRole('link', { name: 'old' }).click();

    await press(page, 'Narrow to what was used');
    const dialog = page.getByRole('dialog', { name: 'Narrow to what was used' });
    await dialog.getByText('Removes 1 scope').waitFor();
    expect(await dialog.locator('.scopes.removed li').allTextContents()).toEqual([BILLS]);
    expect(await faultsOf(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Remove 1 scope' }).click();

    await page.getByText('Removed 1 scope.').waitFor();
    expect((await tokens.get('ada', id))?.scopes).toEqual([ORDERS]);
  });

  it('says before advice begins what was not used so far, and can remove it', async () => {
    const { page, tokens, token } = await shown();
    await press(page, 'Narrow to what was used');
    const dialog = page.getByRole('dialog', { name: 'Narrow to what was used' });
    await dialog.getByText('No scope was used so far.').waitFor();
    await press(page, 'Close');
    await tokens.verify(token.value, { scope: ORDERS });

    await press(page, 'Narrow to what was used');
    const year = new Date().getFullYear();
    await dialog.getByText(/^Uses are counted since .*\. Advice begins on .*\.$/).waitFor();
    expect(await dialog.getByText('Advice begins').textContent()).toMatch(
      RegExp(`${year}|${year + 1}`),
    );
    await dialog.getByText('1 scope was not used so far').waitFor();
    expect(await dialog.locator('.scopes.removed li').allTextContents()).toEqual([BILLS]);
    expect(await faultsOf(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Remove it anyway' }).click();

    await page.getByText('Removed 1 scope.').waitFor();
    expect((await tokens.get('ada', token.id))?.scopes).toEqual([ORDERS]);
    await press(page, 'Narrow to what was used');
    await dialog.getByText('Every scope was used so far.').waitFor();
  });

  it('rotates the token, shows the new value once, and ends the old value', async () => {
    const { page, tokens, token } = await shown();
    await press(page, 'Rotate');
    const dialog = page.getByRole('dialog', { name: 'Rotate token' });
    await dialog.getByLabel('Immediately').check();
    expect(await faultsOf(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Rotate' }).click();

    const value = await page.getByLabel('Value of the token').inputValue();
    const verdicts = [await tokens.verify(value, { scope: ORDERS })];
    verdicts.push(await tokens.verify(token.value, { scope: ORDERS }));
    expect(verdicts.map(({ ok }) => ok)).toEqual([true, false]);
    await press(page, 'Done');
    await press(page, 'Leave without it');
    await page.getByRole('heading', { name: 'build' }).waitFor();
    const kept = await page.evaluate('document.documentElement.outerHTML + location.href');
    expect((kept as string).includes(value)).toBe(false);
  });

  it('drops a new value that waits for its first use', async () => {
    const { page, tokens, token } = await shown();
    await tokens.rotate('ada', token.id, { activate: 'first-use' });
    await page.goBack();
    await page.getByRole('link', { name: 'build' }).click();

    await press(page, 'Drop the new value');

    await page.getByText('The new value was dropped.').waitFor();
    expect((await tokens.get('ada', token.id))?.pending).toBeUndefined();
  });

  it('revokes the token after a question that names it', async () => {
    const { page, tokens, token } = await shown();
    await press(page, 'Revoke');
    const dialog = page.getByRole('dialog', { name: 'Revoke this token?' });
    expect(await dialog.textContent()).toContain('build');
    expect(await faultsOf(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect((await tokens.get('ada', token.id))?.state).toBe('active');

    await press(page, 'Revoke');
    await dialog.getByRole('button', { name: 'Revoke token' }).click();

    await page.getByText('The newest token, build, was revoked.').waitFor();
    expect(await tokens.get('ada', token.id)).toBeUndefined();
  });

  it('shows changes of somebody else, and asks before it continues', async () => {
    const { page, tokens, token } = await shown();
    await tokens.patch('ada', token.id, { name: 'renamed', removeScopes: [BILLS] });

    await press(page, 'Suspend');
    const dialog = page.getByRole('dialog', { name: 'This token was changed' });
    await dialog.waitFor();
    expect(await dialog.textContent()).toMatch(/build.*renamed.*Removes 1 scope/);
    expect(await faultsOf(page)).toEqual([]);
    expect((await tokens.get('ada', token.id))?.state).toBe('active');
    await dialog.getByRole('button', { name: 'Make my change anyway' }).click();

    await page.getByRole('heading', { name: 'renamed' }).waitFor();
    expect((await tokens.get('ada', token.id))?.state).toBe('suspended');
  });

  it('answers whether a request would be allowed, and offers the missing scope', async () => {
    const { page } = await shown();
    const address = page.getByLabel('Address');
    await address.fill('/no/host');
    await press(page, 'Ask');
    await page.getByText('Enter an address with a host').waitFor();
    await address.fill('https://api.shop.example/orders/7');
    await press(page, 'Ask');
    await page.getByText('Allowed.', { exact: true }).waitFor();
    await page.getByLabel('Method').selectOption('POST');
    await address.fill('https://api.shop.example/bills/7');
    await press(page, 'Ask');
    await page.getByText('Not allowed.').waitFor();
    expect(await faultsOf(page)).toEqual([]);

    await press(page, 'Add this scope…');

    const dialog = page.getByRole('dialog', { name: 'Edit token' });
    await dialog.getByText('Adds 1 scope').waitFor();
  });

  it('reports that a token does not exist', async () => {
    const { page, url } = await shown();

    await page.goto(`${url}#/token/5sQ0bX8vK2mYt7RjW1cZpA`);

    await page.getByText('This account has no such token.').waitFor();
    expect(await faultsOf(page)).toEqual([]);
  });

  it('shows the value again only on request, if the service can', async () => {
    const { page, token } = await shown({ service: { reveal: 'always' } });
    expect((await page.content()).includes(token.value)).toBe(false);

    await press(page, 'Show value');
    await page.getByText(token.value).waitFor();
    await press(page, 'Hide value');

    expect((await page.content()).includes(token.value)).toBe(false);
  });

  it.each(LOOKS)(
    'has no accessibility faults at $viewport.width px, $colorScheme',
    async (browser) => {
      const { page } = await shown({ browser });
      await page.getByText('Would it be allowed?').waitFor();
      expect(await faultsOf(page)).toEqual([]);

      await editScopes(page);
      await page.getByRole('dialog').getByRole('checkbox').first().waitFor();
      expect(await faultsOf(page)).toEqual([]);
    },
  );
});
