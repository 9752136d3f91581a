// Every state of every screen, and the way to reach it.
import type { Page } from 'playwright-core';
import type { OpenInput } from '../../../../src/requests/types.ts';
import { BILLING, CODE, LONG_NAME, ORDERS, restart, type Stage } from './stage.ts';
import { editScopes, press, signIn } from './support.ts';

/** A state of a screen, and the way to reach it from the sign-in or from the list. */
export interface State {
  readonly name: string;
  readonly isSignedOut?: boolean;
  readonly show: (stage: Stage) => Promise<void>;
}

export async function showState(stage: Stage, { isSignedOut, show }: State): Promise<void> {
  await restart(stage);
  if (!isSignedOut) await signIn(stage.page);
  await show(stage);
}

const toNew = async ({ page, url }: Stage) => {
  await page.goto(`${url}#/new`);
  await page.getByRole('group', { name: 'What the token may do' }).waitFor();
};
const toToken =
  (name: string) =>
  async ({ page, url, ids }: Stage): Promise<void> => {
    await page.goto(`${url}#/token/${ids.get(name)}`);
    await page.getByRole('heading', { name, level: 1 }).waitFor();
    // A revoked token has no scopes, and so no table of them.
    await page.getByRole('table').or(page.getByText('Nothing any more')).first().waitFor();
  };
const onToken = (name: string, show: (page: Page, stage: Stage) => Promise<void>) => {
  return async (stage: Stage): Promise<void> => {
    await toToken(name)(stage);
    await show(stage.page, stage);
  };
};
/** A call that is never answered. */
const hold = (page: Page, pattern: string) => page.route(pattern, () => {});
/** A call that is answered with an error of the service. */
const fail = (
  page: Page,
  pattern: string,
  status: number,
  code: string,
  message: string,
  details: object = {},
) =>
  page.route(pattern, (route) =>
    route.fulfill({ status, json: { success: false, error: code, code, message, details } }),
  );

const SIGN_IN: readonly State[] = [
  { name: 'sign-in', isSignedOut: true, show: ({ page }) => page.getByLabel('Password').waitFor() },
  {
    name: 'sign-in, errors at fields',
    isSignedOut: true,
    show: async ({ page }) => {
      await press(page, 'Sign in');
      await page.getByText('Enter your password.').waitFor();
    },
  },
  {
    name: 'sign-in, refused',
    isSignedOut: true,
    show: async ({ page }) => {
      await page.getByLabel('User name').fill('ada');
      await page.getByLabel('Password').fill('wrong');
      await press(page, 'Sign in');
      await page.getByText('The user name or the password is wrong.').waitFor();
    },
  },
  {
    name: 'sign-in, again',
    show: async ({ page, setPasswordsRight }) => {
      setPasswordsRight(false);
      await page.getByLabel('State').selectOption('all');
      await page.getByRole('dialog', { name: 'Sign in again' }).waitFor();
      setPasswordsRight(true);
    },
  },
];

const showAll = async ({ page }: Stage) => {
  await page.getByLabel('State').selectOption('all');
  await page.getByText('Laptop that was lost').waitFor();
  await page.getByText('Expires soon').waitFor();
};

const toList = async ({ page, url }: Stage, search: string) => {
  await page.goto(`${url}#/?${search}`);
  await page.getByRole('status').first().waitFor({ state: 'attached' });
};

