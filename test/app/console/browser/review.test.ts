import { describe, expect, it } from 'vitest';
import { ScopeCatalog } from '../../../../src/scope/index.ts';
import { manualClock } from '../../../../src/testing/index.ts';
import {
  faultsOf,
  hasChromium,
  LOOKS,
  type Opened,
  type OpenOptions,
  openForTest,
  signIn,
} from './support.ts';

const ORDERS = 'GET:api.shop.example/orders';
const catalog = ScopeCatalog.from([ORDERS, 'GET:api.shop.example/bills', 'GET:b.example/c']);

/** The review of an account whose tokens are 100 days old. */
async function reviewed(names: readonly string[], options: OpenOptions = {}): Promise<Opened> {
  const clock = manualClock(new Date());
  const opened = await openForTest({
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
  it('shows that there is nothing to do', async () => {
    const { page } = await reviewed([]);

    await page.getByText('Nothing to do').waitFor();
    expect(await faultsOf(page)).toEqual([]);
  });

  it('shows findings, and revokes a token from its finding', async () => {
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

  it('shows that the service is down, and loads on retry', async () => {
    const { page, goAway, comeBack } = await reviewed(['forgotten']);
    await page.getByText('1 finding', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Tokens' }).click();
    await page.getByRole('link', { name: 'forgotten' }).waitFor();
    goAway();
    await page.getByRole('link', { name: 'Review' }).click();
    await page.getByText('The service does not answer.').waitFor();
    expect(await page.getByText('Nothing to do').count()).toBe(0);
    comeBack();

    await page.getByRole('button', { name: 'Try again' }).click();

    await page.getByText('1 finding', { exact: true }).waitFor();
  });

  it.each(LOOKS)(
    'has no accessibility faults at $viewport.width px, $colorScheme',
    async (browser) => {
      const { page } = await reviewed(['forgotten', 'x'.repeat(200)], { browser });
      await page.getByText('2 findings').waitFor();

      expect(await faultsOf(page)).toEqual([]);
    },
  );
});
