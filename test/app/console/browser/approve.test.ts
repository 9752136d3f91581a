// Requests for tokens, from the code that somebody types to the token that the program gets.
import type { Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BILLING, CODE, ORDERS, openStage, type Stage, wordedService } from './stage.ts';
import { HOSTILE, showElevation, showRequest } from './states.ts';
import {
  bySession,
  hasChromium,
  keepsValue,
  openForTest,
  PASSWORD,
  press,
  signIn,
} from './support.ts';

const CLIENT = 'Deploy assistant';
const REFUND = `POST:${BILLING}/refunds$`;
const READ_ORDER = `GET:${ORDERS}/orders/{}$`;

async function staged(): Promise<Stage> {
  const stage = await openStage({ service: wordedService(), takesRequests: true });
  onTestFinished(stage.close);
  return stage;
}

async function signedIn(): Promise<Stage> {
  const stage = await staged();
  await signIn(stage.page);
  return stage;
}

/** The bodies that the page sends to decide. */
function decisionsOf(page: Page): unknown[] {
  const bodies: unknown[] = [];
  page.on('request', (request) => {
    if (/\/(approve|deny)$/.test(request.url())) bodies.push(request.postDataJSON());
  });
  return bodies;
}

const title = (page: Page, name: string) =>
  page.getByRole('heading', { name, level: 1, exact: true }).waitFor();
const box = (page: Page, name: string) => page.getByRole('checkbox', { name });

describe.skipIf(!hasChromium)('a request for a token', () => {
  it('is approved as it was shown, and the program gets exactly that', async () => {
    const { page, url, requests } = await staged();
    const bodies = decisionsOf(page);
    const { userCode, deviceCode } = await requests().open({
      client: CLIENT,
      scopes: [`*:${ORDERS}/orders/{}$`, REFUND],
      ttlSeconds: 3600,
    });
    // Whoever follows a link to the screen signs in first.
    await page.goto(`${url}#/approve`);
    await signInHere(page);
    await page.getByLabel('Code').fill(` ${userCode.toLowerCase().replace('-', ' ')} `);
    await page.keyboard.press('Enter');
    await title(page, 'A program asks for a token');
    await box(page, 'Cancel an order').uncheck();
    await box(page, BILLING).click();
    await page.getByLabel('Lifetime').selectOption('15 minutes');
    await press(page, 'Approve');
    await title(page, 'Approved');

    const scopes = [READ_ORDER, `PATCH:${ORDERS}/orders/{}$`];
    expect(bodies).toEqual([{ scopes, ttl: 900 }]);
    const { state, token } = await requests().poll(deviceCode, { client: CLIENT });
    expect([state, token?.scopes]).toEqual(['issued', scopes]);
    expect(Number(token?.expiresAt) - Number(token?.createdAt)).toBe(900_000);
    await page.getByRole('link', { name: 'All tokens' }).click();
    await title(page, 'Tokens');
  });

  it('is denied, and the program gets nothing', async () => {
    const { page, url, requests } = await signedIn();
    const { userCode, deviceCode } = await requests().open({ client: CLIENT, scopes: [REFUND] });
    await page.getByRole('link', { name: 'Approve a request' }).click();
    await page.getByLabel('Code').fill(userCode);
    await press(page, 'Show the request');
    await title(page, 'A program asks for a token');
    expect(page.url()).toBe(`${url}#/approve`);
    expect(await keepsValue(page, userCode.replace('-', ''))).toBe(false);
    await press(page, 'Deny');
    await title(page, 'Denied');

    expect(await requests().poll(deviceCode, { client: CLIENT })).toEqual({ state: 'denied' });
    await press(page, 'Enter another code');
    expect(await page.getByLabel('Code').inputValue()).toBe('');
  });

  it('needs its code again after a reload', async () => {
    const stage = await signedIn();
    await showRequest(stage);
    await stage.page.reload();
    await signInHere(stage.page);

    await title(stage.page, 'Approve a request');
  });

  it('shows the words of a stranger as text', async () => {
    const stage = await signedIn();
    const { page } = stage;
    await showRequest(stage, HOSTILE);

    const about = page.getByRole('region', { name: 'About this request' });
    expect(await about.textContent()).toContain(
      '<b>Acme</b> U+202EdeployU+2066U+200BU+E0041U+FE0FU+2800',
    );
    expect(await about.locator('img').count()).toBe(0);
    const hidden = /\p{Cf}|\u2800|\ufe0f/u;
    expect(await about.evaluate((element) => element.innerHTML)).not.toMatch(hidden);
    expect(await page.title()).toBe('A program asks for a token · Access tokens · Acme');
  });

  it('says what the token that asks holds, who made it, and what would be new', async () => {
    const stage = await signedIn();
    const { page } = stage;
    await showElevation(stage);

    const first = page.locator('section').filter({ hasText: 'The token that asks' });
    const text = String(await first.textContent());
    expect(text).toContain('grace');
    expect(text).toContain('Derived fromAssistant');
    expect(text).toContain('Repositories: read');
    const marked = page.getByRole('listitem').filter({ hasText: 'New' });
    expect(await marked.count()).toBe(3);
    expect(await box(page, 'Read an order').locator('..').textContent()).not.toContain('New');
    await page.getByText('3 of 5 are more than the token may do now.').waitFor();
  });

  it('cannot be shown if the token that asks cannot be read', async () => {
    const { page, tokens, requests, url } = await signedIn();
    const scopes = [`GET:${CODE}/*`];
    const first = await tokens.issue({ account: 'ada', scopes });
    const asked = { client: CLIENT, scopes: [REFUND], elevate: first.value };
    const { userCode } = await requests().open(asked);
    await page.route('**/auth/token/*', (route) => route.abort());
    await page.goto(`${url}#/approve`);
    await page.getByLabel('Code').fill(userCode);
    await press(page, 'Show the request');

    await page.getByRole('alert').waitFor();
    expect(await page.getByRole('button', { name: 'Approve', exact: true }).count()).toBe(0);
    await page.unrouteAll();
    await press(page, 'Show the request');
    await title(page, 'A program asks for more rights');
  });
});

