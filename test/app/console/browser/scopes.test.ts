import { describe, expect, it } from 'vitest';
import { ScopeCatalog } from '../../../../src/scope/index.ts';
import { editScopes, hasChromium, openForTest, signIn, USERNAME } from './support.ts';

const USERS = ['GET:git.shop.example/users/me$', 'GET:git.shop.example/users/{}$'];
const REPOS = ['GET', 'POST'].map((method) => `${method}:git.shop.example/repos/{}/{}/issues$`);

/** The dialog that edits the scopes of a token. */
async function editing(scopes: readonly string[], catalog?: ScopeCatalog) {
  const service = catalog === undefined ? {} : { catalog };
  const { page, tokens, url } = await openForTest({ service });
  const { id } = await tokens.issue({ account: USERNAME, scopes, name: 'nightly' });
  await signIn(page);
  await page.goto(`${url}#/token/${id}`);
  await editScopes(page);
  const save = page.getByRole('button', { name: 'Save' });
  await save.waitFor();
  return { page, save, held: async () => (await tokens.get(USERNAME, id))?.scopes };
}

describe.skipIf(!hasChromium)('the dialog that edits scopes', () => {
  it('adds a named endpoint that a held template does not match', async () => {
    const { page, save, held } = await editing(USERS.slice(1), ScopeCatalog.from(USERS));

    expect(await page.getByRole('heading', { name: 'What changes' }).count()).toBe(0);
    await page.getByRole('checkbox', { name: 'GET /users/me (git.shop.example)' }).check();
    await page.getByRole('heading', { name: 'Adds 1 scope' }).waitFor();
    await save.click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });

    expect(await held()).toEqual(USERS);
  });

  it('narrows a template to a name without adding a scope', async () => {
    const { page, save, held } = await editing(USERS.slice(1), ScopeCatalog.from(USERS));

    await page.getByLabel('at the end of /users/{};').first().fill('ada');
    await page.getByRole('heading', { name: 'Removes 1 scope' }).waitFor();
    expect(await page.getByRole('heading', { name: /^Adds/ }).count()).toBe(0);
    await save.click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });

    expect(await held()).toEqual(['GET:git.shop.example/users/ada$']);
  });

  it('keeps a second resource, and removes it with one click', async () => {
    const names = ['docs', 'site'].map((name) => `*:git.shop.example/repos/acme/${name}`);
    const { page, save, held } = await editing(names, ScopeCatalog.from([...USERS, ...REPOS]));

    expect(await page.getByLabel('at the end of /repos/{}/{};').first().inputValue()).toBe('docs');
    await page.getByRole('button', { name: `Remove ${names[1]}` }).click();
    await page.getByRole('heading', { name: 'Removes 2 scopes' }).waitFor();
    await save.click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });

    expect(await held()).toEqual(REPOS.map((scope) => scope.replace('{}/{}', 'acme/docs')));
  });

  it('accepts scopes as text if there is no catalog', async () => {
    const { page, save, held } = await editing(['GET:*.shop.example/*']);

    await page
      .getByRole('textbox', { name: 'What the token may do' })
      .fill('GET:git.shop.example/users');
    await save.click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });

    expect(await held()).toEqual(['GET:git.shop.example/users']);
  });
});
