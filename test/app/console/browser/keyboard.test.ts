import type { Locator, Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bearerGuard } from '../../../../src/http/index.ts';
import { ScopeCatalog } from '../../../../src/scope/index.ts';
import { manualClock } from '../../../../src/testing/index.ts';
import { ACME, CODE, ORDERS, openStage, wordedService } from './stage.ts';
import { hasChromium, openForTest, PASSWORD, signIn, USERNAME } from './support.ts';

const DAY = 86_400;

/** Counts presses of a mouse, a pen or a finger. */
const COUNT_POINTERS = `window.pointers = 0; addEventListener('pointerdown', () => { window.pointers += 1; }, true);`;

/** Why the focused element is not visible; empty if it is visible. */
const FAULT_OF_FOCUS = `(() => {
  const element = document.activeElement;
  if (element === null || element === document.body) return 'nothing has the focus';
  const style = getComputedStyle(element);
  const hasOutline = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
  // The heading of a screen that has just appeared is read out, and looks as always.
  if (!hasOutline && !element.matches('h1[data-arrived]')) return 'no outline: ' + element.outerHTML;
  const { left, right, top, bottom, width, height } = element.getBoundingClientRect();
  if (width === 0 || bottom <= 0 || top >= innerHeight) return 'out of sight: ' + element.outerHTML;
  const [x, y] = [(left + right) / 2, (Math.max(top, 0) + Math.min(bottom, innerHeight)) / 2];
  const above = document.elementFromPoint(x, y);
  const isSeen = element.contains(above) || above?.contains(element);
  return isSeen ? '' : 'hidden below ' + above?.outerHTML + ': ' + element.outerHTML;
})()`;

/** Keyboard actions on a page. */
function keyboardOf(page: Page) {
  const press = async (...keys: readonly string[]) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  const hasFocus = (element: Locator) => element.evaluate((node) => node.matches(':focus'));
  /** Presses Tab until an element has the focus. Every element on the way must be visible. */
  const tabTo = async (element: Locator, key: 'Tab' | 'Shift+Tab' = 'Tab') => {
    await element.waitFor();
    for (let presses = 0; presses < 100; presses += 1) {
      await press(key);
      expect(await page.evaluate(FAULT_OF_FOCUS)).toBe('');
      if (await hasFocus(element)) return;
    }
    throw new Error(`${key} does not lead to ${element}`);
  };
  const use = async (element: Locator, key?: 'Tab' | 'Shift+Tab') => {
    await tabTo(element, key);
    await press('Enter');
  };
  /** Waits until an element appears and has the focus. */
  const landsOn = async (element: Locator) => {
    await element.waitFor();
    await expect.poll(() => hasFocus(element)).toBe(true);
    expect(await page.evaluate(FAULT_OF_FOCUS)).toBe('');
  };
  return { press, tabTo, use, landsOn, type: (text: string) => page.keyboard.type(text) };
}

const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true });
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const link = (page: Page, name: string) => page.getByRole('link', { name, exact: true });
/** Waits until a live region announces a text. */
const announced = (page: Page, text: string) =>
  page.getByRole('status').filter({ hasText: text }).waitFor();