const LIST: readonly State[] = [
  { name: 'list', show: showAll },
  {
    name: 'list, loading',
    show: async ({ page }) => {
      await hold(page, '**/auth/token?*');
      await page.getByLabel('State').selectOption('all');
      await page.getByText('Loading…').waitFor();
    },
  },
  {
    name: 'list, no match',
    show: async ({ page }) => {
      await page.getByLabel('Search by name').fill('nobody');
      await page.getByText('No token matches').waitFor();
    },
  },
  {
    name: 'list, filters',
    show: async (stage) => {
      const { page } = stage;
      await toList(stage, `state=all&domain=${ORDERS}`);
      await page.getByText('Filters: 1 active').click();
      await page.getByLabel('Scope').fill('orders');
      await page.getByText('"orders" is not a scope').waitFor();
    },
  },
  {
    name: 'list, no match of several',
    show: async (stage) => {
      await toList(
        stage,
        'name=bot&state=expired&unused=never&scope=GET%3Aorders.acme.example%2F*',
      );
      await stage.page.getByText('Each token fails at least one').waitFor();
    },
  },
  {
    name: 'list, sort refused',
    show: async (stage) => {
      await fail(
        stage.page,
        '**/auth/token?*sort=name*',
        422,
        'invalid_request',
        'the query parameter sort may be name for at most 10 000 tokens',
        { member: 'sort' },
      );
      await toList(stage, 'sort=name');
      await stage.page.getByText('The newest tokens come first instead.').waitFor();
      await stage.page.getByRole('link', { name: 'Deploy bot' }).waitFor();
    },
  },
  {
    name: 'list, exporting',
    show: async ({ page }) => {
      await page.getByRole('link', { name: 'Deploy bot' }).waitFor();
      await hold(page, '**/auth/token?*');
      await press(page, 'Export CSV');
      await page.getByText('0 tokens read…').waitFor();
    },
  },
  {
    name: 'list, export failed',
    show: async ({ page }) => {
      await page.getByRole('link', { name: 'Deploy bot' }).waitFor();
      await fail(page, '**/auth/token?*', 503, 'store_unavailable', 'the store does not answer');
      await press(page, 'Export CSV');
      await page.getByRole('alert').waitFor();
    },
  },
  {
    name: 'list, value searched',
    show: async ({ page }) => {
      await page.getByLabel('Search by name').fill(`acme_1${'A'.repeat(57)}`);
      await page.getByText('That is the value of a token').waitFor();
    },
  },
  {
    name: 'list, error',
    show: async ({ page }) => {
      await fail(page, '**/auth/token?*', 503, 'store_unavailable', 'the store does not answer');
      await page.getByLabel('State').selectOption('all');
      await page.getByRole('alert').waitFor();
    },
  },
  {
    name: 'list, selected',
    show: async (stage) => {
      await showAll(stage);
      await stage.page.getByLabel('Select Deploy bot').check();
      await stage.page.getByLabel(`Select ${LONG_NAME}`).check();
    },
  },
  {
    name: 'list, revoke selected',
    show: async (stage) => {
      await showAll(stage);
      await stage.page.getByLabel('Select all shown').check();
      await press(stage.page, 'Revoke selected');
      await stage.page.getByRole('dialog').waitFor();
    },
  },
  {
    name: 'list, revoking failed',
    show: async (stage) => {
      const { page } = stage;
      await showAll(stage);
      await page.getByLabel('Select all shown').check();
      await press(page, 'Revoke selected');
      await page.route('**/auth/token/*', (route) =>
        route.request().method() === 'DELETE' ? route.abort() : route.fallback(),
      );
      await page
        .getByRole('dialog')
        .getByRole('button', { name: /^Revoke \d/ })
        .click();
      await page.getByRole('button', { name: 'Close' }).waitFor();
    },
  },
];

/** To the form before the page has read what may be chosen, as the list does. */
const toNewAfresh = async ({ page, url }: Stage) => {
  await page.goto('about:blank');
  await page.goto(url);
  await signIn(page);
  await page.goto(`${url}#/new`);
};

