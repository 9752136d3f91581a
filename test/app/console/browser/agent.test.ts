// One whole run of an agent: refused by a tool, it asks for more, somebody approves, and all of it ends.
import type { Page } from 'playwright-core';
import { expect, it, onTestFinished } from 'vitest';
import type { TokenService } from '../../../../src/index.ts';
import { toolScope } from '../../../../src/mcp/index.ts';
import { ScopeCatalog, type WordedScope } from '../../../../src/scope/index.ts';
import { manualClock } from '../../../../src/testing/index.ts';
import { connect, start, TOOLS, type ToolClient } from '../../../mcp/sdks.ts';
import { DOMAIN, REFUND } from '../../../mcp/support.ts';
import { faultsOf, hasChromium, openForTest, press, signIn } from './support.ts';

const WORDS: Readonly<Record<string, string>> = {
  orders: 'Look orders up',
  refund: 'Pay money back',
  delete: 'Delete an order',
};
const CATALOG: readonly WordedScope[] = TOOLS.map((tool) => ({
  scope: toolScope(DOMAIN, tool),
  summary: WORDS[tool],
  tag: 'Tools',
}));
const ORDERS = toolScope(DOMAIN, 'orders');
const ENDED =
  '{"error":"invalid_token","error_description":"the token is not, or no longer, valid"}';
const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const CLIENT = 'Support agent';
const PHONE = { viewport: { width: 390, height: 844 } };

/** What the SDKs do differently: how they report a refusal, and what they let an agent know of it. */
const SDKS = [
  {
    version: '1.x',
    insufficient: `Error: Streamable HTTP error: Error POSTing to endpoint: {"error":"insufficient_scope","error_description":"the token does not cover ${REFUND}"}`,
    ended: `Error: Streamable HTTP error: Error POSTing to endpoint: ${ENDED}`,
    received: REFUND,
    listed: 'refund',
  },
  {
    version: '2.x',
    insufficient: `InsufficientScopeError: Insufficient scope: required "${ORDERS} ${REFUND}"`,
    ended: `SdkHttpError: Error POSTing to endpoint: ${ENDED}`,
    received: `${ORDERS} ${REFUND}`,
    listed: 'orders,refund',
  },
] as const;

it.skipIf(!hasChromium).each(SDKS)(
  'an agent with a client of SDK $version asks for one more tool, gets it, and loses it',
  async ({ version, insufficient, ended, received, listed }) => {
    const clock = manualClock(new Date());
    const catalog = ScopeCatalog.from(CATALOG);
    const opened = await openForTest({
      service: { catalog, clock },
      browser: PHONE,
      takesRequests: true,
    });
    const { page, tokens, url } = opened;
    const { resource, runs } = await start(tokens, version);
    const transcript: string[] = [];
    const note = (...line: unknown[]) => void transcript.push(line.join(' '));
    const withToken = (value: string) => clientOf(version, resource, value);
    const oauth = (path: string, form: Readonly<Record<string, string>>) =>
      fetch(new URL(`/auth/oauth/${path}`, url), {
        method: 'POST',
        body: new URLSearchParams(form),
      }).then(async (answer) => ({
        status: answer.status,
        body: (await answer.json()) as Record<string, string>,
      }));

    const first = await tokens.issue({
      account: 'ada',
      name: 'Day shift',
      scopes: [ORDERS],
      createdBy: 'ada',
    });
    const agent = await withToken(first.value);
    note('list:', await namesOf(agent));
    note('call orders:', await outcomeOf(agent, 'orders'));
    const refusal = await refusalOf(agent, 'refund');
    note('call refund:', refusal.message);

    const asked = await oauth('device', {
      client_id: CLIENT,
      scope: refusal.needed,
      purpose: 'Refund order 4711',
      subject_token: first.value,
      subject_token_type: ACCESS_TOKEN,
    });
    const { device_code = '', user_code = '' } = asked.body;
    note('request:', asked.status, Object.keys(asked.body).join());
    const poll = async () => {
      clock.advance(5);
      return oauth('token', { grant_type: DEVICE_CODE, client_id: CLIENT, device_code });
    };
    const early = await poll();
    note('poll:', early.status, early.body['error']);

    await signIn(page);
    note('approve on a phone:', ...(await approve(page, user_code)));

    const granted = await poll();
    note('poll:', granted.status, granted.body['scope']);
    const elevated = await withToken(granted.body['access_token'] ?? '');
    note('list:', await namesOf(elevated));
    note('call refund:', await outcomeOf(elevated, 'refund'));
    note('call orders:', await outcomeOf(agent, 'orders'));
    note('trail:', await trailOf(tokens));

    await revoke(page, 'Day shift');
    note('end: Day shift is revoked on the phone');
    note('call refund:', (await refusalOf(elevated, 'refund')).message);
    note('call orders:', (await refusalOf(agent, 'orders')).message);
    note('runs:', runs.join());

    expect(transcript).toEqual([
      'list: orders',
      `call orders: ${answerOf('orders')}`,
      `call refund: ${insufficient}`,
      'request: 200 device_code,user_code,verification_uri,expires_in,interval',
      'poll: 400 authorization_pending',
      'approve on a phone: [x] Pay money back New POST /tools/refund',
      `poll: 200 ${received}`,
      `list: ${listed}`,
      `call refund: ${answerOf('refund')}`,
      `call orders: ${answerOf('orders')}`,
      'trail: Support agent by ada for Refund order 4711; Day shift by ada',
      'end: Day shift is revoked on the phone',
      `call refund: ${ended}`,
      `call orders: ${ended}`,
      'runs: orders,refund,orders',
    ]);
  },
);

