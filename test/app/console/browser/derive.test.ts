import { describe, expect, it } from 'vitest';
import type { IssuedToken } from '../../../../src/index.ts';
import { ScopeCatalog } from '../../../../src/scope/index.ts';
import {
  editScopes,
  faultsOf,
  hasChromium,
  LOOKS,
  type Opened,
  type OpenOptions,
  openForTest,
  press,
  signIn,
} from './support.ts';

const HOST = 'api.shop.example';
const ORDERS = `GET:${HOST}/orders$`;
const BILLS = `GET:${HOST}/bills$`;
const PAY = `POST:${HOST}/bills$`;
const catalog = ScopeCatalog.from([ORDERS, BILLS, PAY]);

function open(options: OpenOptions = {}): Promise<Opened> {
  return openForTest({
    derivation: true,
    ...options,
    service: { catalog, limits: true, ...options.service },
  });
}

/** Creates a token that can read orders and bills, up to the screen with its value. */
async function made(options: OpenOptions = {}): Promise<Opened & { readonly value: string }> {
  const shown = await open(options);
  const { page, url } = shown;
  await signIn(page);
  await page.goto(`${url}#/new`);
  await page.getByLabel('Name', { exact: true }).fill('parent');
  await page.getByRole('button', { name: `Read-only: ${HOST}` }).click();
  await press(page, 'Create token');
  return { ...shown, value: await page.getByLabel('Value of the token').inputValue() };
}

interface Family extends Opened {
  readonly parent: IssuedToken;
  readonly child: IssuedToken;
  readonly grandchild: IssuedToken;
}

/** Three generations of tokens, and the page of the first one. */
async function family(options: OpenOptions = {}): Promise<Family> {
  const shown = await open(options);
  const { tokens, page } = shown;
  const parent = await tokens.issue({ account: 'ada', name: 'parent', scopes: [ORDERS, BILLS] });
  const child = await tokens.derive(parent.value, { name: 'child', scopes: [ORDERS, BILLS] });
  const grandchild = await tokens.derive(child.value, { name: 'grandchild', scopes: [ORDERS] });
  await tokens.derive(parent.value, { name: 'sibling', scopes: [BILLS] });
  await signIn(page);
  await page.getByRole('link', { name: 'parent', exact: true }).click();
  await page.getByRole('heading', { name: 'Derived tokens' }).waitFor();
  return { ...shown, parent, child, grandchild };
}

describe.skipIf(!hasChromium)('deriving a token', () => {
  it('creates a token within its parent, and leads back to the value of the parent', async () => {
    const { page, tokens, value } = await made();
    const calls: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/token/derive')) {
        calls.push(request.headers()['authorization'] ?? '');
      }
    });
    await press(page, 'Derive a narrower token');
    await page.getByText('It may do at most what parent may').waitFor();
    expect(await page.getByRole('checkbox', { name: /POST/ }).count()).toBe(0);
    expect(await faultsOf(page)).toEqual([]);
    await page.getByLabel('Name', { exact: true }).fill('child');
    await page.getByRole('checkbox', { name: /GET.*orders/ }).check();
    await press(page, 'Create token');

    const childValue = await page.getByLabel('Value of the token').inputValue();
    expect(calls).toEqual([`Bearer ${value}`]);
    const verdicts = await Promise.all(
      [ORDERS, BILLS].map((scope) => tokens.verify(childValue, { scope })),
    );
    expect(verdicts.map(({ ok }) => ok)).toEqual([true, false]);
    const { tokens: all } = await tokens.list({ account: 'ada' });
    const [child, parent] = ['child', 'parent'].map((name) => all.find((one) => one.name === name));
    expect(child?.parent).toBe(parent?.id);
    expect(child?.expiresAt.getTime()).toBeLessThanOrEqual(parent?.expiresAt.getTime() ?? 0);
    await press(page, 'Back to its parent');
    await press(page, 'Leave without it');
    expect((await page.getByLabel('Value of the token').inputValue()) === value).toBe(true);
  });

  it('offers lifetimes that end before the parent, and can be canceled', async () => {
    const { page, value } = await made();
    await press(page, 'Derive a narrower token');

    const choices = await page.getByLabel('Expires').first().locator('option').allTextContents();
    expect(choices).toEqual(['In 7 days', 'On a date']);
    await press(page, 'Cancel');

    expect((await page.getByLabel('Value of the token').inputValue()) === value).toBe(true);
  });

  it('shows the same call without the value', async () => {
    const { page, value, tokens, url } = await made();
    await press(page, 'Derive a narrower token');
    await page.getByRole('checkbox', { name: /GET.*orders/ }).check();
    await page.locator('summary').filter({ hasText: 'The same call' }).click();

    const [json = '', curl = ''] = await page.locator('details pre').allTextContents();
    expect(curl).toContain(`/auth/token/derive'`);
    expect(curl.includes(value)).toBe(false);
    const answer = await fetch(`${new URL(url).origin}/auth/token/derive`, {
      method: 'POST',
      headers: { authorization: `Bearer ${value}`, 'content-type': 'application/json' },
      body: json,
    });
    expect(answer.status).toBe(200);
    expect((await tokens.list({ account: 'ada' })).tokens).toHaveLength(2);
  });

  it('shows an error if the parent was revoked meanwhile, and keeps the form', async () => {
    const { page, tokens } = await made();
    await press(page, 'Derive a narrower token');
    await page.getByRole('checkbox', { name: /GET.*orders/ }).check();
    const [parent] = (await tokens.list({ account: 'ada' })).tokens;
    await tokens.revoke('ada', parent?.id ?? '');

    await press(page, 'Create token');

    await page.getByRole('alert').waitFor();
    expect(await page.getByRole('dialog').count()).toBe(0);
    expect(await page.getByRole('heading', { name: 'Derive a narrower token' }).count()).toBe(1);
  });

  it('is not offered if the service does not allow it', async () => {
    const { page } = await made({ derivation: false });

    await page.getByRole('button', { name: 'Done' }).waitFor();
    expect(await page.getByRole('button', { name: 'Derive a narrower token' }).count()).toBe(0);
  });
});