const NEW: readonly State[] = [
  { name: 'new', show: toNew },
  {
    name: 'new, loading',
    show: async (stage) => {
      await hold(stage.page, '**/auth/scopes*');
      await toNewAfresh(stage);
      await stage.page.getByText('Loading…').waitFor();
    },
  },
  {
    name: 'new, error',
    show: async (stage) => {
      const message = 'the store does not answer';
      await fail(stage.page, '**/auth/scopes*', 503, 'store_unavailable', message);
      await toNewAfresh(stage);
      await stage.page.getByRole('alert').waitFor();
    },
  },
  {
    name: 'new, one resource',
    show: async (stage) => {
      const { page } = stage;
      await toNew(stage);
      await page.getByLabel('Name', { exact: true }).fill('Docs of the shop');
      await page.getByLabel('at the end of /repos/{};').fill('acme');
      await page.getByLabel('at the end of /repos/{}/{};').fill('shop');
      await page.getByRole('button', { name: 'Read-only: /repos/{}/{}', exact: true }).click();
      await page.getByRole('checkbox', { name: `GET /orders (${ORDERS})`, exact: true }).check();
    },
  },
  {
    name: 'new, everything open',
    show: async (stage) => {
      const { page } = stage;
      await toNew(stage);
      await page.getByRole('button', { name: 'Read-only: All hosts' }).click();
      await page.getByText('Exactly these').click();
      await page.getByText('Limits', { exact: true }).click();
      await page.getByText('The same call as JSON').click();
      await page.getByText('Add a scope as text').click();
      await page.getByLabel('Scope', { exact: true }).fill(`GET:${ORDERS}/ordres$`);
      await page.keyboard.press('Enter');
      await page.getByText('There is no such endpoint.').waitFor();
    },
  },
  {
    name: 'new, errors at fields',
    show: async (stage) => {
      const { page } = stage;
      await toNew(stage);
      await page.getByLabel('Expires').selectOption('On a date');
      await page.getByLabel('Date').fill('');
      await page.getByLabel('at the end of /repos/{};').fill('a/b');
      await press(page, 'Create token');
      await page.getByText('Choose a date.').waitFor();
    },
  },
  {
    name: 'new, limits refused',
    show: async (stage) => {
      const { page } = stage;
      await toNew(stage);
      await page.getByRole('button', { name: 'Read-only: All hosts' }).click();
      await page.getByText('Limits', { exact: true }).click();
      await page.getByLabel('Only from these addresses').fill('192.0.2.999');
      await press(page, 'Create token');
      await page.locator('[aria-invalid="true"]').waitFor();
    },
  },
  {
    name: 'new, refused',
    show: async (stage) => {
      const { page } = stage;
      await toNew(stage);
      await page.getByRole('button', { name: 'Read-only: All hosts' }).click();
      await fail(
        page,
        '**/auth/token',
        429,
        'quota_exceeded',
        'this account has 100 tokens, the most it may have',
      );
      await press(page, 'Create token');
      await page.getByRole('alert').waitFor();
    },
  },
  {
    name: 'new, found',
    show: async (stage) => {
      await toNew(stage);
      await stage.page.getByLabel('Search endpoints').fill('get orders');
      await stage.page.getByText(/endpoints found/).waitFor();
    },
  },
  {
    name: 'new, nothing found',
    show: async (stage) => {
      await toNew(stage);
      await stage.page.getByLabel('Search endpoints').fill('warehouse');
      await stage.page.getByText('No endpoint has all of these words.').waitFor();
    },
  },
];

const issueValue = async (stage: Stage) => {
  const { page } = stage;
  await toNew(stage);
  await page.getByLabel('Name', { exact: true }).fill('Docs of the shop');
  await page.getByLabel('at the end of /repos/{};').fill('acme');
  await page.getByLabel('at the end of /repos/{}/{};').fill('shop');
  await page.getByRole('button', { name: 'Read-only: /repos/{}/{}', exact: true }).click();
  await press(page, 'Create token');
  await page.getByRole('heading', { name: 'Token created' }).waitFor();
};

