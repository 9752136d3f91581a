// Makes the pictures of the guide: PICTURES=1 npm run vitest -- test/console/browser/pictures.test.ts
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, it } from 'vitest';
import { EXAMPLE_CATALOG } from '../../../src/cli/example-catalog.ts';
import type { TokenService } from '../../../src/index.ts';
import { ScopeCatalog } from '../../../src/scope/index.ts';
import { manualClock } from '../../../src/testing/index.ts';
import { hasChromium, openConsole, signIn } from './support.ts';

const FOLDER = join(import.meta.dirname, '../../../docs/pictures');
const DAY = 86_400;

/** A year in the life of an account, up to now. */
const clock = manualClock(new Date(Date.now() - 200 * DAY * 1000));

async function fill(tokens: TokenService): Promise<void> {
  const issue = (name: string, scopes: readonly string[], days: number) =>
    tokens.issue({ account: 'ada', name, scopes, ttlSeconds: days * DAY });
  const build = await issue('Nightly build', ['GET:*.acme.example/*'], 208);
  const report = await issue('Monthly report', ['*:billing.acme.example/*'], 290);
  const everything = await issue('Migration of 2025', ['*:*.acme.example/*'], 300);
  clock.advance(198 * DAY);
  const labels = await issue('Label printer', ['*:ship.acme.example/*'], 90);
  const used = [
    [build, 'GET', 'orders.acme.example', '/orders/7', 41],
    [build, 'GET', 'catalog.acme.example', '/products', 12],
    [report, 'GET', 'billing.acme.example', '/invoices', 3],
    [labels, 'POST', 'ship.acme.example', '/labels', 128],
  ] as const;
  for (const [{ value }, method, domain, target, uses] of used) {
    for (let use = 0; use < uses; use += 1) await tokens.verify(value, { method, domain, target });
  }
  await tokens.patch('ada', everything.id, { suspended: true });
  clock.advance(2 * DAY);
}

const SCREENS: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  list: async (page) => {
    await page.getByLabel('State').selectOption('all');
    await page.getByText('4 tokens shown').waitFor();
    await page.getByText('Expires soon').waitFor();
  },
  new: async (page) => {
    await page.getByRole('link', { name: 'New token' }).click();
    await page.getByLabel('Name', { exact: true }).fill('Warehouse export');
    await page.getByRole('button', { name: 'Read-only: orders.acme.example' }).click();
  },
  token: async (page) => {
    await page.getByRole('link', { name: 'Label printer' }).click();
    await page.getByRole('row').first().waitFor();
  },
  review: async (page) => {
    await page.getByRole('link', { name: 'Review' }).click();
    await page.getByText(/^\d+ findings$/).waitFor();
  },
};

const LOOKS = [
  { width: 1280, height: 800, colorScheme: 'light' },
  { width: 1280, height: 800, colorScheme: 'dark' },
  { width: 390, height: 800, colorScheme: 'light' },
  { width: 390, height: 800, colorScheme: 'dark' },
] as const;

describe.skipIf(!hasChromium || process.env['PICTURES'] === undefined)('pictures', () => {
  it('are made', { timeout: 300_000 }, async () => {
    const service = { catalog: ScopeCatalog.from(EXAMPLE_CATALOG), clock };
    const { page, tokens, context, close } = await openConsole({ service });
    const painter = await context.newPage();
    await fill(tokens);
    for (const { width, height, colorScheme } of LOOKS) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
      for (const [screen, show] of Object.entries(SCREENS)) {
        await page.evaluate('location.hash = "#/"');
        await page.reload();
        await signIn(page);
        await show(page);
        await page.mouse.move(0, 0);
        await page.evaluate('scrollTo(0, 0)');
        const picture = await asWebp(painter, await page.screenshot());
        writeFileSync(join(FOLDER, `console-${screen}-${width}-${colorScheme}.webp`), picture);
      }
    }
    await close();
  });
});

/** A quarter of the bytes of a PNG. The browser that looks at the page knows how to make it. */
async function asWebp(painter: Page, png: Buffer): Promise<Buffer> {
  const made = await painter.evaluate(`(async () => {
    const picture = new Image();
    picture.src = 'data:image/png;base64,${png.toString('base64')}';
    await picture.decode();
    const canvas = Object.assign(document.createElement('canvas'), {
      width: picture.width, height: picture.height,
    });
    canvas.getContext('2d').drawImage(picture, 0, 0);
    return canvas.toDataURL('image/webp', 0.8);
  })()`);
  return Buffer.from((made as string).split(',')[1] ?? '', 'base64');
}