describe.skipIf(!hasChromium)('derived tokens', () => {
  it('are a tree on the page of their parent, and link back to it', async () => {
    const { page } = await family();
    const section = page.locator('section').filter({ hasText: 'Derived tokens' }).last();
    expect(await section.locator('.token-name a').allTextContents()).toEqual(['sibling', 'child']);
    await section.getByText('What was derived from sibling').click();
    await section.getByText('Nothing was derived from it.').waitFor();

    await section.getByText('What was derived from child').click();
    await section.getByRole('link', { name: 'grandchild' }).waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await section.getByRole('link', { name: 'grandchild' }).click();

    await page.getByRole('heading', { name: 'grandchild' }).waitFor();
    await page.getByRole('link', { name: 'child', exact: true }).click();
    await page.getByRole('heading', { name: 'child', exact: true }).waitFor();
  });

  it('are counted before their parent is revoked, and end with it', async () => {
    const { page, tokens, grandchild } = await family();
    await press(page, 'Revoke');
    const dialog = page.getByRole('dialog');
    await dialog.getByText('3 tokens that were derived from it end with it.').waitFor();
    expect(await faultsOf(page)).toEqual([]);

    await dialog.getByRole('button', { name: 'Revoke token' }).click();

    await page.getByText('Revoked parent.').waitFor();
    expect((await tokens.verify(grandchild.value, { scope: ORDERS })).ok).toBe(false);
  });

  it.each([
    ['end with it, which is the default', false, [false, false]],
    ['stay if that is switched off', true, [true, true]],
  ])('when the value has to end immediately, %s', async (_, isSwitchedOff, left) => {
    const { page, tokens, parent, child, grandchild } = await family();
    await press(page, 'Rotate');
    const dialog = page.getByRole('dialog', { name: 'Rotate token' });
    const ends = dialog.getByRole('checkbox', { name: /revoke all tokens that were derived/ });
    for (const gradual of ['When the new value is first used', 'After a grace period']) {
      await dialog.getByLabel(gradual).check();
      expect(await ends.count()).toBe(0);
    }
    await dialog.getByLabel('Immediately').check();
    expect(await ends.isChecked()).toBe(true);
    expect(await faultsOf(page)).toEqual([]);
    if (isSwitchedOff) await ends.uncheck();

    await dialog.getByRole('button', { name: 'Rotate' }).click();

    const value = await page.getByLabel('Value of the token').inputValue();
    const isAccepted = async (value: string) => (await tokens.verify(value, { scope: ORDERS })).ok;
    expect([await isAccepted(value), await isAccepted(parent.value)]).toEqual([true, false]);
    expect([await isAccepted(child.value), await isAccepted(grandchild.value)]).toEqual(left);
  });

  it('are not asked about when the service lets nobody derive', async () => {
    const { page, tokens, child } = await family({ derivation: false });
    await press(page, 'Rotate');
    const dialog = page.getByRole('dialog', { name: 'Rotate token' });
    await dialog.getByLabel('Immediately').check();
    expect(await dialog.getByRole('checkbox').count()).toBe(0);

    await dialog.getByRole('button', { name: 'Rotate' }).click();

    await page.getByLabel('Value of the token').waitFor();
    expect((await tokens.verify(child.value, { scope: ORDERS })).ok).toBe(true);
  });

  it('are not counted if they were revoked, and not mentioned if there are none', async () => {
    const { page, tokens, child } = await family();
    await tokens.revoke('ada', child.id);
    await press(page, 'Revoke');
    await page.getByText('1 token that was derived from it ends with it.').waitFor();
    await press(page, 'Cancel');
    await page.getByRole('link', { name: 'sibling' }).click();
    await page.getByRole('heading', { name: 'sibling' }).waitFor();
    await press(page, 'Revoke');
    await page.getByRole('dialog').waitFor();

    expect(await page.getByText('derived from it').count()).toBe(0);
  });

  it('can only get scopes of their parent', async () => {
    const { page, url, tokens, grandchild } = await family();
    await page.goto(`${url}#/token/${grandchild.id}`);
    await page.getByRole('heading', { name: 'grandchild' }).waitFor();
    const dialog = await editScopes(page);
    await dialog.getByRole('checkbox', { name: /GET.*bills/ }).check();
    expect(await dialog.getByRole('checkbox', { name: /POST/ }).count()).toBe(0);

    await dialog.getByRole('button', { name: 'Save' }).click();

    await dialog.waitFor({ state: 'detached' });
    expect((await tokens.get('ada', grandchild.id))?.scopes).toEqual([BILLS, ORDERS]);
  });

  it.each([
    ['suspended', 'A token that it was derived from is suspended.'],
    ['narrowed', 'A token that it was derived from may no longer do it.'],
  ])('show that a request is refused because an ancestor is %s', async (change, sentence) => {
    const { page, url, tokens, parent, grandchild } = await family();
    const patch = change === 'suspended' ? { suspended: true } : { removeScopes: [ORDERS] };
    await tokens.patch('ada', parent.id, patch);
    await page.goto(`${url}#/token/${grandchild.id}`);
    await page.getByRole('heading', { name: 'grandchild' }).waitFor();
    await page.getByLabel('Address').fill(`https://${HOST}/orders`);
    await press(page, 'Ask');

    await page.getByText(sentence).waitFor();
    expect(await page.getByRole('button', { name: 'Add this scope…' }).count()).toBe(0);
  });

  it('show that limits apply in addition to scopes', async () => {
    const { page, url, tokens, parent } = await family();
    const limits = { uses: 5, addresses: ['192.0.2.0/24'] };
    const { id } = await tokens.derive(parent.value, { scopes: [ORDERS], name: 'few', limits });
    await page.goto(`${url}#/token/${id}`);
    await page.getByRole('heading', { name: 'few' }).waitFor();
    await page.getByLabel('Address').fill(`https://${HOST}/orders`);
    await press(page, 'Ask');

    await page
      .getByText('Its limits count as well: only from 192.0.2.0/24; 5 uses in total.')
      .waitFor();
    await page.getByText('Limits of the tokens that it was derived from count').waitFor();
    await page.getByLabel('Address').fill(`https://${HOST}/orders/../bills`);
    await press(page, 'Ask');
    await page.getByText('Servers may read this address in different ways').waitFor();
  });

  it.each(LOOKS)(
    'have no accessibility faults at $viewport.width px, $colorScheme',
    async (browser) => {
      const { page } = await family({ browser });
      await page.getByText('What was derived from child').click();
      await page.getByRole('link', { name: 'grandchild' }).waitFor();

      expect(await faultsOf(page)).toEqual([]);
    },
  );
});