const VALUE: readonly State[] = [
  { name: 'value', show: issueValue },
  {
    name: 'value, copied',
    show: async (stage) => {
      await issueValue(stage);
      await stage.context.grantPermissions(['clipboard-write']);
      await press(stage.page, 'Copy the value');
      await stage.page.locator('.toast').getByText('Copied').waitFor();
    },
  },
  {
    name: 'value, leaving',
    show: async (stage) => {
      await issueValue(stage);
      await press(stage.page, 'Done');
      await stage.page.getByRole('dialog').waitFor();
    },
  },
  {
    name: 'value, rotated',
    show: onToken('Nightly build', async (page) => {
      await press(page, 'Rotate');
      await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
      await page.getByRole('heading', { name: 'New value' }).waitFor();
    }),
  },
];

const ask = async (page: Page, method: string, address: string) => {
  await page.getByLabel('Method').selectOption(method);
  await page.getByLabel('Address').fill(address);
  await press(page, 'Ask');
};

const TOKEN: readonly State[] = [
  {
    name: 'token, waiting value',
    show: async (stage) => {
      const { tokens, ids } = stage;
      await tokens.rotate('ada', ids.get(LONG_NAME) ?? '', { activate: 'first-use' });
      await toToken(LONG_NAME)(stage);
      await stage.page.getByRole('button', { name: 'Drop the new value' }).waitFor();
    },
  },
  { name: 'token, used', show: toToken('Deploy bot') },
  { name: 'token, limited', show: toToken('Monthly report') },
  { name: 'token, derived', show: toToken('Deploy of release 4.2') },
  { name: 'token, suspended', show: toToken('Migration of the ledger') },
  { name: 'token, expired', show: toToken('Holiday cover') },
  { name: 'token, revoked', show: toToken('Laptop that was lost') },
  { name: 'token, long name', show: toToken(LONG_NAME) },
  {
    name: 'token, loading',
    show: async ({ page, url, ids }) => {
      await hold(page, '**/auth/token/*');
      await page.goto(`${url}#/token/${ids.get('Deploy bot')}`);
      await page.getByText('Loading…').waitFor();
    },
  },
  {
    name: 'token, unknown',
    show: async ({ page, url }) => {
      await page.goto(`${url}#/token/5sQ0bX8vK2mYt7RjW1cZpA`);
      await page.getByRole('alert').waitFor();
    },
  },
  {
    name: 'token, allowed',
    show: onToken('Deploy bot', async (page) => {
      await ask(page, 'GET', `https://${ORDERS}/orders`);
      await page.getByText('Allowed.', { exact: true }).waitFor();
    }),
  },
  {
    name: 'token, not allowed',
    show: onToken('Deploy bot', async (page) => {
      await ask(page, 'POST', `https://${ORDERS}/orders`);
      await page.getByText('Not allowed.').waitFor();
    }),
  },
  {
    name: 'token, wrong address',
    show: onToken('Deploy bot', async (page) => {
      await ask(page, 'POST', '/orders');
      await page.getByText('Enter an address with a host').waitFor();
    }),
  },
  {
    name: 'token, edit',
    show: onToken('Deploy bot', async (page) => {
      await press(page, 'Edit');
      await page.getByRole('dialog').waitFor();
    }),
  },
  {
    name: 'token, edit refused',
    show: onToken('Deploy bot', async (page) => {
      await press(page, 'Edit');
      await page.getByRole('dialog').getByLabel('Expires').selectOption('On a date');
      await page.getByRole('dialog').getByLabel('Date').fill('2000-01-01');
      await press(page, 'Save');
      await page.locator('dialog .error').waitFor();
    }),
  },
  {
    name: 'token, scopes',
    show: onToken('Deploy bot', async (page) => {
      await editScopes(page);
      await page.getByRole('checkbox', { name: `POST /orders (${ORDERS})` }).check();
      await page.getByRole('heading', { name: 'Adds 1 scope' }).waitFor();
    }),
  },
  {
    name: 'token, narrow',
    show: onToken('Nightly build', async (page) => {
      await press(page, 'Narrow to what was used');
      await page.getByRole('heading', { name: /^Removes/ }).waitFor();
    }),
  },
  {
    name: 'token, narrow so far',
    show: onToken('Monthly report', async (page) => {
      await press(page, 'Narrow to what was used');
      await page.getByText('Advice begins on').waitFor();
    }),
  },
  {
    name: 'token, details',
    show: onToken('Monthly report', async (page) => {
      await page.getByText('Details', { exact: true }).click();
    }),
  },
  {
    name: 'token, nothing to narrow',
    show: onToken('Deploy of release 4.2', async (page) => {
      await press(page, 'Narrow to what was used');
      await page.getByRole('button', { name: 'Close' }).waitFor();
    }),
  },
  {
    name: 'token, rotate',
    show: onToken('Deploy bot', async (page) => {
      await press(page, 'Rotate');
      await page.getByLabel('After a grace period').check();
    }),
  },
  {
    name: 'token, revoke',
    show: onToken('Deploy bot', async (page) => {
      await press(page, 'Revoke');
      await page.getByRole('dialog').waitFor();
    }),
  },
  {
    // Must be the last state, since it renames the token.
    name: 'token, changed meanwhile',
    show: onToken('Deploy bot', async (page, { tokens, ids }) => {
      const removeScopes = [`GET:${ORDERS}/orders$`];
      await tokens.patch('ada', ids.get('Deploy bot') ?? '', { name: 'Release bot', removeScopes });
      await press(page, 'Suspend');
      await page.getByRole('dialog', { name: 'This token was changed' }).waitFor();
    }),
  },
];

