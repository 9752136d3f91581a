// Translating every text into Greek letters reveals the texts that cannot be translated.
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { type ConsoleTexts, ENGLISH_TEXTS } from '../../../../src/app/console/index.ts';
import { ScopeCatalog } from '../../../../src/scope/index.ts';
import { manualClock } from '../../../../src/testing/index.ts';
import { faultsOf, hasChromium, type Opened, openForTest, PASSWORD, USERNAME } from './support.ts';

const HOST = 'api.shop.example';
const SCOPES = ['orders', 'bills', 'users/{}'].flatMap((path) => [
  `GET:${HOST}/${path}`,
  `POST:${HOST}/${path}`,
]);
const catalog = ScopeCatalog.from([...SCOPES, 'GET:ship.shop.example/labels']);
/** With data in Greek letters. */
const worded = ScopeCatalog.from(
  ['GET', 'POST'].map((method) => ({
    scope: `${method}:${HOST}/users/{}/bills$`,
    summary: 'Σύνοψη',
    tag: 'Ετικέτα',
    segments: ['χρήστης'],
    deprecated: true,
  })),
);
const DAY = 86_400;

const GREEK = 'αβψδεφγηιξκλμνοπχρσθυωςχυζ';

/** An English text in Greek letters, with its placeholders. */
function greek(text: string): string {
  if (text === '{message}') return 'Λάθος.';
  return text.replace(/(\{[a-z]*\})|[a-z]/gi, (letter, placeholder) =>
    placeholder === undefined ? (GREEK[letter.toLowerCase().charCodeAt(0) - 97] as string) : letter,
  );
}

function translated(texts: unknown, translate: (text: string) => string): unknown {
  if (typeof texts === 'string') return translate(texts);
  const entries = Object.entries(texts as object);
  return Object.fromEntries(entries.map(([key, text]) => [key, translated(text, translate)]));
}

const TEXTS = translated(ENGLISH_TEXTS, greek) as ConsoleTexts;

/** Data in Latin letters that is not translated: names, scopes and parts of them, addresses. */
const DATA =
  /acme_\w+…?|\b(?:Acme|ada)\b|[A-Z*]+:\S+|\b(?:api|ship)\.shop\.example\S*|https?:\S+|(?<!\w)\/[\w/{}$]+|\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\b|\b(?:orders|bills|users|labels)\b|\b(?:Orders|Bills|Users|Labels)\b/g;

/** The texts of a page, including those for screen readers, that still contain Latin letters. */
async function leftOn(page: Page): Promise<string[]> {
  const texts = (await page.evaluate(`(() => {
    const texts = [document.title];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const { parentElement, data } = walker.currentNode;
      if (parentElement.closest('code, pre, script, noscript') === null) texts.push(data);
    }
    for (const element of document.querySelectorAll('*')) {
      for (const name of ['aria-label', 'title', 'placeholder', 'alt', 'aria-description']) {
        texts.push(element.getAttribute(name) ?? '');
      }
    }
    return texts;
  })()`)) as string[];
  return texts.filter((text) => /[a-z]{2}/i.test(text.replaceAll(DATA, '')));
}

interface Greek extends Opened {
  /** Presses the button that has this English text. */
  readonly press: (name: string) => Promise<void>;
  readonly field: (label: string) => ReturnType<Page['getByLabel']>;
  /** Waits for the translation of a text, and expects no English on the page. */
  readonly look: (english: string) => Promise<void>;
}

/** The sign-in of an account with tokens of every kind. */
async function inGreek(): Promise<Greek> {
  const clock = manualClock(new Date());
  const opened = await openForTest({
    service: { catalog, clock, limits: true },
    console: { texts: TEXTS, language: 'el' },
    derivation: true,
    takesRequests: true,
  });
  const { tokens, page } = opened;
  const issue = (name: string, scopes: readonly string[], days: number) =>
    tokens.issue({ account: USERNAME, name, scopes, ttlSeconds: days * DAY });
  const old = await issue('Α', SCOPES, 202);
  await issue('Β', SCOPES.slice(0, 1), 300);
  const limited = { uses: 9, rate: { uses: 2, seconds: 60 }, addresses: ['192.0.2.0/24'] };
  await tokens.issue({ account: USERNAME, name: 'Γ', scopes: SCOPES, limits: limited });
  clock.advance(199 * DAY);
  for (let use = 0; use < 3; use += 1) await tokens.verify(old.value, { scope: SCOPES[0] ?? '' });
  await tokens.derive(old.value, { scopes: SCOPES.slice(0, 2), name: 'Δ' });
  clock.advance(DAY);
  const named = (name: string) => ({ name: greek(name), exact: true });
  const press = (name: string) =>
    page
      .getByRole('button', named(name))
      .or(page.getByRole('link', named(name)))
      .first()
      .click();
  const look = async (english: string) => {
    await page.getByText(greek(english)).first().waitFor();
    expect(await leftOn(page)).toEqual([]);
  };
  return { ...opened, press, look, field: (label) => page.getByLabel(greek(label)).first() };
}

