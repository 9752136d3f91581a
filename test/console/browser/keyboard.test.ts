import type { Locator, Page } from 'playwright-core';
import { afterEach, describe, expect, it } from 'vitest';
import { bearerGuard } from '../../../src/http/index.ts';
import { ScopeCatalog } from '../../../src/scope/index.ts';
import { manualClock } from '../../../src/testing/index.ts';
import { ACME, CODE, ORDERS, openStage } from './stage.ts';
import { hasChromium, type Opened, openConsole, PASSWORD, signIn, USERNAME } from './support.ts';

const DAY = 86_400;

let opened: Opened | undefined;
afterEach(async () => {
  const { close } = opened ?? {};
  opened = undefined;
  await close?.();
});

/** Counts presses of a mouse, a pen or a finger. */
const COUNT_POINTERS = `window.pointers = 0; addEventListener('pointerdown', () => { window.pointers += 1; }, true);`;

/** What is wrong with the place that has the focus: nobody sees it. Empty if all is well. */
const FAULT_OF_FOCUS = `(() => {
  const element = document.activeElement;
  if (element === null || element === document.body) return 'nothing has the focus';
  const style = getComputedStyle(element);
  const hasOutline = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
  if (!hasOutline) return 'no outline: ' + element.outerHTML;
  const { left, right, top, bottom, width, height } = element.getBoundingClientRect();
  if (width === 0 || bottom <= 0 || top >= innerHeight) return 'out of sight: ' + element.outerHTML;
  const [x, y] = [(left + right) / 2, (Math.max(top, 0) + Math.min(bottom, innerHeight)) / 2];
  const above = document.elementFromPoint(x, y);
  const isSeen = element.contains(above) || above?.contains(element);
  return isSeen ? '' : 'hidden below ' + above?.outerHTML + ': ' + element.outerHTML;
})()`;

/** Hands on a keyboard. */
function keyboardOf(page: Page) {
  const press = async (...keys: readonly string[]) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  const hasFocus = (place: Locator) => place.evaluate((element) => element.matches(':focus'));
  /** Presses Tab until a place has the focus. Each place on the way has to be seen. */
  const tabTo = async (place: Locator, key: 'Tab' | 'Shift+Tab' = 'Tab') => {
    await place.waitFor();
    for (let presses = 0; presses < 100; presses += 1) {
      await press(key);
      expect(await page.evaluate(FAULT_OF_FOCUS)).toBe('');
      if (await hasFocus(place)) return;
    }
    throw new Error(`${key} does not lead to ${place}`);
  };
  const use = async (place: Locator, key?: 'Tab' | 'Shift+Tab') => {
    await tabTo(place, key);
    await press('Enter');
  };
  /** Something that appears has the focus. */
  const landsOn = async (place: Locator) => {
    await place.waitFor();
    await expect.poll(() => hasFocus(place)).toBe(true);
    expect(await page.evaluate(FAULT_OF_FOCUS)).toBe('');
  };
  return { press, tabTo, use, landsOn, type: (text: string) => page.keyboard.type(text) };
}

const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true });
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const link = (page: Page, name: string) => page.getByRole('link', { name, exact: true });
/** What a screen reader says of its own accord. */
const said = (page: Page, text: string) =>
  page.getByRole('status').filter({ hasText: text }).waitFor();

describe.skipIf(!hasChromium)('the keyboard alone', () => {
  it('makes a read-only token for one resource, sees it used, narrows it and revokes it', async () => {
    const clock = manualClock(new Date());
    opened = await openConsole({ service: { catalog: ScopeCatalog.from(ACME), clock } });
    const { page, tokens, context } = opened;
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
    await said(page, `3 endpoints on ${CODE}. All of them only read data.`);
    await use(button(page, 'Create token'));
    await landsOn(heading(page, 'Token created'));

    // Copies its value.
    await use(button(page, 'Copy the value'));
    await said(page, 'Copied');
    const value = String(await page.evaluate('navigator.clipboard.readText()'));
    expect(value === (await page.getByLabel('Value of the token').inputValue())).toBe(true);
    await use(button(page, 'Done'));
    await landsOn(heading(page, 'Docs bot'));

    // Uses it, as a program does.
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
    await said(page, 'Removed 2 scopes.');
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
    await said(page, 'Revoked Docs bot.');
    expect(await call(value, 'GET', '/repos/acme/shop/issues')).toBe(401);

    // Signs out.
    await use(button(page, 'Sign out'), 'Shift+Tab');
    await landsOn(page.getByLabel('User name'));
    expect(await page.evaluate('window.pointers')).toBe(0);
  });

  it('skips what every screen begins with', async () => {
    opened = await openConsole({ service: { catalog: ScopeCatalog.from(ACME) } });
    const { page } = opened;
    await signIn(page);
    const { press, tabTo, landsOn } = keyboardOf(page);

    await tabTo(button(page, 'Skip to content'), 'Shift+Tab');
    await press('Enter', 'Tab');

    await landsOn(link(page, 'New token').first());
  });

  it('is led on where the place that had the focus disappears', async () => {
    opened = await openStage();
    const { page, goAway, comeBack } = opened;
    await signIn(page);
    const { press, tabTo, use, landsOn } = keyboardOf(page);

    // A button for an error that is over.
    await page.getByRole('link', { name: 'Deploy bot' }).waitFor();
    goAway();
    await tabTo(page.getByLabel('State'));
    await page.keyboard.type('All');
    await tabTo(button(page, 'Try again'));
    comeBack();
    await press('Enter');
    await landsOn(heading(page, 'Tokens'));

    // A button for a selection that is revoked.
    await tabTo(page.getByLabel('Select Holiday cover'));
    await press('Space');
    await use(button(page, 'Revoke selected'), 'Shift+Tab');
    await use(button(page, 'Revoke 1 token'), 'Shift+Tab');
    await said(page, 'Revoked 1 token.');
    await landsOn(heading(page, 'Tokens'));

    // A row of the review whose finding is gone.
    await use(link(page, 'Review'), 'Shift+Tab');
    await landsOn(heading(page, 'Review'));
    await use(button(page, 'Resume: Migration of the ledger'));
    await said(page, 'The token works again.');
    await landsOn(heading(page, 'Review'));
  });

  it('moves within the picker of a dialog, and what confirms it hides nothing', async () => {
    opened = await openStage();
    const { page } = opened;
    await signIn(page);
    const { use, tabTo, landsOn } = keyboardOf(page);

    await use(link(page, 'Deploy bot'));
    await landsOn(heading(page, 'Deploy bot'));
    await use(button(page, 'Edit scopes'));
    await tabTo(page.getByRole('checkbox', { name: `GET /exports (${ORDERS})` }));
    await tabTo(button(page, 'Cancel'));
    await page.keyboard.press('Enter');

    await landsOn(button(page, 'Edit scopes'));
  });
});