const REVIEW: readonly State[] = [
  {
    name: 'review',
    show: async ({ page, url }) => {
      await page.goto(`${url}#/review`);
      await page.getByText(/^\d+ findings$/).waitFor();
    },
  },
  {
    name: 'review, loading',
    show: async ({ page, url }) => {
      await hold(page, '**/auth/review*');
      await page.goto(`${url}#/review`);
      await page.getByText('Looking at your tokens…').waitFor();
    },
  },
  {
    name: 'review, error',
    show: async ({ page, url }) => {
      await fail(page, '**/auth/review*', 503, 'store_unavailable', 'the store does not answer');
      await page.goto(`${url}#/review`);
      await page.getByRole('alert').waitFor();
    },
  },
];

/** Every state of every screen, except those of an empty account. */
export const STATES: readonly State[] = [
  ...SIGN_IN,
  ...LIST,
  ...NEW,
  ...VALUE,
  ...TOKEN,
  ...REVIEW,
];

const level = (page: Page, name: string) => page.getByRole('combobox', { name, exact: true });
const pickIssues = async (stage: Stage) => {
  const { page } = stage;
  await toNew(stage);
  await page.getByLabel('Name', { exact: true }).fill('Docs of the shop');
  await level(page, 'Issues').selectOption('read');
  await level(page, 'Repositories').selectOption('read');
};
const resourceField = ({ page }: Stage) =>
  page.getByRole('group', { name: 'Only this resource' }).getByRole('textbox');