async function signInGreek({ page, press, look, field }: Greek): Promise<void> {
  await press('Sign in');
  await look('Enter your user name.');
  await field('User name').fill(USERNAME);
  await field('Password').fill('wrong');
  await press('Sign in');
  await look('The user name or the password is wrong.');
  await field('Password').fill(PASSWORD);
  await press('Sign in');
  await page.getByRole('link', { name: 'Β', exact: true }).waitFor();
}

describe.skipIf(!hasChromium)('a translation', () => {
  it('leaves no English on the list and the review', { timeout: 60_000 }, async () => {
    const shown = await inGreek();
    const { page, press, look, field, goAway, comeBack } = shown;
    expect(await page.evaluate('document.documentElement.lang')).toBe('el');
    await expect
      .poll(() => page.title())
      .toBe(`${greek('Sign in')} · ${greek('Access tokens')} · Acme`);
    await signInGreek(shown);
    await look('Expires soon');
    await field('Search by name').fill('κανένα');
    await look('No token matches');
    await press('Remove all filters');
    await page.getByRole('checkbox').first().check();
    await look('Revoke selected');
    await press('Revoke selected');
    await look('Tokens that were derived from them end with them.');
    goAway();
    await page.getByRole('dialog').getByRole('button').first().click();
    await look('not tried and still work');
    comeBack();
    await press('Close');
    await press('Review');
    await page.getByText(/^\d+ φινδινγσ$/).waitFor();
    await look('Review');
    expect(await page.getByRole('main').textContent()).toContain(greek('expires on').slice(2));
    goAway();
    await press('Tokens');
    await look('The service does not answer.');
    comeBack();
  });

  it('leaves no English on the page of a token', { timeout: 60_000 }, async () => {
    const shown = await inGreek();
    const { page, tokens, press, look, field } = shown;
    await signInGreek(shown);
    await page.getByRole('link', { name: 'Γ', exact: true }).click();
    await look('only from');
    await page.goBack();
    await page.getByRole('link', { name: 'Α', exact: true }).click();
    await look('Derived tokens');
    await page.locator('.token-below summary').click();
    await look('Nothing was derived from it.');
    await field('Address').fill('x y');
    await press('Ask');
    await look('Enter an address with a host and a path');
    await field('Address').fill(`https://${HOST}/orders`);
    await press('Ask');
    await look('Granted by');
    await field('Address').fill(`https://${HOST}/order`);
    await press('Ask');
    await look('Not allowed.');
    for (const [button, text] of [
      ['Edit', 'What the token may do'],
      ['Narrow to what was used', 'Removes'],
      ['Rotate', 'The old value stops working'],
      ['Revoke', 'Programs that use it stop working immediately.'],
    ] as const) {
      await press(button);
      await look(text);
      await press('Cancel');
    }
    await press('Edit');
    await page.getByRole('dialog').locator('details.card > summary').first().click();
    await look('What would be granted');
    await press('Cancel');
    await page
      .locator('summary')
      .filter({ hasText: greek('Details') })
      .click();
    await look('Version');
    const [token] = (await tokens.list({ account: USERNAME, name: 'Α' })).tokens;
    await tokens.patch(USERNAME, token?.id ?? '', { name: 'Ε' });
    await press('Suspend');
    await look('This token was changed');
  });

  it('leaves no English on the screens for a new token', { timeout: 60_000 }, async () => {
    const shown = await inGreek();
    const { page, press, look, field } = shown;
    await signInGreek(shown);
    await press('New token');
    await look('Nothing is selected yet.');
    await press('Create token');
    await look('Choose at least one endpoint.');
    await page
      .locator('summary')
      .filter({ hasText: greek('Limits') })
      .click();
    await page
      .locator('summary')
      .filter({ hasText: greek('Add a scope as text') })
      .click();
    await field('Uses in total').fill('many');
    await page.getByRole('textbox', { name: greek('Scope'), exact: true }).fill('get:x');
    await press('Add');
    await look('Λάθος.');
    await field('Search endpoints').fill('nothing');
    await look('No endpoint has all of these words.');
    await field('Search endpoints').fill('get orders');
    await page.getByRole('checkbox', { name: /GET.*orders/ }).check();
    await press('Create token');
    await page.locator('.error, [role=alert]').filter({ hasText: 'Λάθος.' }).last().waitFor();
    await look('The same call as JSON and curl');
    await field('Uses in total').fill('7');
    await press('Create token');
    await look('Copy the value now. It cannot be shown again.');
    expect(await faultsOf(page)).toEqual([]);
    await press('Derive a narrower token');
    await look('It may do at most what');
    await press('Cancel');
    await press('Done');
    await look('Leave without the value?');
  });

  it('leaves no English on a request for a token', { timeout: 60_000 }, async () => {
    const shown = await inGreek();
    const { page, url, tokens, requests, press, look, field } = shown;
    await signInGreek(shown);
    const first = await tokens.issue({ account: USERNAME, name: 'Ζ', scopes: SCOPES.slice(0, 1) });
    const open = (more: object) =>
      requests().open({ client: 'Πρόγραμμα', scopes: SCOPES, ttlSeconds: 3000, ...more });
    const show = async ({ userCode }: { readonly userCode: string }) => {
      await field('Code').fill(userCode);
      await press('Show the request');
    };
    const { userCode } = await open({ elevate: first.value, purpose: 'Σκοπός' });
    await press('Approve a request');
    await field('Code').fill('1');
    await press('Show the request');
    await page.getByText(greek('eight letters and no vowels')).waitFor();
    await show({ userCode });
    await look('The token that asks');
    for (const choice of await page.getByRole('checkbox', { name: HOST }).all()) {
      await choice.uncheck();
    }
    await press('Approve');
    await look('Select at least one endpoint');
    await page.getByRole('checkbox', { name: HOST }).first().check();
    await press('Approve');
    await look('The program gets the token when it asks next');
    await press('Enter another code');
    await show({ userCode });
    await look('This request was approved before.');
    await page.goto(`${url}#/`);
    await look('Tokens');
  });

  it('leaves no English on the permissions of a new token', async () => {
    const { page } = await openForTest({
      service: { catalog: worded },
      ways: { session: () => USERNAME },
      console: { texts: TEXTS, language: 'el' },
    });
    await page
      .getByRole('link', { name: greek('New token') })
      .first()
      .click();
    const level = page.getByRole('combobox', { name: 'Ετικέτα' });
    await level.selectOption('read');
    await page.getByRole('group', { name: greek('Only this resource') }).waitFor();
    expect(await leftOn(page)).toEqual([]);
    await page.getByRole('button', { name: /Ετικέτα/ }).click();
    await page.getByText(greek('deprecated')).first().waitFor();
    expect(await leftOn(page)).toEqual([]);
    await page.getByLabel(greek('Search endpoints')).fill('σύνοψη');
    await page.getByText(greek('endpoints found')).waitFor();
    expect(await leftOn(page)).toEqual([]);
  });

  it('that misses a text is detected (control)', async () => {
    const shown = await inGreek();
    await shown.page.getByRole('button').first().waitFor();

    await shown.page.evaluate(
      `document.querySelector('button').setAttribute('aria-label', 'Forgotten')`,
    );

    expect(await leftOn(shown.page)).toEqual(['Forgotten']);
  });

  it('from right to left changes the direction and the digits of the page', async () => {
    const texts = translated(ENGLISH_TEXTS, (text) => text) as ConsoleTexts;
    const all = { other: 'كل {count}' };
    const { page, tokens } = await openForTest({
      service: { catalog },
      console: {
        language: 'ar-EG',
        texts: { ...texts, list: { ...texts.list, shown: all }, states: { active: 'نشط' } },
      },
    });
    for (let count = 0; count < 3; count += 1) {
      await tokens.issue({ account: USERNAME, scopes: SCOPES, name: `${count}` });
    }
    await page.getByLabel('User name').fill(USERNAME);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();

    await page.getByText('كل ٣').waitFor();
    const [html, body] = (await page.evaluate(
      `[document.documentElement.dir, getComputedStyle(document.body).direction]`,
    )) as string[];
    expect([html, body]).toEqual(['rtl', 'rtl']);
    expect(await page.locator('td time').first().textContent()).toMatch(/[\u0660-\u0669]/);
    expect(await faultsOf(page)).toEqual([]);
  });

  it('that cannot be loaded leaves the page in English', async () => {
    const { page, context, url } = await openForTest({
      console: { texts: TEXTS, language: 'el' },
    });
    await context.route('**/texts-*.json', (route) => route.abort());

    await page.goto(`${url}?again`);

    await page.getByRole('button', { name: 'Sign in' }).waitFor();
  });
});
