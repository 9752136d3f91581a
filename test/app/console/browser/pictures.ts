// Pictures of the states that the tests visit. PICTURES=1 updates those of the guide, and
// PICTURES=folder writes one of each state to that folder.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';

const GUIDE = join(import.meta.dirname, '../../../../docs/pictures');
const WANTED = process.env['PICTURES'];

/** The states that the guide shows, with the names of their pictures. */
const OF_GUIDE: Readonly<Record<string, string>> = {
  'sign-in': 'sign-in',
  'list, in words': 'list',
  'permissions, one resource': 'new',
  value: 'value',
  'token, in words': 'token',
  review: 'review',
};

/** The permissions begin below the first 800 pixels. */
const HEIGHT_OF_FORM = 1200;

export interface Look {
  readonly width: number;
  readonly colorScheme: 'light' | 'dark';
}

/** Writes a picture of a state if PICTURES is set. */
export async function takePicture(page: Page, state: string, look: Look): Promise<void> {
  const { width, colorScheme } = look;
  if (WANTED === undefined) return;
  if (WANTED !== '1') {
    mkdirSync(WANTED, { recursive: true });
    const name = `${state.replaceAll(/[^a-z0-9]+/g, '-')}-${width}-${colorScheme}.png`;
    await page.screenshot({ path: join(WANTED, name), fullPage: true });
    return;
  }
  const name = OF_GUIDE[state];
  if (name === undefined || (width !== 1280 && width !== 390)) return;
  await page.setViewportSize({ width, height: name === 'new' ? HEIGHT_OF_FORM : 800 });
  await page.mouse.move(0, 0);
  await page.evaluate('scrollTo(0, 0)');
  const picture = await asWebp(page, await page.screenshot());
  writeFileSync(join(GUIDE, `console-${name}-${width}-${colorScheme}.webp`), picture);
}

/** WebP takes a quarter of the bytes of a PNG, and the browser of the tests can encode it. */
async function asWebp(page: Page, png: Buffer): Promise<Buffer> {
  const painter = await page.context().newPage();
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
  await painter.close();
  return Buffer.from((made as string).split(',')[1] ?? '', 'base64');
}
