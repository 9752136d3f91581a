import type { Page } from 'playwright-core';
import { afterEach, describe, expect, it } from 'vitest';
import { openStage, type Stage } from './stage.ts';
import { STATES, showState } from './states.ts';
import { hasChromium, type OpenOptions } from './support.ts';

let opened: Stage | undefined;
afterEach(async () => {
  const { close } = opened ?? {};
  opened = undefined;
  await close?.();
});

type Shown = Stage & { readonly value: string };

/** A value that was not copied. */
async function valueShown(options: OpenOptions = {}): Promise<Shown> {
  opened = await openStage(options);
  const state = STATES.find(({ name }) => name === 'value');
  if (state === undefined) throw new Error('there is no such state');
  await showState(opened, state);
  return { ...opened, value: await fieldOf(opened.page).inputValue() };
}

const fieldOf = (page: Page) => page.getByLabel('Value of the token');
const question = (page: Page) => page.getByRole('dialog', { name: 'Leave without the value?' });
const answer = (page: Page, name: string) => question(page).getByRole('button', { name }).click();

/** All places where a value must not stay. */
async function isKept({ page, value }: Shown): Promise<boolean> {
  const kept =
    await page.evaluate(`JSON.stringify([document.documentElement.outerHTML, location.href,
    history.state, document.title, { ...localStorage }, { ...sessionStorage }, document.cookie,
    [...document.querySelectorAll('input, textarea')].map((field) => field.value)])`);
  return String(kept).includes(value);
}

const WAYS: Readonly<Record<string, (page: Page) => Promise<unknown>>> = {
  'the way back': (page) => page.goBack(),
  'a link to the list': (page) => page.getByRole('link', { name: 'Tokens', exact: true }).click(),
  'a link to the review': (page) => page.getByRole('link', { name: 'Review' }).click(),
  'signing out': (page) => page.getByRole('button', { name: 'Sign out' }).click(),
  'an address that was typed': (page) => page.evaluate(`location.hash = '#/review'`),
};

describe.skipIf(!hasChromium)('a value that was not copied', () => {
  it.each(Object.keys(WAYS))('is asked about before it is lost by %s', async (name) => {
    const shown = await valueShown();
    const { page, value } = shown;
    const address = page.url();
    const go = async () => WAYS[name]?.(page);

    await go();
    await answer(page, 'Stay here');
    await question(page).waitFor({ state: 'detached' });
    expect((await fieldOf(page).inputValue()) === value).toBe(true);
    await expect.poll(() => page.url()).toBe(address);

    await go();
    await answer(page, 'Leave without it');
    await fieldOf(page).waitFor({ state: 'detached' });
    await page.getByRole('heading', { level: 1 }).waitFor();
    expect(await isKept(shown)).toBe(false);
    expect(await question(page).count()).toBe(0);
    await (name === 'the way back' ? page.goForward() : page.goBack());
    expect(await isKept(shown)).toBe(false);
  });

  it('is not asked about any more once the way back is taken back', async () => {
    const { page, value } = await valueShown();

    await page.goBack();
    await question(page).waitFor();
    await page.goForward();

    await question(page).waitFor({ state: 'detached' });
    expect((await fieldOf(page).inputValue()) === value).toBe(true);
  });

  it('is asked about by the browser when its page is closed', async () => {
    const { page } = await valueShown();
    const asked: string[] = [];
    page.on('dialog', (dialog) => {
      asked.push(dialog.type());
      return dialog.dismiss();
    });

    await page.close({ runBeforeUnload: true });
    await expect.poll(() => asked).toEqual(['beforeunload']);

    expect(await fieldOf(page).isVisible()).toBe(true);
    page.removeAllListeners('dialog');
  });
});

describe.skipIf(!hasChromium)('a value that is safe', () => {
  it.each(['the way back', 'a link to the review', 'signing out'])(
    'is left by %s without a question: it was copied',
    async (name) => {
      const shown = await valueShown();
      const { page, context } = shown;
      await context.grantPermissions(['clipboard-write']);
      await page.getByRole('button', { name: 'Copy the value' }).click();
      await page.locator('.toast').getByText('Copied').waitFor();

      await WAYS[name]?.(page);

      await fieldOf(page).waitFor({ state: 'detached' });
      expect(await question(page).count()).toBe(0);
      expect(await isKept(shown)).toBe(false);
    },
  );

  it('is left without a question where it can be shown again', async () => {
    const shown = await valueShown({ service: { reveal: 'always' } });
    const { page } = shown;
    await page.getByText('You can see the value again later').waitFor();

    await page.goBack();

    await fieldOf(page).waitFor({ state: 'detached' });
    expect(await question(page).count()).toBe(0);
    expect(await isKept(shown)).toBe(false);
  });

  it('lets its page be closed', async () => {
    const { page, context } = await valueShown();
    await context.grantPermissions(['clipboard-write']);
    await page.getByRole('button', { name: 'Copy the value' }).click();
    await page.locator('.toast').getByText('Copied').waitFor();
    const asked: string[] = [];
    page.on('dialog', (dialog) => {
      asked.push(dialog.type());
      return dialog.accept();
    });

    const closed = page.waitForEvent('close');
    await page.close({ runBeforeUnload: true });
    await closed;

    expect(asked).toEqual([]);
  });
});