describe.skipIf(!hasChromium)('the keyboard alone', () => {
  it('is enough to create, watch, narrow and revoke a read-only token for one resource', async () => {
    const clock = manualClock(new Date());
    const service = { catalog: ScopeCatalog.from(ACME), clock };
    const { page, tokens, context } = await openForTest({ service });
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.addInitScript(COUNT_POINTERS);
    await page.reload();
    const { press, tabTo, use, landsOn, type } = keyboardOf(page);
    const guard = bearerGuard({ tokens, domain: CODE });
    const call = async (value: string, method: string, path: string) => {
      const headers = { authorization: `Bearer ${value}` };
      const outcome = await guard(new Request(`https://${CODE}${path}`, { method, headers }));
      return outcome.ok ? 200 : outcome.response.status;
    };

    // Signs in.
    await landsOn(page.getByLabel('User name'));
    await type(USERNAME);
    await tabTo(page.getByLabel('Password'));
    await type(PASSWORD);
    await press('Enter');
    await landsOn(heading(page, 'Tokens'));

    // Makes a token that reads one repository.
    await use(link(page, 'New token').first());
    await landsOn(heading(page, 'New token'));
    await tabTo(page.getByLabel('Name', { exact: true }));
    await type('Docs bot');
    await tabTo(page.getByLabel('Expires'));
    await type('In one year');
    await tabTo(page.getByLabel('at the end of /repos/{};'));
    await type('acme');
    await tabTo(page.getByLabel('at the end of /repos/{}/{};'));
    await type('shop');
    await tabTo(button(page, 'Read-only: /repos/{}/{}'));
    await press('Space');
    await announced(page, `3 endpoints on ${CODE}. All of them only read data.`);
    await use(button(page, 'Create token'));
    await landsOn(heading(page, 'Token created'));

    // Copies its value.
    await use(button(page, 'Copy the value'));
    await announced(page, 'Copied');
    const value = String(await page.evaluate('navigator.clipboard.readText()'));
    expect(value === (await page.getByLabel('Value of the token').inputValue())).toBe(true);
    await use(button(page, 'Done'));
    await landsOn(heading(page, 'Docs bot'));

    // Uses it like a program.
    clock.advance(99 * DAY);
    expect(await call(value, 'GET', '/repos/acme/shop/issues')).toBe(200);
    expect(await call(value, 'POST', '/repos/acme/shop/issues')).toBe(403);
    expect(await call(value, 'GET', '/repos/acme/other/issues')).toBe(403);

    // Sees that it is used.
    await use(link(page, 'All tokens'), 'Shift+Tab');
    await landsOn(heading(page, 'Tokens'));
    await use(link(page, 'Docs bot'));
    await landsOn(heading(page, 'Docs bot'));
    const row = page.getByRole('row').filter({ hasText: '/repos/acme/shop/issues' });
    await expect.poll(() => row.getByRole('cell').allTextContents()).toContain('1');

    // Narrows it.
    await use(button(page, 'Narrow to what was used'));
    const narrowing = page.getByRole('dialog', { name: 'Narrow to what was used' });
    await use(narrowing.getByRole('button', { name: 'Remove 2 scopes' }));
    await announced(page, 'Removed 2 scopes.');
    await landsOn(button(page, 'Narrow to what was used'));
    expect(await call(value, 'GET', '/repos/acme/shop/issues')).toBe(200);
    expect(await call(value, 'GET', '/repos/acme/shop')).toBe(403);

    // Revokes it, but not by a second press of Enter.
    await use(button(page, 'Revoke'), 'Shift+Tab');
    const revoking = page.getByRole('dialog', { name: 'Revoke this token?' });
    await landsOn(revoking.getByRole('button', { name: 'Cancel' }));
    await press('Escape');
    await landsOn(button(page, 'Revoke'));
    await press('Enter');
    await use(revoking.getByRole('button', { name: 'Revoke token' }), 'Shift+Tab');
    await landsOn(heading(page, 'Tokens'));
    await announced(page, 'Revoked Docs bot.');
    expect(await call(value, 'GET', '/repos/acme/shop/issues')).toBe(401);

    // Signs out.
    await use(button(page, 'Sign out'), 'Shift+Tab');
    await landsOn(page.getByLabel('User name'));
    expect(await page.evaluate('window.pointers')).toBe(0);
  });

  it('is enough to choose permissions, their endpoints and one resource', async () => {
    const { page, tokens } = await openForTest({ service: wordedService() });
    await signIn(page);
    const { press, tabTo, use, landsOn, type } = keyboardOf(page);
    const level = (name: string) => page.getByRole('combobox', { name, exact: true });

    await use(link(page, 'New token').first());
    await landsOn(heading(page, 'New token'));
    await tabTo(level('Issues'));
    await type('Read');
    await use(button(page, 'What is below Releases'));
    const publish = page.getByRole('checkbox', { name: 'Publish a release', exact: true });
    await tabTo(publish);
    await press('Space');
    await announced(page, '2 endpoints');
    const resource = page.getByRole('group', { name: 'Only this resource' }).getByRole('textbox');
    await tabTo(resource.first());
    await type('acme');
    await press('Tab');
    await type('shop');
    await use(button(page, 'Create token'));
    await landsOn(heading(page, 'Token created'));

    const { tokens: made } = await tokens.list({ account: USERNAME });
    expect(made[0]?.scopes).toEqual([
      `GET:${CODE}/repos/acme/shop/issues$`,
      `POST:${CODE}/repos/acme/shop/releases$`,
    ]);
  });

  it('is enough to approve a part of a request', async () => {
    const service = wordedService();
    const { page, requests } = await openForTest({ service, takesRequests: true });
    const asked = { client: 'Deploy assistant', scopes: [`*:${ORDERS}/orders/{}$`] };
    const { deviceCode, userCode } = await requests().open(asked);
    await signIn(page);
    const { press, tabTo, use, landsOn, type } = keyboardOf(page);

    await use(link(page, 'Approve a request'));
    await landsOn(page.getByLabel('Code'));
    await type('wrong');
    await press('Enter');
    await page.getByText('no vowels').waitFor();
    await landsOn(page.getByLabel('Code'));
    await press('Control+A');
    await type(userCode);
    await press('Enter');
    await landsOn(heading(page, 'A program asks for a token'));
    await tabTo(page.getByRole('checkbox', { name: 'Cancel an order' }));
    await press('Space');
    await tabTo(page.getByLabel('Lifetime'));
    await type('5');
    await use(button(page, 'Approve'));
    await landsOn(heading(page, 'Approved'));

    const { token } = await requests().poll(deviceCode, { client: asked.client });
    expect(token?.scopes).toEqual([`GET:${ORDERS}/orders/{}$`, `PATCH:${ORDERS}/orders/{}$`]);
    expect(Number(token?.expiresAt) - Number(token?.createdAt)).toBe(300_000);
    await use(button(page, 'Enter another code'));
    await landsOn(page.getByLabel('Code'));
  });

  it('can skip the header of every screen', async () => {
    const { page } = await openForTest({ service: { catalog: ScopeCatalog.from(ACME) } });
    await signIn(page);
    const { press, tabTo, landsOn } = keyboardOf(page);

    await tabTo(button(page, 'Skip to content'), 'Shift+Tab');
    await press('Enter', 'Tab');

    await landsOn(link(page, 'New token').first());
  });

  it('keeps a visible focus when the focused element disappears', async () => {
    const { page, goAway, comeBack, close } = await openStage();
    onTestFinished(close);
    await signIn(page);
    const { press, tabTo, use, landsOn } = keyboardOf(page);

    // The button to retry disappears after the retry.
    await page.getByRole('link', { name: 'Deploy bot' }).waitFor();
    goAway();
    await tabTo(page.getByLabel('State'));
    await page.keyboard.type('All');
    await tabTo(button(page, 'Try again'));
    comeBack();
    await press('Enter');
    await landsOn(heading(page, 'Tokens'));

    // The button for the selected tokens disappears when they are revoked.
    await tabTo(page.getByLabel('Select Holiday cover'));
    await press('Space');
    await use(button(page, 'Revoke selected'), 'Shift+Tab');
    await use(button(page, 'Revoke 1 token'), 'Shift+Tab');
    await announced(page, 'Revoked 1 token.');
    await landsOn(heading(page, 'Tokens'));

    // A row of the review disappears when its finding is resolved.
    await use(link(page, 'Review'), 'Shift+Tab');
    await landsOn(heading(page, 'Review'));
    await use(button(page, 'Resume: Migration of the ledger'));
    await announced(page, 'The token works again.');
    await landsOn(heading(page, 'Review'));
  });

  it('moves through the picker of a dialog without hiding the focused element', async () => {
    const { page, close } = await openStage();
    onTestFinished(close);
    await signIn(page);
    const { use, tabTo, landsOn } = keyboardOf(page);

    await use(link(page, 'Deploy bot'));
    await landsOn(heading(page, 'Deploy bot'));
    await use(button(page, 'Edit'));
    await use(page.getByRole('dialog').locator('summary').first());
    await tabTo(page.getByRole('checkbox', { name: `GET /exports (${ORDERS})` }));
    await tabTo(button(page, 'Cancel'));
    await page.keyboard.press('Enter');

    await landsOn(button(page, 'Edit'));
  });
});
