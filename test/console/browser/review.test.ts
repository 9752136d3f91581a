import { afterEach, describe, expect, it } from 'vitest';
import { ScopeCatalog } from '../../../src/scope/index.ts';
import { manualClock } from '../../../src/testing/index.ts';
import {
  faultsOf,
  hasChromium,
  LOOKS,
  type Opened,
  type OpenOptions,
  openConsole,
  signIn,
} from './support.ts';

const ORDERS = 'GET:api.shop.example/orders';
const catalog = ScopeCatalog.from([ORDERS, 'GET:api.shop.example/bills', 'GET:b.example/c']);

let opened: Opened | undefined;
afterEach(async () => {
  const { close } = opened ?? {};
  opened = undefined;
  await close?.();
});

/** The review of an account whose tokens are 100 days old. */
async function reviewed(names: readonly string[], options: OpenOptions = {}): Promise<Opened> {
  const clock = manualClock(new Date());
  opened = await openConsole({
    ...options,
    service: { catalog, clock },
  });
  const { tokens, page } = opened;
  for (const name of names) {
    await tokens.issue({ account: 'ada', scopes: [ORDERS], name, ttlSeconds: 31_536_000 });
  }
  clock.advance(100 * 86_400);
  await signIn(page);
  await page.getByRole('link', { name: 'Review' }).click();
  return opened;
}

describe.skipIf(!hasChromium)('the review', () => {
  it('says when there is nothing to do', async () => {
    const { page } = await reviewed([]);

    await page.getByText('Nothing to do').waitFor();
    expect(await faultsOf(page)).toEqual([]);
  });

  it('shows findings with what to do about them', async () => {
    const { page, tokens } = await reviewed(['forgotten', 'kept']);
    await page.getByText('2 findings').waitFor();
    const row = page.getByRole('listitem').filter({ hasText: 'forgotten' });
    expect(await row.textContent()).toContain('Never used');

    await page.getByRole('button', { name: 'Revoke: forgotten' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke token' }).click();

    await page.getByText('1 finding', { exact: true }).waitFor();
    const left = await tokens.list({ account: 'ada' });
    expect(left.tokens.map(({ name }) => name)).toEqual(['kept']);
  });

  it('tells that the service is away', async () => {
    const { page, goAway, comeBack } = await reviewed(['forgotten']);
    await page.getByText('1 finding', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Tokens' }).click();
    goAway();
    await page.getByRole('link', { name: 'Review' }).click();
    await page.getByText('The service does not answer.').waitFor();
    comeBack();

    await page.getByRole('button', { name: 'Try again' }).click();

    await page.getByText('1 finding', { exact: true }).waitFor();
  });

  it.each(LOOKS)('is without faults in $viewport.width pixels, $colorScheme', async (browser) => {
    const { page } = await reviewed(['forgotten', 'x'.repeat(200)], { browser });
    await page.getByText('2 findings').waitFor();

    expect(await faultsOf(page)).toEqual([]);
  });
});