describe.skipIf(!hasChromium)('a decision that comes too late or fails', () => {
  it.each([
    ['Approve', 'This request was denied before.'],
    ['Deny', 'This request was denied before.'],
  ])('says what somebody else decided: %s', async (button, text) => {
    const stage = await signedIn();
    const code = await showRequest(stage);
    await stage.requests().deny('ada', code);
    await press(stage.page, button);

    await title(stage.page, 'Already decided');
    await stage.page.getByText(text).waitFor();
    expect(await stage.page.getByRole('button', { name: 'Approve' }).count()).toBe(0);
  });

  it('says that a request ends when the token that asks was changed', async () => {
    const stage = await signedIn();
    await showElevation(stage);
    const { tokens } = await stage.tokens.list({ account: 'ada', name: 'Assistant' });
    await stage.tokens.patch('ada', tokens[0]?.id ?? '', { name: 'Changed' });
    await press(stage.page, 'Approve');

    await title(stage.page, 'No longer open');
  });

  it('keeps what was chosen while the service is away', async () => {
    const stage = await signedIn();
    const { page } = stage;
    await showRequest(stage);
    await box(page, 'Pay money back').uncheck();
    await page.getByLabel('Lifetime').selectOption('5 minutes');
    stage.goAway();
    await press(page, 'Approve');
    await page.getByText('The service does not answer.').waitFor();
    expect(await box(page, 'Pay money back').isChecked()).toBe(false);
    stage.comeBack();
    await press(page, 'Approve');

    await title(page, 'Approved');
    expect(await page.getByRole('main').textContent()).not.toContain('Pay money back');
    await page.getByText('5 minutes').waitFor();
  });

  it('goes on after a new sign-in when the session has ended', async () => {
    const { ways, endSessions } = bySession();
    const { page, url, requests } = await openForTest({ ways, takesRequests: true });
    await signIn(page);
    const { userCode, deviceCode } = await requests().open({ client: CLIENT, scopes: [REFUND] });
    await page.goto(`${url}#/approve`);
    await page.getByLabel('Code').fill(userCode);
    await press(page, 'Show the request');
    await title(page, 'A program asks for a token');
    endSessions();
    await press(page, 'Approve');
    const dialog = page.getByRole('dialog', { name: 'Sign in again' });
    await dialog.getByLabel('Password').fill(PASSWORD);
    await dialog.getByRole('button', { name: 'Sign in' }).click();

    await title(page, 'Approved');
    expect((await requests().poll(deviceCode, { client: CLIENT })).state).toBe('issued');
  });

  it('stops after ten wrong codes, and says when to go on', async () => {
    const { page, url } = await signedIn();
    await page.goto(`${url}#/approve`);
    for (let tries = 0; tries < 10; tries += 1) {
      await page.getByLabel('Code').fill('BBBB-BBBB');
      await press(page, 'Show the request');
      await page.getByText('There is no open request with this code.').waitFor();
    }
    await page.getByLabel('Code').fill('BBBB-BBBC');
    await press(page, 'Show the request');

    await page.getByText(/Try again in \d+ seconds\./).waitFor();
    expect(await page.getByLabel('Code').inputValue()).toBe('BBBB-BBBC');
  });
});

