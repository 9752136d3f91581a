import { describe, expect, it } from 'vitest';
import { ScopeCatalog } from '../../../../src/scope/index.ts';
import {
  hasChromium,
  keepsValue,
  type Opened,
  type OpenOptions,
  openForTest,
  signIn,
} from './support.ts';

const catalog = ScopeCatalog.from([
  'GET:api.shop.example/orders$',
  'POST:api.shop.example/orders$',
]);

/** A token that was just issued, and its value. */
async function issued(options: OpenOptions = {}): Promise<Opened & { readonly value: string }> {
  const opened = await openForTest({ ...options, service: { catalog, ...options.service } });
  const { page, url } = opened;
  await signIn(page);
  await page.goto(`${url}#/new`);
  await page.getByRole('button', { name: 'Read-only: api.shop.example' }).click();
  await page.getByRole('button', { name: 'Create token' }).click();
  await page.getByRole('heading', { name: 'Token created' }).waitFor();
  return { ...opened, value: await page.getByLabel('Value of the token').inputValue() };
}

describe.skipIf(!hasChromium)('the screen with a new value', () => {
  it('shows the value, and a call that does not contain it', async () => {
    const { page, tokens, value } = await issued();
    const verdict = await tokens.verify(value, { scope: 'GET:api.shop.example/orders$' });

    expect(verdict.ok).toBe(true);
    expect(await page.locator('pre').textContent()).toContain("'https://api.shop.example/orders'");
    expect((await page.content()).includes(value)).toBe(false);
    expect(await page.getByText('It cannot be shown again.').isVisible()).toBe(true);
  });

  it('says that the value can be shown again, if the service can', async () => {
    const { page } = await issued({ service: { reveal: 'always' } });

    await page.getByText('You can see the value again later').waitFor();
    await page.getByRole('button', { name: 'Done' }).click();

    await page.getByRole('heading', { name: 'Token created' }).waitFor({ state: 'detached' });
  });

  it('copies the value to the clipboard', async () => {
    const { page, context, value } = await issued();
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);

    await page.getByRole('button', { name: 'Copy the value' }).click();

    await expect
      .poll(async () => (await page.evaluate('navigator.clipboard.readText()')) === value)
      .toBe(true);
  });

  it('copies the value if the page cannot use the clipboard API', async () => {
    const { page, value } = await issued();
    await page.evaluate(`Object.defineProperty(navigator, 'clipboard', { value: undefined });
      addEventListener('copy', () => { window.copied = getSelection().toString() || document.activeElement.value; });`);
    const button = page.getByRole('button', { name: 'Copy the value' });

    await button.click();

    expect((await page.evaluate('window.copied')) === value).toBe(true);
    expect(await page.getByText('Copied').first().isVisible()).toBe(true);
    expect(await page.locator('.off-screen').count()).toBe(0);
  });

  it('asks before it is left without a copy', async () => {
    const { page } = await issued();
    const done = page.getByRole('button', { name: 'Done' });

    await done.click();
    await page.getByRole('button', { name: 'Stay here' }).click();
    expect(await page.getByLabel('Value of the token').isVisible()).toBe(true);
    await done.click();
    await page.getByRole('button', { name: 'Leave without it' }).click();

    await page.getByRole('heading', { name: 'Token created' }).waitFor({ state: 'detached' });
  });

  it('leaves no value in the page, its history or its memory', async () => {
    const { page, context, value } = await issued();
    const session = await context.newCDPSession(page);
    expect(await inHeap(session, value)).toBe(true);

    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('button', { name: 'Leave without it' }).click();
    await page.getByRole('heading', { name: 'Unnamed token' }).waitFor();

    expect(await keepsValue(page, value)).toBe(false);
    expect(await inHeap(session, value)).toBe(false);
    await page.goBack();
    await page.getByRole('heading', { name: 'New token' }).waitFor();
    expect((await page.content()).includes(value)).toBe(false);
  });

  it('leaves no value in memory after another token was derived from it', async () => {
    const { page, context, value } = await issued({ derivation: true });
    const session = await context.newCDPSession(page);
    await page.getByRole('button', { name: 'Derive a narrower token' }).click();
    await page.getByRole('checkbox', { name: /GET.*orders/ }).check();
    await page.getByRole('button', { name: 'Create token' }).click();
    await page.getByRole('button', { name: 'Back to its parent' }).waitFor();
    const child = await page.getByLabel('Value of the token').inputValue();
    expect([await inHeap(session, value), await inHeap(session, child)]).toEqual([true, true]);

    await page.getByRole('button', { name: 'Back to its parent' }).click();
    await page.getByRole('button', { name: 'Leave without it' }).click();
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('button', { name: 'Leave without it' }).click();
    await page.getByRole('heading', { name: 'Unnamed token' }).waitFor();

    expect([await inHeap(session, value), await inHeap(session, child)]).toEqual([false, false]);
  });
});

type Session = Awaited<ReturnType<Opened['context']['newCDPSession']>>;

/** Whether a text is in the heap of the page after garbage collection. */
async function inHeap(session: Session, text: string): Promise<boolean> {
  await session.send('HeapProfiler.enable');
  for (let round = 0; round < 3; round++) await session.send('HeapProfiler.collectGarbage');
  const chunks: string[] = [];
  const take = ({ chunk }: { readonly chunk: string }) => chunks.push(chunk);
  session.on('HeapProfiler.addHeapSnapshotChunk', take);
  await session.send('HeapProfiler.takeHeapSnapshot', { reportProgress: false });
  session.off('HeapProfiler.addHeapSnapshotChunk', take);
  return chunks.join('').includes(text);
}
