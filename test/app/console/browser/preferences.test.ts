// Preferences of browsers: reduced motion, forced colors, and text from right to left.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openStage, type Stage, wordedService } from './stage.ts';
import { STATES, STATES_OF_REQUESTS, showState } from './states.ts';
import { hasChromium } from './support.ts';

const APP = join(import.meta.dirname, '../../../../src/app/console/page');

/** Elements that move or fade, or would if something about them changed. */
const movingIn = (page: Page) =>
  page.evaluate(`[...document.querySelectorAll('*')].filter((element) => {
    const { transitionDuration, animationName, scrollBehavior } = getComputedStyle(element);
    const isTimed = transitionDuration.split(',').some((time) => parseFloat(time) > 0);
    return isTimed || animationName !== 'none' || scrollBehavior === 'smooth';
  }).length + document.getAnimations().length`);

describe('the styles', () => {
  it('use logical properties instead of left, right, width and height', () => {
    const sheets = globSync('**/*.css', { cwd: APP }).map((name) =>
      readFileSync(join(APP, name), 'utf8'),
    );
    const physical =
      /(?:^|[\s;{])(?:(?:margin|padding|border|inset)-(?:left|right|top|bottom)|left|right|float|clear|(?:min-|max-)?(?:width|height))\s*:|text-align:\s*(?:left|right)/gm;

    expect(sheets.length).toBeGreaterThan(1);
    expect(sheets.flatMap((sheet) => sheet.match(physical) ?? [])).toEqual([]);
    expect('a { margin-left: 1px }'.match(physical)).toHaveLength(1);
  });
});

describe.skipIf(!hasChromium)('the console', () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage();
  });
  afterAll(() => stage.close());

  const show = async (name: string): Promise<Page> => {
    const state = STATES.find((one) => one.name === name);
    if (state === undefined) throw new Error(`there is no state ${name}`);
    await showState(stage, state);
    return stage.page;
  };

  it('animates nothing if the browser asks for reduced motion', async () => {
    for (const name of ['list', 'new, one resource', 'token, revoke', 'value, copied']) {
      await stage.page.emulateMedia({ reducedMotion: 'reduce' });
      const page = await show(name);
      expect(await movingIn(page)).toBe(0);
      await page.emulateMedia({ reducedMotion: 'no-preference' });
      expect(await movingIn(page)).toBeGreaterThan(0);
    }
  });

  it('shows pressed switches and the current section with forced colors', async () => {
    const page = await show('new, one resource');
    await page.emulateMedia({ forcedColors: 'active' });
    const styleOf = (name: string, pressed: boolean) =>
      page
        .locator(`.switch[aria-pressed="${pressed}"]`)
        .first()
        .evaluate((element, property) => {
          const { getComputedStyle } = globalThis as unknown as {
            getComputedStyle(of: unknown): Record<string, string>;
          };
          return getComputedStyle(element)[property];
        }, name);

    expect(await styleOf('backgroundColor', true)).not.toBe(
      await styleOf('backgroundColor', false),
    );
    const line = await page.evaluate(
      `getComputedStyle(document.querySelector('nav a[aria-current]')).borderBlockEndStyle`,
    );
    expect(line).toBe('solid');
    await page.emulateMedia({ forcedColors: 'none' });
  });

  it('shows what is marked and what is hidden with forced colors', async () => {
    const asking = await openStage({ service: wordedService(), takesRequests: true });
    onTestFinished(asking.close);
    const state = STATES_OF_REQUESTS.find(({ name }) => name === 'approve, less');
    await showState(asking, state as (typeof STATES)[number]);
    const { page } = asking;
    await page.emulateMedia({ forcedColors: 'active' });

    const borders = await page.evaluate(
      `['.badge', '.hidden-character'].map((name) => {
        const { borderBlockEndStyle, borderBlockEndColor, backgroundColor } = getComputedStyle(document.querySelector(name));
        return borderBlockEndStyle === 'solid' && borderBlockEndColor !== backgroundColor;
      })`,
    );
    expect(borders).toEqual([true, true]);
  });

  it('is mirrored from right to left, except for code', async () => {
    const page = await show('new, one resource');
    await page.evaluate(`document.documentElement.dir = 'rtl'`);
    const middleOf = async (selector: string) => {
      const box = await page.locator(selector).first().boundingBox();
      return (box?.x ?? 0) + (box?.width ?? 0) / 2;
    };

    expect(await middleOf('h1')).toBeGreaterThan(640);
    expect(await middleOf('.who')).toBeLessThan(640);
    expect(await middleOf('.twisty')).toBeGreaterThan(await middleOf('.switch'));
    const directions = await page.evaluate(
      `[...document.querySelectorAll('code, pre')].map((element) => getComputedStyle(element).direction)`,
    );
    expect(new Set(directions as string[])).toEqual(new Set(['ltr']));
    await page.evaluate(`document.documentElement.dir = ''`);
  });
});
