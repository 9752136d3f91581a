import type { Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openStage, type Stage } from './stage.ts';
import { STATES, showState } from './states.ts';
import { hasChromium, keepsValue, type OpenOptions } from './support.ts';

type Shown = Stage & { readonly value: string };

/** A page that shows a value, which is not copied yet. */
async function valueShown(options: OpenOptions = {}): Promise<Shown> {
  const stage = await openStage(options);
  onTestFinished(stage.close);
  const state = STATES.find(({ name }) => name === 'value');
  if (state === undefined) throw new Error('there is no such state');
  await showState(stage, state);
  return { ...stage, value: await fieldOf(stage.page).inputValue() };
}

const fieldOf = (page: Page) => page.getByLabel('Value of the token');
const question = (page: Page) => page.getByRole('dialog', { name: 'Leave without the value?' });
const answer = (page: Page, name: string) => question(page).getByRole('button', { name }).click();

const WAYS: Readonly<Record<string, (page: Page) => Promise<unknown>>> = {
  'the Back button': (page) => page.goBack(),
  'a link to the list': (page) => page.getByRole('link', { name: 'Tokens', exact: true }).click(),
  'a link to the review': (page) => page.getByRole('link', { name: 'Review' }).click(),
  'signing out': (page) => page.getByRole('button', { name: 'Sign out' }).click(),
  'a typed address': (page) => page.evaluate(`location.hash = '#/review'`),
};

describe.skipIf(!hasChromium)('a value that was not copied', () => {
  it.each(Object.keys(WAYS))('causes a question before it is lost by %s', async (name) => {
    const { page, value } = await valueShown();
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
    expect(await keepsValue(page, value)).toBe(false);
    expect(await question(page).count()).toBe(0);
    await (name === 'the Back button' ? page.goForward() : page.goBack());
    expect(await keepsValue(page, value)).toBe(false);
  });

  it('no longer causes a question after Back is undone with Forward', async () => {
    const { page, value } = await valueShown();

    await page.goBack();
    await question(page).waitFor();
    await page.goForward();

    await question(page).waitFor({ state: 'detached' });
    expect((await fieldOf(page).inputValue()) === value).toBe(true);
  });

  it('makes the browser ask before its page is closed', async () => {
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

describe.skipIf(!hasChromium)('a value that was copied or can be shown again', () => {
  it.each(['the Back button', 'a link to the review', 'signing out'])(
    'can be left by %s without a question after it was copied',
    async (name) => {
      const { page, context, value } = await valueShown();
      await context.grantPermissions(['clipboard-write']);
      await page.getByRole('button', { name: 'Copy the value' }).click();
      await page.locator('.toast').getByText('Copied').waitFor();

      await WAYS[name]?.(page);

      await fieldOf(page).waitFor({ state: 'detached' });
      expect(await question(page).count()).toBe(0);
      expect(await keepsValue(page, value)).toBe(false);
    },
  );

  it('can be left without a question if the service can show it again', async () => {
    const { page, value } = await valueShown({ service: { reveal: 'always' } });
    await page.getByText('You can see the value again later').waitFor();

    await page.goBack();

    await fieldOf(page).waitFor({ state: 'detached' });
    expect(await question(page).count()).toBe(0);
    expect(await keepsValue(page, value)).toBe(false);
  });

  it('does not make the browser ask before its page is closed', async () => {
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