/** The states of a service that has words for its endpoints. */
export const STATES_IN_WORDS: readonly State[] = [
  {
    name: 'permissions, one resource',
    show: async (stage) => {
      await pickIssues(stage);
      await resourceField(stage).first().fill('acme');
      await resourceField(stage).last().fill('shop');
    },
  },
  {
    name: 'permissions, custom',
    show: async (stage) => {
      const { page } = stage;
      await pickIssues(stage);
      await press(page, 'What is below Issues');
      await press(page, 'What is below Orders');
      await page.getByRole('checkbox', { name: 'Cancel an order', exact: true }).check();
      await page.getByText('1 of 6').waitFor();
    },
  },
  {
    name: 'permissions, preset',
    show: async (stage) => {
      await toNew(stage);
      await press(stage.page, 'Release bot');
      await stage.page.getByText('1 permission, 2 endpoints').waitFor();
    },
  },
  {
    name: 'permissions, wrong resource',
    show: async (stage) => {
      await pickIssues(stage);
      await resourceField(stage).first().fill('a/b');
      await press(stage.page, 'Create token');
    },
  },
  {
    name: 'permissions, found',
    show: async (stage) => {
      await pickIssues(stage);
      await stage.page.getByLabel('Search endpoints').fill('order');
      await stage.page.getByText(/endpoints found/).waitFor();
    },
  },
  {
    name: 'permissions, endpoints',
    show: async (stage) => {
      await pickIssues(stage);
      await stage.page.getByRole('radio', { name: 'All endpoints' }).check();
    },
  },
  { name: 'list, in words', show: showAll },
  { name: 'token, in words', show: toToken('Deploy bot') },
  {
    name: 'token, edit in words',
    show: onToken('Deploy bot', async (page) => void (await editScopes(page))),
  },
];

const toCode = async ({ page, url }: Stage) => {
  await page.goto(`${url}#/approve`);
  await page.getByLabel('Code').waitFor();
};
const typeCode = async (page: Page, code: string) => {
  await page.getByLabel('Code').fill(code);
  await press(page, 'Show the request');
};

/** Text that would like to be something else: markup, another direction, invisible characters, a tall stack. */
export const HOSTILE = {
  client: '<b>Acme</b> \u202edeploy\u2066\u200b\u{e0041}\ufe0f\u2800',
  purpose: `"><img src=x onerror=alert(1)> e${'\u0301'.repeat(40)} ${'w'.repeat(120)}`,
};

/** Opens a request, types its code, and waits until it is shown. */
export async function showRequest(stage: Stage, asked: Partial<OpenInput> = {}): Promise<string> {
  const { userCode } = await stage.requests().open({
    client: 'Deploy assistant',
    scopes: [`GET:${CODE}/repos/{}/{}$`, `*:${ORDERS}/orders/{}$`, `POST:${BILLING}/refunds$`],
    purpose: 'Refund the orders of Tuesday',
    address: '2001:db8::7',
    ...asked,
  });
  await toCode(stage);
  await typeCode(stage.page, userCode);
  await stage.page.getByRole('heading', { level: 1, name: /^A program asks/ }).waitFor();
  await stage.page.getByText('Pay money back').waitFor();
  return userCode;
}

/** Asks for more than a new token may do, which was derived from another one. */
export async function showElevation(stage: Stage, asked: Partial<OpenInput> = {}): Promise<string> {
  const { tokens } = stage;
  const account = 'ada';
  const scopes = [`GET:${CODE}/*`, `GET:${ORDERS}/*`];
  const root = await tokens.issue({ account, name: 'Assistant', scopes, createdBy: 'grace' });
  const { value } = await tokens.derive(root.value, { name: HOSTILE.client, scopes });
  return showRequest(stage, { elevate: value, ...asked });
}

const refuseDecision = (status: number, code: string, message: string) => async (stage: Stage) => {
  const { page } = stage;
  await showRequest(stage);
  await fail(page, '**/auth/request/*/approve', status, code, message);
  await press(page, 'Approve');
  await page
    .getByRole('alert')
    .or(page.getByRole('heading', { name: 'No longer open' }))
    .waitFor();
};

