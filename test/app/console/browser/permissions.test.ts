import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import type { Preset } from '../../../../src/index.ts';
import { ScopeCatalog, type WordedScope } from '../../../../src/scope/index.ts';
import {
  faultsOf,
  hasChromium,
  LOOKS,
  type Opened,
  type OpenOptions,
  openForTest,
  press,
  signIn,
  USERNAME,
} from './support.ts';

const at = (scope: string) => scope.replace(' ', ':git.shop.example/');
const repo = ['owner', 'repo'];
const GIT: readonly WordedScope[] = [
  { scope: at('GET repos/{}/{}$'), summary: 'Get a repository', tag: 'repos', segments: repo },
  {
    scope: at('DELETE repos/{}/{}$'),
    summary: 'Delete a repository',
    tag: 'repos',
    segments: repo,
  },
  {
    scope: at('GET repos/{}/{}/issues$'),
    summary: 'List repository issues',
    tag: 'issues',
    segments: repo,
  },
  {
    scope: at('POST repos/{}/{}/issues$'),
    summary: 'Create an issue',
    tag: 'issues',
    segments: repo,
  },
  {
    scope: at('POST repos/{}/{}/issues/{}/comments$'),
    summary: 'Create an issue comment',
    tag: 'issues',
    segments: [...repo, 'issue_number'],
  },
  {
    scope: at('GET repos/{}/{}/old-issues$'),
    summary: 'List issues the old way',
    tag: 'issues',
    segments: repo,
    deprecated: true,
  },
  { scope: at('POST markdown$'), summary: 'Render Markdown', tag: 'markdown' },
];
const PERMISSIONS = [
  {
    name: 'Issues',
    description: 'What is to be done',
    levels: {
      read: [at('GET repos/{}/{}/issues$'), at('GET repos/{}/{}/old-issues$')],
      write: [at('* repos/{}/{}/issues')],
    },
  },
  {
    name: 'Repositories',
    levels: { read: [at('GET repos/{}/{}$')], write: [at('DELETE repos/{}/{}$')] },
  },
];
const CI: Preset = {
  name: 'CI',
  scopes: [at('GET repos')],
  ttlSeconds: 3600,
  limits: { addresses: ['203.0.113.0/24'] },
};

async function newToken(
  entries: readonly WordedScope[] = GIT,
  { service, ...options }: OpenOptions = {},
): Promise<Opened> {
  const catalog = ScopeCatalog.from(entries, entries === GIT ? { permissions: PERMISSIONS } : {});
  const opened = await openForTest({ ...options, service: { catalog, ...service } });
  await signIn(opened.page);
  await opened.page.goto(`${opened.url}#/new`);
  await opened.page.getByRole('group', { name: 'What the token may do' }).waitFor();
  return opened;
}

const level = (page: Page, name: string) => page.getByRole('combobox', { name, exact: true });
const summary = (page: Page) => page.locator('.form-bar p').textContent();
const found = (page: Page) =>
  page
    .locator('.endpoints .endpoint label')
    .evaluateAll((all) => all.map((one) => one.textContent));

async function granted({ page, tokens }: Opened) {
  await press(page, 'Create token');
  await page.getByRole('heading', { name: 'Token created' }).waitFor();
  const { tokens: all } = await tokens.list({ account: USERNAME });
  return all[0];
}

