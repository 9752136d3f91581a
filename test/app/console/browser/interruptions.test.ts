import type { Page, Request } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { MemoryTokenStore } from '../../../../src/index.ts';
import { ScopeCatalog } from '../../../../src/scope/index.ts';
import { manualClock } from '../../../../src/testing/index.ts';
import {
  bySession,
  editScopes,
  faultsOf,
  hasChromium,
  type Opened,
  type OpenOptions,
  openForTest,
  PASSWORD,
  press,
  signIn,
} from './support.ts';

const ORDERS = 'GET:api.shop.example/orders';
const BILLS = 'GET:api.shop.example/bills';
const PAY = 'POST:api.shop.example/bills';
const catalog = ScopeCatalog.from([ORDERS, BILLS, PAY]);

let opened: Opened | undefined;

/** An account with more than one page of old tokens, one of which was used. */
async function open(
  ways?: OpenOptions['ways'],
): Promise<Opened & { readonly answered: () => Promise<void> }> {
  const clock = manualClock(new Date());
  const limits = { store: new MemoryTokenStore().leases };
  opened = await openForTest({ service: { catalog, clock, limits }, ...(ways && { ways }) });
  const { page, tokens } = opened;
  const waiting = new Set<Request>();
  page.on('request', (request) => waiting.add(request));
  page.on('requestfinished', (request) => waiting.delete(request));
  page.on('requestfailed', (request) => waiting.delete(request));
  const old = { account: 'ada', scopes: [ORDERS, BILLS], ttlSeconds: 31_536_000 };
  for (let count = 1; count <= 54; count += 1) {
    await tokens.issue({ ...old, name: `t${count}` });
    // Different times fix the order in the list.
    clock.advance(1);
  }
  const { value } = await tokens.issue({ ...old, name: 'build' });
  clock.advance(100 * 86_400);
  await tokens.verify(value, { scope: ORDERS });
  await signIn(page);
  // The list and the badges of the review are shown.
  await page.getByText('Broad').first().waitFor();
  const answered = async () => {
    // New elements send requests in the next frame, and their responses can add more elements.
    for (let frame = 0; frame < 3; frame += 1) {
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done)))');
      await expect.poll(() => waiting.size).toBe(0);
    }
  };
  return { ...opened, answered };
}

/** An action of a person on a screen. */
interface Step {
  /** Goes to the screen and enters what is needed. */
  readonly prepare: (page: Page) => Promise<void>;
  /** Sends a request to the service. */
  readonly act: (page: Page) => Promise<void>;
  /** Repeats the action after it has failed. @default same as {@link act} */
  readonly again?: (page: Page) => Promise<void>;
  /** Checks that the action is done, with everything that was entered. */
  readonly isDone: (page: Page) => Promise<void>;
}

const retry = (page: Page) => press(page, 'Try again');
const rows = (page: Page) => page.locator('table.token-table tbody > tr');

async function toToken(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'build' }).click();
  await page.getByRole('heading', { name: 'build' }).waitFor();
  await page.getByRole('table').waitFor();
}

async function inDialog(page: Page, name: string): Promise<void> {
  await toToken(page);
  await press(page, name);
  await page.getByRole('dialog').waitFor();
}