/** The states of a service at which programs ask for tokens. */
export const STATES_OF_REQUESTS: readonly State[] = [
  { name: 'approve', show: toCode },
  {
    name: 'approve, wrong code',
    show: async (stage) => {
      await toCode(stage);
      await typeCode(stage.page, 'abcd-1234');
      await stage.page.getByText('no vowels').waitFor();
    },
  },
  {
    name: 'approve, unknown code',
    show: async (stage) => {
      await toCode(stage);
      await fail(stage.page, '**/auth/request/*', 404, 'not_found', 'there is no such request');
      await typeCode(stage.page, 'bbbb bbbb');
      await stage.page.getByText('There is no open request').waitFor();
    },
  },
  {
    name: 'approve, too many codes',
    show: async (stage) => {
      await toCode(stage);
      await stage.page.route('**/auth/request/*', (route) =>
        route.fulfill({
          status: 429,
          headers: { 'retry-after': '540' },
          json: { code: 'rate_limited', message: 'there were too many wrong codes' },
        }),
      );
      await typeCode(stage.page, 'BBBBBBBB');
      await stage.page.getByText('Try again in 540 seconds.').waitFor();
    },
  },
  {
    name: 'approve, looking',
    show: async (stage) => {
      await toCode(stage);
      await hold(stage.page, '**/auth/request/*');
      await typeCode(stage.page, 'BBBBBBBB');
      await stage.page.getByText('Looking for it…').waitFor();
    },
  },
  { name: 'approve, request', show: async (stage) => void (await showRequest(stage)) },
  {
    name: 'approve, hostile',
    show: async (stage) => void (await showRequest(stage, HOSTILE)),
  },
  { name: 'approve, elevation', show: async (stage) => void (await showElevation(stage)) },
  {
    name: 'approve, less',
    show: async (stage) => {
      const { page } = stage;
      await showElevation(stage, { ttlSeconds: 3000 });
      await page.getByRole('checkbox', { name: /^Pay money back/ }).uncheck();
      await page.getByRole('checkbox', { name: /^Cancel an order/ }).uncheck();
      await page.getByLabel('Lifetime').selectOption('5 minutes');
    },
  },
  {
    name: 'approve, nothing selected',
    show: async (stage) => {
      const { page } = stage;
      await showRequest(stage);
      for (const host of [BILLING, CODE, ORDERS]) {
        await page.getByRole('checkbox', { name: host }).click();
      }
      await press(page, 'Approve');
      await page.getByText('Select at least one endpoint').waitFor();
    },
  },
  {
    name: 'approve, nothing to approve',
    show: async (stage) => {
      const { page } = stage;
      const scopes = ['GET:elsewhere.example/orders$'];
      const { userCode } = await stage.requests().open({ client: 'Deploy assistant', scopes });
      await toCode(stage);
      await typeCode(page, userCode);
      await page.getByText('You can only deny it').waitFor();
    },
  },
  {
    name: 'approve, refused',
    show: refuseDecision(503, 'store_unavailable', 'the store does not answer'),
  },
  { name: 'approve, gone', show: refuseDecision(404, 'not_found', 'there is no such request') },
  {
    name: 'approve, decided',
    show: async (stage) => {
      const code = await showRequest(stage);
      await stage.requests().deny('ada', code);
      await press(stage.page, 'Approve');
      await stage.page.getByText('This request was denied before.').waitFor();
    },
  },
  {
    name: 'approve, approved',
    show: async (stage) => {
      await showElevation(stage);
      await press(stage.page, 'Approve');
      await stage.page.getByRole('heading', { name: 'Approved', exact: true }).waitFor();
    },
  },
  {
    name: 'approve, denied',
    show: async (stage) => {
      await showRequest(stage);
      await press(stage.page, 'Deny');
      await stage.page.getByRole('heading', { name: 'Denied' }).waitFor();
    },
  },
  {
    name: 'list, elevation',
    show: async (stage) => {
      await toList(stage, `name=${encodeURIComponent('Elevation')}`);
      await stage.page.getByText('Adds rights to').waitFor();
    },
  },
  { name: 'token, elevation', show: toToken('Elevation') },
  { name: 'token, elevated', show: toToken('Release assistant') },
  {
    name: 'list, filter by maker',
    show: async (stage) => {
      await toList(stage, 'createdBy=grace');
      await stage.page.getByText('Filters: 1 active').click();
      await stage.page.getByLabel('Created by').waitFor();
    },
  },
];