async function clientOf(version: '1.x' | '2.x', resource: string, value: string) {
  const client = await connect(version, resource, value);
  onTestFinished(() => client.close());
  return client;
}

async function namesOf(client: ToolClient): Promise<string> {
  const { tools } = await client.listTools();
  return tools.map(({ name }) => name).join();
}

async function outcomeOf(client: ToolClient, name: string): Promise<string> {
  const { content } = await client.callTool({ name });
  return JSON.stringify(content);
}

const answerOf = (tool: string) => `[{"type":"text","text":"ada calls ${tool}"}]`;

/** What a client says of a refused call, and the scopes that it needs, in the words of its SDK. */
async function refusalOf(client: ToolClient, name: string) {
  const error: unknown = await client.callTool({ name }).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Error)) throw new Error(`${name} was not refused`);
  const { requiredScope } = error as { readonly requiredScope?: string };
  const missing = /does not cover (\S+?)"/.exec(error.message)?.[1];
  return { message: `${error.name}: ${error.message}`, needed: requiredScope ?? missing ?? '' };
}

/** Types the code, and approves what is shown. Returns what the page said. */
async function approve(page: Page, code: string): Promise<readonly string[]> {
  await page.getByRole('link', { name: 'Approve a request' }).click();
  await page.getByLabel('Code').fill(code);
  await press(page, 'Show the request');
  await page.getByRole('heading', { level: 1, name: 'A program asks for more rights' }).waitFor();
  expect(await faultsOf(page)).toEqual([]);
  const isTicked = await page.getByRole('checkbox', { name: /Pay money back/ }).isChecked();
  const isNew = await page.getByRole('listitem').filter({ hasText: 'New' }).textContent();

  await press(page, 'Approve');
  await page.getByRole('heading', { level: 1, name: 'Approved' }).waitFor();
  return [isTicked ? '[x]' : '[ ]', String(isNew)];
}

async function revoke(page: Page, name: string): Promise<void> {
  await page.getByRole('link', { name: 'All tokens' }).click();
  await page.getByRole('link', { name }).first().click();
  await press(page, 'Revoke');
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke token' }).click();
  await page.getByText(`Revoked ${name}.`).waitFor();
}

/** Who made each token, and for what. */
async function trailOf(tokens: TokenService): Promise<string> {
  const { tokens: all } = await tokens.list({ account: 'ada' });
  return all
    .map(
      ({ name, createdBy, purpose }) =>
        `${name} by ${createdBy}${purpose === undefined ? '' : ` for ${purpose}`}`,
    )
    .join('; ');
}