const STEPS: Readonly<Record<string, Step>> = {
  'filtering the list': {
    prepare: async (page) => {
      await page.getByLabel('Search by name').fill('buil');
      await expect.poll(() => rows(page).count()).toBe(1);
    },
    act: async (page) => void (await page.getByLabel('State').selectOption('all')),
    again: retry,
    isDone: async (page) => {
      await expect.poll(() => rows(page).count()).toBe(1);
      expect(await page.getByLabel('Search by name').inputValue()).toBe('buil');
    },
  },
  'loading more of the list': {
    prepare: async (page) => void (await expect.poll(() => rows(page).count()).toBe(50)),
    act: (page) => press(page, 'Load more'),
    isDone: async (page) => void (await expect.poll(() => rows(page).count()).toBe(55)),
  },
  'revoking several tokens': {
    prepare: async (page) => {
      await page.getByLabel('Select t54').check();
      await page.getByLabel('Select t53').check();
      await press(page, 'Revoke selected');
    },
    act: (page) => press(page, 'Revoke 2 tokens'),
    again: (page) => press(page, 'Go on with 2 tokens'),
    isDone: (page) => page.getByText('Revoked 2 tokens.').waitFor(),
  },
  'opening a token': {
    prepare: async () => {},
    act: (page) => page.getByRole('link', { name: 'build' }).click(),
    again: retry,
    isDone: (page) => page.getByRole('heading', { name: 'build' }).waitFor(),
  },
  'opening the form of a new token': {
    // The list reads what may be chosen as well, and then the form needs no call.
    prepare: async (page) => {
      await page.route('**/auth/scopes*', (route) => route.abort());
      await page.reload();
      const password = page.getByLabel('Password');
      await password.or(page.getByText('Broad')).first().waitFor();
      if (await password.isVisible()) await signIn(page);
      await page.getByText('Broad').first().waitFor();
      await page.unroute('**/auth/scopes*');
    },
    act: (page) => page.getByRole('link', { name: 'New token' }).click(),
    again: retry,
    isDone: (page) => page.getByRole('button', { name: 'Create token' }).waitFor(),
  },
  'creating a token': {
    prepare: async (page) => {
      await page.getByRole('link', { name: 'New token' }).click();
      await page.getByLabel('Name', { exact: true }).fill('nightly');
      await page
        .getByRole('checkbox', { name: 'POST /bills (api.shop.example), everything below' })
        .check();
      await page.getByText('Limits', { exact: true }).click();
      await page.getByLabel('Uses in total').fill('7');
    },
    act: (page) => press(page, 'Create token'),
    isDone: async (page) => {
      await page.getByRole('heading', { name: 'Token created' }).waitFor();
      const [token] =
        (await opened?.tokens.list({ account: 'ada', name: 'nightly' }))?.tokens ?? [];
      expect([token?.scopes, token?.limits]).toEqual([[PAY], { uses: 7 }]);
    },
  },
  'editing a token': {
    prepare: async (page) => {
      await inDialog(page, 'Edit');
      await page.getByLabel('Name').fill('weekly');
      await page.getByText('Limits', { exact: true }).click();
      await page.getByLabel('Uses in total').fill('7');
    },
    act: (page) => press(page, 'Save'),
    isDone: async (page) => {
      await page.getByRole('heading', { name: 'weekly' }).waitFor();
      await page.getByText('7 uses in total').waitFor();
    },
  },
  'editing scopes': {
    prepare: async (page) => {
      await toToken(page);
      await editScopes(page);
      await page.getByRole('checkbox', { name: /POST.*bills/ }).check();
    },
    act: (page) => press(page, 'Save'),
    isDone: (page) => page.getByRole('row').filter({ hasText: 'POST' }).waitFor(),
  },
  'narrowing a token': {
    prepare: async (page) => {
      await inDialog(page, 'Narrow to what was used');
      await page.getByRole('button', { name: 'Remove 1 scope' }).waitFor();
    },
    act: (page) => press(page, 'Remove 1 scope'),
    isDone: (page) => page.getByText('Removed 1 scope.').waitFor(),
  },
  'asking what to narrow': {
    prepare: toToken,
    act: (page) => press(page, 'Narrow to what was used'),
    again: retry,
    isDone: (page) => page.getByRole('button', { name: 'Remove 1 scope' }).waitFor(),
  },
  'rotating a token': {
    prepare: async (page) => {
      await inDialog(page, 'Rotate');
      await page.getByLabel('Immediately').check();
    },
    act: (page) => page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click(),
    isDone: async (page) => {
      const value = await page.getByLabel('Value of the token').inputValue();
      expect((await opened?.tokens.verify(value, { scope: ORDERS }))?.ok).toBe(true);
    },
  },
  'suspending a token': {
    prepare: toToken,
    act: (page) => press(page, 'Suspend'),
    isDone: (page) => page.getByRole('button', { name: 'Resume' }).waitFor(),
  },
  'revoking a token': {
    prepare: (page) => inDialog(page, 'Revoke'),
    act: (page) => press(page, 'Revoke token'),
    isDone: (page) => page.getByText('Revoked build.').waitFor(),
  },
  'asking whether a call would be allowed': {
    prepare: async (page) => {
      await toToken(page);
      await page.getByLabel('Address').fill('https://api.shop.example/orders/7');
    },
    act: (page) => press(page, 'Ask'),
    isDone: (page) => page.getByText('Allowed.', { exact: true }).waitFor(),
  },
  'reading the review': {
    prepare: async () => {},
    act: (page) => page.getByRole('link', { name: 'Review' }).click(),
    again: retry,
    isDone: (page) => page.getByRole('button', { name: 'Revoke: t54' }).first().waitFor(),
  },
  'acting on a finding': {
    prepare: async (page) => {
      await page.getByRole('link', { name: 'Review' }).click();
      await page.getByRole('button', { name: 'Revoke: t54' }).first().click();
    },
    act: (page) => press(page, 'Revoke token'),
    isDone: (page) => page.getByText('Revoked t54.').waitFor(),
  },
};

