import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import { afterAll } from 'vitest';
import { tokenConsole } from '../../../src/console/index.ts';
import {
  fixedAccounts,
  type TokenHandlerOptions,
  tokenHandler,
  toNodeListener,
} from '../../../src/http/index.ts';
import {
  generateKey,
  MemoryTokenStore,
  TokenService,
  type TokenServiceOptions,
} from '../../../src/index.ts';

const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const FLAGS =
  '--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync';
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Without Chromium, tests of the page are skipped. */
export const hasChromium = existsSync(CHROMIUM);

/** One for all tests of a file, each of which has a context of its own in it. */
let launched: Promise<Browser> | undefined;
afterAll(async () => (await launched)?.close());

export const USERNAME = 'ada';
export const PASSWORD = 'correct horse battery';

/** A service with its console, and a browser that looks at it. */
export interface Opened {
  readonly page: Page;
  readonly tokens: TokenService;
  readonly context: BrowserContext;
  /** The address of the page. */
  readonly url: string;
  readonly close: () => Promise<void>;
}

export interface OpenOptions {
  readonly service?: Partial<TokenServiceOptions>;
  readonly browser?: BrowserContextOptions;
  /** How people sign in. @default with a password */
  readonly ways?: Pick<TokenHandlerOptions, 'authenticate' | 'session'>;
}

/** Signs in with the password. */
export const byPassword = fixedAccounts([{ username: USERNAME, password: PASSWORD }]);

/** Starts a service and a browser, and shows the page where it asks to sign in. */
export async function openConsole({
  service,
  browser,
  ways = { authenticate: byPassword },
}: OpenOptions = {}): Promise<Opened> {
  const tokens = new TokenService({
    store: new MemoryTokenStore(),
    keys: [generateKey()],
    prefix: 'acme',
    ...service,
  });
  const api = tokenHandler({ tokens, basePath: '/auth', ...ways });
  const toApi = toNodeListener(api);
  const toPage = toNodeListener(
    tokenConsole({ basePath: '/console', api: '/auth', brand: 'Acme' }),
  );
  const server = createServer((request, response) => {
    const isPage = request.url?.startsWith('/console') === true;
    (isPage ? toPage : toApi)(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  launched ??= chromium.launch({ executablePath: CHROMIUM, args: FLAGS.split(' ') });
  const context = await (await launched).newContext(browser);
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const url = `http://127.0.0.1:${port}/console`;
  await page.goto(url);
  return {
    page,
    tokens,
    context,
    url,
    close: async () => {
      await context.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await tokens.close();
    },
  };
}

export async function signIn(page: Page): Promise<void> {
  await page.getByLabel('User name').fill(USERNAME);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Tokens', exact: true }).waitFor();
}

/** What axe finds wrong with what is shown, and whether it is wider than the window; empty if all is well. */
export async function faultsOf(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    interface Violation {
      readonly id: string;
      readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
    }
    interface Axe {
      run(where: unknown, options: object): Promise<{ readonly violations: readonly Violation[] }>;
    }
    const { axe, document, innerWidth } = globalThis as unknown as {
      axe: Axe;
      document: { readonly documentElement: { readonly scrollWidth: number } };
      innerWidth: number;
    };
    const { violations } = await axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    });
    const { scrollWidth } = document.documentElement;
    return [
      ...violations.flatMap(({ id, nodes }) =>
        nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
      ),
      ...(scrollWidth > innerWidth ? [`${scrollWidth - innerWidth} pixels too wide`] : []),
    ];
  });
}

/** Widths and themes in which every screen has to be right. */
export const LOOKS = [
  { viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
  { viewport: { width: 320, height: 640 }, colorScheme: 'dark' },
] as const satisfies readonly BrowserContextOptions[];
