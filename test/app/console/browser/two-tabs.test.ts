import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import type { IssuedToken } from '../../../../src/index.ts';
import { ScopeCatalog } from '../../../../src/scope/index.ts';
import {
  editScopes,
  faultsOf,
  hasChromium,
  type Opened,
  type OpenOptions,
  openForTest,
  press,
  signIn,
} from './support.ts';

const ORDERS = 'GET:api.shop.example/orders';
const BILLS = 'GET:api.shop.example/bills';
const PAY = 'POST:api.shop.example/bills';
const catalog = ScopeCatalog.from([ORDERS, BILLS, PAY]);

interface Shown extends Opened {
  readonly token: IssuedToken;
  readonly other: Page;
}

/** One token, in two tabs of its owner. */
async function shownTwice(options: OpenOptions = {}): Promise<Shown> {
  const service = { catalog, limits: true, ...options.service };
  const opened = await openForTest({ ...options, service });
  const { page, tokens, context, url } = opened;
  const token = await tokens.issue({ account: 'ada', scopes: [ORDERS, BILLS], name: 'build' });
  const other = await context.newPage();
  other.setDefaultTimeout(10_000);
  await other.goto(url);
  for (const tab of [page, other]) {
    await signIn(tab);
    await tab.getByRole('link', { name: 'build' }).click();
    await tab.getByRole('heading', { name: 'build' }).waitFor();
  }
  return { ...opened, token, other };
}

const conflict = (page: Page) => page.getByRole('dialog', { name: 'This token was changed' });

describe.skipIf(!hasChromium)('two tabs', () => {
  it('can edit the same token without losing a saved change', async () => {
    const { page, other, tokens, token } = await shownTwice();
    await press(page, 'Edit');
    await page.getByLabel('Name').fill('nightly build');
    await page.getByText('Limits', { exact: true }).click();
    await page.getByLabel('Uses in total').fill('500');
    await press(other, 'Edit');
    await other.getByText('Limits', { exact: true }).click();
    await other.getByLabel('Only from these addresses').fill('192.0.2.0/24');
    await press(other, 'Save');
    await other.getByText('only from 192.0.2.0/24').waitFor();

    await press(page, 'Save');
    await conflict(page).waitFor();
    expect(await conflict(page).textContent()).toMatch(/no limit → only from 192\.0\.2\.0\/24/);
    expect(await faultsOf(page)).toEqual([]);
    await press(page, 'Make my change anyway');

    await page.getByRole('heading', { name: 'nightly build' }).waitFor();
    const now = await tokens.get('ada', token.id);
    expect(now?.name).toBe('nightly build');
    expect(now?.limits).toEqual({ addresses: ['192.0.2.0/24'], uses: 500 });
  });

  it('that edit the same scopes show which saved changes would be undone', async () => {
    const { page, other, tokens, token } = await shownTwice();
    for (const tab of [page, other]) await editScopes(tab);
    await page.getByRole('checkbox', { name: /POST.*bills/ }).check();
    await other.getByRole('checkbox', { name: /GET.*bills/ }).uncheck();
    await press(other, 'Save');
    await other.getByRole('dialog').waitFor({ state: 'detached' });

    await press(page, 'Save');
    await conflict(page).getByText('Your change would then make this difference:').waitFor();
    const lists = conflict(page).locator('.scopes');
    expect(await lists.allTextContents()).toEqual([
      `Removes 1 scope${BILLS}`,
      `Adds 2 scopes${BILLS}${PAY}`,
    ]);
    expect(await faultsOf(page)).toEqual([]);
    await press(page, 'Make my change anyway');

    await page.getByRole('dialog').first().waitFor({ state: 'detached' });
    expect((await tokens.get('ada', token.id))?.scopes).toEqual([BILLS, ORDERS, PAY]);
  });

  it('can both rotate a token: each shows its value, and only the last one works', async () => {
    const { page, other, tokens, token } = await shownTwice();
    const rotate = async (tab: Page) => {
      await press(tab, 'Rotate');
      await tab.getByLabel('Immediately').check();
      await tab.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
    };
    const valueIn = (tab: Page) => tab.getByLabel('Value of the token').inputValue();
    await rotate(page);
    const first = await valueIn(page);
    await rotate(other);
    await conflict(other).waitFor();
    await press(other, 'Make my change anyway');
    const second = await valueIn(other);

    const verdicts = [];
    for (const value of [token.value, first, second]) {
      verdicts.push((await tokens.verify(value, { scope: ORDERS })).ok);
    }
    expect(verdicts).toEqual([false, false, true]);
    // The first value is still in the tab that showed it, and not in the other one.
    expect((await valueIn(page)) === first).toBe(true);
    expect((await other.content()).includes(first)).toBe(false);
    await press(page, 'Done');
    await press(page, 'Leave without it');
    await page.getByRole('heading', { name: 'build' }).waitFor();
  });

  it.each([
    ['the page with its buttons', async () => {}, (page: Page) => press(page, 'Suspend')],
    [
      'the dialog that edits it',
      async (page: Page) => {
        await press(page, 'Edit');
        await page.getByLabel('Name').fill('late');
      },
      (page: Page) => press(page, 'Save'),
    ],
    [
      'the dialog that edits its scopes',
      async (page: Page) => {
        await editScopes(page);
        await page.getByRole('checkbox', { name: /POST.*bills/ }).check();
      },
      (page: Page) => press(page, 'Save'),
    ],
    [
      'the dialog that rotates it',
      (page: Page) => press(page, 'Rotate'),
      (page: Page) => page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click(),
    ],
  ])('report in %s that the token was revoked in the other tab', async (_, prepare, act) => {
    const { page, other, tokens, token } = await shownTwice();
    await prepare(page);
    await press(other, 'Revoke');
    await press(other, 'Revoke token');
    await other.getByText('No active or suspended tokens').waitFor();

    await act(page);
    const dialog = page.getByRole('dialog', { name: 'This token was revoked' });
    await dialog.waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Close' }).click();

    await page.getByText('Revoked', { exact: true }).waitFor();
    expect(await page.getByRole('dialog').count()).toBe(0);
    expect(await page.getByRole('button', { name: 'Suspend' }).count()).toBe(0);
    expect((await tokens.get('ada', token.id, { state: 'all' }))?.name).toBe('build');
  });

  it('can both revoke the same token', async () => {
    const { page, other, tokens, token } = await shownTwice();
    for (const tab of [page, other]) await press(tab, 'Revoke');

    for (const tab of [page, other]) {
      await press(tab, 'Revoke token');
      await tab.getByText('No active or suspended tokens').waitFor();
    }

    expect(await tokens.get('ada', token.id)).toBeUndefined();
  });

  it('sign out independently of each other', async () => {
    const { page, other, tokens, token } = await shownTwice();
    await press(other, 'Sign out');
    await other.getByLabel('Password').waitFor();

    await press(page, 'Suspend');

    await page.getByRole('button', { name: 'Resume' }).waitFor();
    expect((await tokens.get('ada', token.id))?.state).toBe('suspended');
    expect(await other.content()).not.toContain('build');
  });
});