describe.skipIf(!hasChromium)('a service that takes no requests', () => {
  it('shows the tokens in place of the form for a code', async () => {
    const { page, url } = await openForTest();
    await page.goto(`${url}#/approve`);
    await signIn(page);

    expect(await page.getByRole('link', { name: 'Approve a request' }).count()).toBe(0);
  });
});

describe.skipIf(!hasChromium)('who made a token', () => {
  it('filters the list by the whole name, and is shown on the page of the token', async () => {
    const { page, tokens } = await openForTest();
    for (const createdBy of ['grace', 'gracchus']) {
      await tokens.issue({ account: 'ada', scopes: [REFUND], name: `of ${createdBy}`, createdBy });
    }
    await signIn(page);
    await page.getByText('Filters').click();
    const field = page.getByRole('textbox', { name: 'Created by' });
    await field.fill('grac');
    await page.getByText('No token matches').waitFor();
    await field.fill('grace');
    await page.getByRole('link', { name: 'of grace' }).waitFor();
    expect(await page.getByRole('link', { name: 'of gracchus' }).count()).toBe(0);
    expect(page.url()).toContain('createdBy=grace');
    await page.getByRole('link', { name: 'of grace' }).click();

    const facts = page.getByRole('region', { name: 'About this token' });
    await facts.getByText('Created by').waitFor();
    expect(await facts.textContent()).toContain('Created bygrace');
  });

  it('is shown beside for what, and who acts with it', async () => {
    const { page, tokens } = await openForTest();
    const root = await tokens.issue({ account: 'ada', scopes: [REFUND], createdBy: 'grace' });
    const agent = await tokens.issue({ account: 'agents', scopes: [REFUND] });
    const purpose = 'Refund \u202etseuqer';
    const child = { scopes: [REFUND], name: 'refunds', actorToken: agent.value, purpose };
    await tokens.derive(root.value, child);
    await signIn(page);
    await page.getByRole('link', { name: 'refunds' }).click();

    const facts = page.getByRole('region', { name: 'About this token' });
    await facts.getByText('Purpose').waitFor();
    const text = String(await facts.textContent());
    expect(text).toContain('PurposeRefund U+202Etseuqer');
    expect(text).toContain(`Acts for this accountagentswith the token ${agent.id}`);
  });
});

/** Signs in on a screen other than the list. */
async function signInHere(page: Page): Promise<void> {
  await page.getByLabel('User name').fill('ada');
  await page.getByLabel('Password').fill(PASSWORD);
  await press(page, 'Sign in');
}
