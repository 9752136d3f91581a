// Every state of every screen, in every look.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Look, takePicture } from './pictures.ts';
import { openStage, type Stage, wordedService } from './stage.ts';
import { STATES, STATES_IN_WORDS, STATES_OF_REQUESTS, type State, showState } from './states.ts';
import { faultsOf, hasChromium, openConsole } from './support.ts';

/** A window of 1280 pixels has 640 at 200 percent zoom. */
const LOOKS = [
  { width: 1280, colorScheme: 'light' },
  { width: 1280, colorScheme: 'dark' },
  { width: 640, colorScheme: 'light' },
  { width: 390, colorScheme: 'light' },
  { width: 390, colorScheme: 'dark' },
  { width: 320, colorScheme: 'dark' },
] as const satisfies readonly Look[];

/** The faults in all looks. The structure is the same in each of them, so only the first one checks it. */
async function faultsInLooks(page: Page, name: string): Promise<string[]> {
  const faults: string[] = [];
  for (const [at, { width, colorScheme }] of LOOKS.entries()) {
    await page.setViewportSize({ width, height: 900 });
    // During a transition, axe would measure the wrong colors.
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    const found = [...(await faultsOf(page, at === 0 ? 'all' : 'looks')), ...(await cutIn(page))];
    faults.push(...found.map((fault) => `${width} ${colorScheme}: ${fault}`));
    await takePicture(page, name, { width, colorScheme });
  }
  return faults;
}

/** Elements that overflow: from right to left, with wider spacing and with larger text. */
async function faultsInShapes(page: Page): Promise<string[]> {
  const faults: string[] = [];
  for (const [width, ...shapes] of [
    [1280, 'rtl', 'spaced', 'large'],
    [320, 'rtl', 'spaced'],
  ] as const) {
    await page.setViewportSize({ width, height: 900 });
    for (const shape of shapes) {
      await page.evaluate(SHAPES[shape]);
      faults.push(...(await cutIn(page)).map((fault) => `${width} ${shape}: ${fault}`));
      await page.evaluate(SHAPES.none);
    }
  }
  return faults;
}

/** The policy of the page forbids inline styles, but not style sheets that a script constructs. */
const sheetOf = (text: string) =>
  `{ const sheet = new CSSStyleSheet(); sheet.replaceSync(${JSON.stringify(text)}); document.adoptedStyleSheets = [sheet]; }`;

const SHAPES = {
  none: `document.documentElement.dir = ''; document.adoptedStyleSheets = [];`,
  rtl: `document.documentElement.dir = 'rtl'`,
  // WCAG 1.4.12
  spaced: sheetOf(
    '* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important } p { margin-block-end: 2em !important }',
  ),
  // WCAG 1.4.4, for browsers that zoom only text
  large: sheetOf('html { font-size: 200% }'),
};

/** Elements that overflow the window or their box. A long name can be truncated if it is a link. */
function cutIn(page: Page): Promise<string[]> {
  return page.evaluate(`(() => {
    const faults = [];
    const root = document.documentElement;
    if (root.scrollWidth > innerWidth) faults.push(root.scrollWidth - innerWidth + ' pixels too wide');
    for (const element of document.querySelectorAll('body *')) {
      const style = getComputedStyle(element);
      if (style.display === 'inline' || element.matches('.visually-hidden, .who-name, .token-link, .skip, progress, select, input, option, svg *')) continue;
      const isCut = element.clientWidth > 0 && element.scrollWidth > element.clientWidth + 1;
      if (isCut) faults.push('cut off: ' + element.cloneNode().outerHTML + ' ' + element.scrollWidth + ' > ' + element.clientWidth);
    }
    return faults;
  })()`);
}

describe.skipIf(!hasChromium).each([
  { of: 'every state of the console', states: STATES, service: {} },
  { of: 'every state in words', states: STATES_IN_WORDS, service: wordedService() },
  {
    of: 'every state of requests',
    states: STATES_OF_REQUESTS,
    service: wordedService(),
    takesRequests: true,
  },
])('$of', ({ states, service, takesRequests = false }) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage({ service, takesRequests });
  });
  afterAll(() => stage.close());

  it.each(states)('has no faults in any look: $name', async (state: State) => {
    await showState(stage, state);

    expect(await faultsInLooks(stage.page, state.name)).toEqual([]);
    expect(await faultsInShapes(stage.page)).toEqual([]);
  });
});

describe.skipIf(!hasChromium)('an account without tokens', () => {
  it.each([
    ['list', '#/', 'No tokens yet'],
    ['review', '#/review', 'Nothing to do'],
  ])('has no faults in any look: %s', async (name, hash, text) => {
    const { page, url, close } = await openConsole({ ways: { session: () => 'ada' } });
    await page.goto(url + hash);
    await page.getByText(text).waitFor();

    expect(await faultsInLooks(page, `${name}, empty`)).toEqual([]);
    expect(await faultsInShapes(page)).toEqual([]);
    await close();
  });

  it('has no faults in the form for scopes as text, without a catalog', async () => {
    const { page, url, close } = await openConsole({ ways: { session: () => 'ada' } });
    await page.goto(`${url}#/new`);
    await page.getByLabel('What the token may do').waitFor();

    expect(await faultsInLooks(page, 'new, as text')).toEqual([]);
    expect(await faultsInShapes(page)).toEqual([]);
    await close();
  });

  it.each([
    ['no session', async (page: Page) => page.getByText('You are not signed in.').waitFor()],
    ['no answer', async (page: Page) => page.getByRole('alert').waitFor()],
    ['no answer yet', async (page: Page) => page.getByText('Loading…').waitFor()],
  ])('has no faults on the first screen with %s', async (name, isShown) => {
    const { page, close } = await openConsole({ ways: { session: () => null } });
    if (name === 'no answer') await page.route('**/openapi.json', (route) => route.abort());
    if (name === 'no answer yet') await page.route('**/openapi.json', () => {});
    await page.reload();
    await isShown(page);

    expect(await faultsInLooks(page, `sign-in, ${name}`)).toEqual([]);
    expect(await faultsInShapes(page)).toEqual([]);
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await close();
  });
});