const NAMED = Object.entries(STEPS);

describe.skipIf(!hasChromium)('a session of the service in the middle of an action', () => {
  it.each(NAMED)('can end without loss of input while %s', async (_, { prepare, act, isDone }) => {
    const { ways, endSessions } = bySession();
    const { page, answered } = await open(ways);
    await prepare(page);
    await answered();
    endSessions();

    await act(page);
    const again = page.getByRole('dialog', { name: 'Sign in again' });
    await again.getByLabel('Password').fill(PASSWORD);
    await again.getByRole('button', { name: 'Sign in' }).click();

    await again.waitFor({ state: 'detached' });
    await isDone(page);
  });

  it.each(NAMED)('can be due for renewal while %s', async (_, { prepare, act, isDone }) => {
    const { ways, clock } = bySession();
    const { page, answered, context } = await open(ways);
    await prepare(page);
    await answered();
    const cookie = async () => (await context.cookies()).map(({ value }) => value).join();
    const before = await cookie();
    clock.advance(900);

    await act(page);

    await isDone(page);
    expect(await page.getByRole('dialog', { name: 'Sign in again' }).count()).toBe(0);
    expect(await cookie()).not.toBe(before);
  });
});

describe.skipIf(!hasChromium)('a password that ends in the middle of an action', () => {
  it.each(NAMED)('loses no input while %s', async (_, { prepare, act, isDone }) => {
    const { page, setPasswordsRight, answered } = await open();
    await prepare(page);
    await answered();
    setPasswordsRight(false);

    await act(page);
    const again = page.getByRole('dialog', { name: 'Sign in again' });
    await again.waitFor();
    setPasswordsRight(true);
    await again.getByLabel('Password').fill(PASSWORD);
    await again.getByRole('button', { name: 'Sign in' }).click();

    await again.waitFor({ state: 'detached' });
    await isDone(page);
  });
});

describe.skipIf(!hasChromium)('a service that is down for a moment', () => {
  it.each(NAMED)('loses no input while %s', async (_, { prepare, act, again = act, isDone }) => {
    const { page, goAway, comeBack, answered } = await open();
    await prepare(page);
    await answered();
    goAway();

    await act(page);
    await page.getByText('The service does not answer.').first().waitFor();
    expect(await faultsOf(page)).toEqual([]);
    comeBack();
    await again(page);

    await isDone(page);
  });

  it('keeps the value of a new token on the screen', async () => {
    const { page, goAway, comeBack } = await open();
    await STEPS['creating a token']?.prepare(page);
    // The page sends another request, to find out whether the service can show the value again.
    await page.route('**/auth/token/*', (route) => route.abort());
    await press(page, 'Create token');
    const value = await page.getByLabel('Value of the token').inputValue();
    goAway();

    await press(page, 'Done');
    await page.getByRole('dialog', { name: 'Leave without the value?' }).waitFor();
    await press(page, 'Leave without it');
    await page.getByText('The service does not answer.').waitFor();
    comeBack();
    await page.unroute('**/auth/token/*');
    await retry(page);

    await page.getByRole('heading', { name: 'nightly' }).waitFor();
    expect((await opened?.tokens.verify(value, { scope: PAY }))?.ok).toBe(true);
  });

  it('lets the page start once it is back', async () => {
    const { page } = await openForTest({ service: { catalog } });
    await page.getByLabel('User name').waitFor();
    await page.route('**/openapi.json', (route) => route.abort());
    await page.reload();
    await page.getByText('The service does not answer.').waitFor();
    await page.unroute('**/openapi.json');

    await retry(page);

    await signIn(page);
  });
});
