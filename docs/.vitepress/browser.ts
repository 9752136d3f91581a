// Looks at the built site in a browser: contrast and names by axe, what does not fit the window, words that are
// broken, the home page above the fold, and a question to the search.
// Needs `npm run docs:build` and Chromium (CHROMIUM, else /usr/bin/chromium).
import { existsSync, globSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';

const PAGES = [
  '/',
  '/quick-start',
  '/concepts/token',
  '/guides/express',
  '/guides/console',
  '/service/settings',
  '/service/commands',
  '/service/http',
  '/errors',
  '/evidence/growth',
  '/comparison',
  '/faq',
  '/reference/http-guard',
  '/reference/http-middleware',
];
const WIDTHS = [1280, 390];
const THEMES = ['light', 'dark'] as const;

const DIST = new URL('dist/', import.meta.url).pathname;
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
};

const site = createServer(({ url = '/' }, response) => {
  const path = decodeURIComponent(new URL(url, 'http://site').pathname);
  const file = [`${path}index.html`, path, `${path}.html`]
    .map((name) => join(DIST, name))
    .find((name) => extname(name) !== '' && existsSync(name));
  if (file === undefined) return void response.writeHead(404).end();
  response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' });
  response.end(readFileSync(file));
});

/** What is wrong with a page, one line each. */
async function faultsOf(page: Page): Promise<string[]> {
  await page.addScriptTag({ content: AXE });
  const found = await page.evaluate(async () => {
    // biome-ignore lint/suspicious/noExplicitAny: axe puts itself into the window
    const { violations } = await (window as any).axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa'],
      // VitePress puts the link of a group into the button that opens it.
      rules: { 'nested-interactive': { enabled: false } },
    });
    return violations.flatMap(
      (rule: { id: string; nodes: { html: string; any: { message: string }[] }[] }) =>
        rule.nodes.map(
          ({ html, any }) => `${rule.id}: ${any[0]?.message ?? ''} ${html.slice(0, 120)}`,
        ),
    );
  });
  const cut = await page.evaluate(() =>
    [document.documentElement, ...document.querySelectorAll('.vp-doc pre, .vp-doc table')]
      .filter((part) => part.scrollWidth > part.clientWidth + 1)
      .map((part) => `does not fit: ${part.tagName} ${part.textContent?.trim().slice(0, 60)}`),
  );
  return [...found, ...cut];
}

/** The words of a page that are broken over two lines, code excepted. */
async function brokenWordsOn(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT, (node) => {
      const parent = node.parentElement;
      const isProse = parent?.closest('th, td, p, li, h1, h2, h3, h4, h5, h6, summary, a');
      return isProse && !parent?.closest('pre, code, script, style')
        ? NodeFilter.FILTER_ACCEPT
        : NodeFilter.FILTER_SKIP;
    });
    const broken: string[] = [];
    const range = document.createRange();
    while (texts.nextNode()) {
      const { data } = texts.currentNode as Text;
      for (const { 0: word, index } of data.matchAll(/[\p{L}\p{N}]+/gu)) {
        range.setStart(texts.currentNode, index);
        range.setEnd(texts.currentNode, index + word.length);
        const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
        if (lines.size > 1) broken.push(`breaks "${word}" in "${data.trim().slice(0, 60)}"`);
      }
    }
    return broken;
  });
}

/** What is wrong with the words of all pages. */
async function readAll(browser: Browser, base: string): Promise<number> {
  let count = 0;
  const paths = globSync('**/*.html', { cwd: DIST }).map((file) => `/${file.slice(0, -5)}`);
  for (const width of WIDTHS) {
    const page = await browser.newPage({ viewport: { width, height: 900 } });
    for (const path of paths) {
      await page.goto(base + path, { waitUntil: 'load' });
      const broken = await brokenWordsOn(page);
      count += broken.length;
      if (broken.length > 0) console.log(`${path} ${width}: ${broken.length} broken words`);
      for (const fault of new Set(broken)) console.log(`  ${fault}`);
    }
    await page.close();
  }
  console.log(`${count} broken words on ${paths.length * WIDTHS.length} views`);
  return count;
}

/** Whether the home page shows a program and the console at first sight, and the search answers. */
async function tryHome(browser: Browser, base: string): Promise<number> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(base, { waitUntil: 'networkidle' });
  const bottoms = await page.evaluate(() =>
    [...document.querySelectorAll('.first-look pre, .first-look img.only-light')].map(
      (part) => part.getBoundingClientRect().bottom,
    ),
  );
  await page.keyboard.press('/');
  await page.locator('.search-input').fill('how do I rotate a token');
  const first = await page.locator('.result').first().getAttribute('href');
  await page.addStyleTag({ content: 'p { max-width: 3em; word-break: break-all; }' });
  const control = await brokenWordsOn(page);
  await page.close();
  const faults = [
    ...(control.length > 0 ? [] : ['broken words are not found']),
    ...(bottoms.length === 2 && bottoms.every((bottom) => bottom < 900)
      ? []
      : [`the home page shows its program and picture down to ${bottoms.join(' and ')} px`]),
    ...(first?.includes('rotate') ? [] : [`the search answers with ${first}`]),
  ];
  for (const fault of faults) console.log(fault);
  return faults.length;
}

async function look(browser: Browser, base: string): Promise<number> {
  let count = 0;
  for (const theme of THEMES) {
    for (const width of WIDTHS) {
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: theme });
      for (const path of PAGES) {
        await page.goto(base + path, { waitUntil: 'networkidle' });
        const faults = await faultsOf(page);
        const height = await page.evaluate(() => document.documentElement.scrollHeight);
        count += faults.length;
        console.log(`${path} ${theme} ${width}: ${height} px tall, ${faults.length} faults`);
        for (const fault of new Set(faults)) console.log(`  ${fault.replaceAll(/\s+/g, ' ')}`);
      }
      await page.close();
    }
  }
  return count;
}

site.listen(0, '127.0.0.1');
const browser = await chromium.launch({
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
});
try {
  const { port } = site.address() as AddressInfo;
  const base = `http://127.0.0.1:${port}`;
  const count =
    (await tryHome(browser, base)) + (await readAll(browser, base)) + (await look(browser, base));
  console.log(`${count} faults on ${PAGES.length * WIDTHS.length * THEMES.length} views`);
  process.exitCode = count === 0 ? 0 : 1;
} finally {
  await browser.close();
  site.close();
}