describe.skipIf(!hasChromium)('the permissions of a new token', () => {
  it('are chosen by resource and level, and grant exactly its scopes', async () => {
    const opened = await newToken();
    const { page } = opened;

    await level(page, 'Issues').selectOption({ label: 'Read-only' });
    expect(await summary(page)).toBe('1 permission, 2 endpoints · read-only');
    await level(page, 'Repositories').selectOption({ label: 'Read and write' });
    expect(await summary(page)).toBe('2 permissions, 4 endpoints');
    await level(page, 'Repositories').selectOption({ label: 'No access' });

    expect((await granted(opened))?.scopes).toEqual([
      at('GET repos/{}/{}/issues$'),
      at('GET repos/{}/{}/old-issues$'),
    ]);
  });

  it('open to their endpoints in words, where one more makes a custom level', async () => {
    const { page } = await newToken();

    await level(page, 'Issues').selectOption('read');
    await press(page, 'What is below Issues');
    const create = page.getByRole('checkbox', { name: 'Create an issue', exact: true });
    await expect(create.isChecked()).resolves.toBe(false);
    await create.check();

    expect(await level(page, 'Issues').inputValue()).toBe('custom');
    await expect(page.getByText('3 of 4').isVisible()).resolves.toBe(true);
    const old = page.getByRole('checkbox', { name: /List issues the old way/ });
    await expect(old.isChecked()).resolves.toBe(true);
    await expect(page.getByText('deprecated').isVisible()).resolves.toBe(true);
    const call = page.getByText('/repos/{owner}/{repo}/issues/{issue_number}/comments');
    await expect(call.isVisible()).resolves.toBe(true);
    await create.uncheck();
    expect(await level(page, 'Issues').inputValue()).toBe('read');
  });

  it('are found by what people call them, the best first', async () => {
    const { page } = await newToken();
    const search = page.getByRole('searchbox', { name: 'Search endpoints' });
    const find = async (query: string) => {
      await search.fill(query);
      return found(page);
    };

    expect((await find('create an issue'))[0]).toBe('Create an issue');
    expect((await find('issue list'))[0]).toBe('List repository issues');
    expect((await find('del rep'))[0]).toBe('Delete a repository');
    expect((await find('issue_number'))[0]).toBe('Create an issue comment');
    expect(await find('post /markdown')).toEqual(['Render Markdown']);
    expect(await find('nothing like it')).toEqual([]);
  });

  it('are narrowed to one resource by the names of its parameters', async () => {
    const opened = await newToken();
    const { page } = opened;
    const group = page.getByRole('group', { name: 'Only this resource' });

    await expect(group.isVisible()).resolves.toBe(false);
    await level(page, 'Issues').selectOption('write');
    const fields = group.getByRole('textbox');
    await expect(fields.count()).resolves.toBe(2);
    await fields.first().fill('acme');
    await fields.last().fill('site');

    expect((await granted(opened))?.scopes).toEqual([
      at('GET repos/acme/site/issues$'),
      at('GET repos/acme/site/old-issues$'),
      at('POST repos/acme/site/issues$'),
      at('POST repos/acme/site/issues/{}/comments$'),
    ]);
  });

  it('start from a preset, with its lifetime and its limits', async () => {
    const opened = await newToken(GIT, { service: { presets: [CI], limits: true } });
    const { page } = opened;

    await press(page, 'Read only');
    expect(await summary(page)).toBe('2 permissions, 3 endpoints · read-only');
    await press(page, 'CI');
    expect(await summary(page)).toBe('2 permissions, 3 endpoints · read-only');
    await expect(page.getByLabel('Expires', { exact: true }).inputValue()).resolves.toBe('3600s');

    const token = await granted(opened);
    expect(token?.limits).toEqual(CI.limits);
    const seconds = Number(token?.expiresAt) - Number(token?.createdAt);
    expect(seconds).toBe(3_600_000);
  });

  it('are the tree of paths for a list without words', async () => {
    const { page } = await newToken([{ scope: at('GET orders$') }]);

    await expect(page.getByRole('list', { name: 'Endpoints' }).isVisible()).resolves.toBe(true);
    await expect(page.getByRole('radio', { name: 'Permissions' }).count()).resolves.toBe(0);
  });

  const HOSTILE: readonly WordedScope[] = [
    '<img src=x onerror=alert(1)>',
    'x'.repeat(10_000),
    'right \u202e to left \u2066',
    'שלום עולם',
    '',
    'Same',
    'Same',
    'same',
  ].flatMap((text, index) => [
    { scope: at(`GET a${index}/{}$`), summary: text, tag: text, segments: [text] },
    { scope: at(`POST a${index}/{}$`), summary: text, tag: text },
  ]);

  it.each(LOOKS)('hold hostile words: %o', async (browser) => {
    const { page } = await newToken(HOSTILE, { browser });

    await page.getByRole('button', { name: /What is below <img/ }).click();
    expect(await faultsOf(page)).toEqual([]);
    await page.getByRole('searchbox', { name: 'Search endpoints' }).fill('same');
    expect(await faultsOf(page)).toEqual([]);
    expect(await found(page)).toHaveLength(6);
  });
});
