import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { ScopeCatalog } from '../../../../src/scope/index.ts';
import {
  faultsOf,
  hasChromium,
  LOOKS,
  type Opened,
  type OpenOptions,
  OTHER_USERNAME,
  openForTest,
  PASSWORD,
  signIn,
} from './support.ts';

const catalog = ScopeCatalog.from(['GET:api.shop.example/orders']);

function open(options: OpenOptions = {}): Promise<Opened> {
  return openForTest({ ...options, service: { catalog } });
}

async function enter(page: Page, password: string): Promise<void> {
  await page.getByLabel('User name').fill('ada');
  await page.getByLabel('Password').fill(password);
  await page.keyboard.press('Enter');
}

describe.skipIf(!hasChromium)('the sign-in', () => {
  it('asks for missing fields, and refuses a wrong password without a browser dialog', async () => {
    const { page } = await open();
    await page.getByRole('button', { name: 'Sign in' }).click();
    expect(await page.getByText('Enter your password.').isVisible()).toBe(true);

    await enter(page, 'wrong');

    await page.getByText('The user name or the password is wrong.').waitFor();
    expect(await faultsOf(page)).toEqual([]);
  });

  it('works with the keyboard alone, and leads to the list', async () => {
    const { page } = await open();
    await page.getByLabel('User name').focus();
    await page.keyboard.type('ada');
    await page.keyboard.press('Tab');
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press('Enter');

    await page.getByRole('heading', { name: 'Tokens', exact: true }).waitFor();
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Tokens');
  });

  it('is forgotten after a reload', async () => {
    const { page } = await open();
    await signIn(page);

    await page.reload();

    await page.getByLabel('Password').waitFor();
    expect(await page.getByLabel('Password').inputValue()).toBe('');
  });

  it('to another account shows nothing of the first one', async () => {
    const { page, tokens } = await open();
    await tokens.issue({ account: 'ada', scopes: ['GET:api.shop.example/orders'], name: 'of ada' });
    await signIn(page);
    await page.getByText('of ada').waitFor();

    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, OTHER_USERNAME);
    await page.getByText('No tokens yet').waitFor();

    expect(await page.content()).not.toContain('of ada');
    await page.goBack();
    expect(await page.content()).not.toContain('of ada');
  });

  it('can be repeated in the middle of an edit without losing input', async () => {
    const { page, tokens, setPasswordsRight } = await open();
    await tokens.issue({ account: 'ada', scopes: ['GET:api.shop.example/orders'], name: 'build' });
    await signIn(page);
    await page.getByRole('link', { name: 'build' }).click();
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    await page.getByLabel('Name').fill('nightly build');
    setPasswordsRight(false);

    await page.getByRole('button', { name: 'Save' }).click();
    const again = page.getByRole('dialog', { name: 'Sign in again' });
    await again.waitFor();
    expect(await faultsOf(page)).toEqual([]);
    setPasswordsRight(true);
    await again.getByLabel('Password').fill(PASSWORD);
    await again.getByRole('button', { name: 'Sign in' }).click();

    await page.getByRole('heading', { name: 'nightly build' }).waitFor();
  });

  it('does not let another account continue an action of the first one', async () => {
    const { page, setPasswordsRight } = await open();
    await signIn(page);
    setPasswordsRight(false);
    await page.getByLabel('State').selectOption('all');
    const again = page.getByRole('dialog', { name: 'Sign in again' });
    await again.waitFor();
    setPasswordsRight(true);

    await again.getByLabel('User name').fill(OTHER_USERNAME);
    await again.getByLabel('Password').fill(PASSWORD);
    await again.getByRole('button', { name: 'Sign in' }).click();

    await again.getByText('This is another account.').waitFor();
  });

  it('can be retried after the service was down', async () => {
    const { page, goAway, comeBack } = await open();
    await page.getByLabel('User name').waitFor();
    goAway();
    await enter(page, PASSWORD);
    await page.getByText('The service does not answer.').waitFor();
    comeBack();

    await page.getByRole('button', { name: 'Sign in' }).click();

    await page.getByRole('heading', { name: 'Tokens', exact: true }).waitFor();
  });

  it.each(LOOKS)(
    'has no accessibility faults at $viewport.width px, $colorScheme',
    async (browser) => {
      const { page } = await open({ browser });
      await page.getByLabel('User name').waitFor();

      expect(await faultsOf(page)).toEqual([]);
    },
  );
});
