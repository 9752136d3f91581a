import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from 'playwright-core';
import { afterAll, expect, onTestFinished } from 'vitest';
import { type TokenConsoleOptions, tokenConsole } from '../../../../src/app/console/index.ts';
import { Sessions } from '../../../../src/app/server/sessions.ts';
import {
  fixedAccounts,
  type SignInWay,
  type TokenHandlerOptions,
  tokenHandler,
  toNodeListener,
} from '../../../../src/http/index.ts';
import {
  generateKey,
  MemoryTokenStore,
  TokenRequests,
  TokenService,
  type TokenServiceOptions,
} from '../../../../src/index.ts';
import type { EngineStore } from '../../../../src/ports/engine-store.ts';
import { SqliteTokenStore } from '../../../../src/stores/sqlite/index.ts';
import { manualClock } from '../../../../src/testing/index.ts';

export const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const FLAGS =
  '--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync';
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Without Chromium, tests of the page are skipped; with `CI=true` they fail instead. */
export const hasChromium = existsSync(CHROMIUM) || process.env['CI'] !== undefined;

/** One browser for all tests of a file. Each test has its own context. */
let launched: Promise<Browser> | undefined;
afterAll(async () => (await launched)?.close());

export const USERNAME = 'ada';
export const PASSWORD = 'correct horse battery';
/** Another account, with the same password. */
export const OTHER_USERNAME = 'bob';

/** A service with its console, and a browser that shows it. */
export interface Opened {
  readonly page: Page;
  readonly tokens: TokenService;
  /** The requests for tokens; fails if there are none. */
  readonly requests: () => TokenRequests;
  readonly context: BrowserContext;
  /** The address of the page. */
  readonly url: string;
  /** Closes all connections, and drops each new one until `comeBack` is called. */
  readonly goAway: () => void;
  readonly comeBack: () => void;
  /** Makes the service refuse all passwords from now on, or accept them again. */
  readonly setPasswordsRight: (areRight: boolean) => void;
  /** Closes everything, and fails if the page broke a rule that holds for every page. */
  readonly close: () => Promise<void>;
}

export interface OpenOptions {
  readonly service?: Partial<TokenServiceOptions> & { readonly store?: EngineStore };
  readonly browser?: BrowserContextOptions;
  /** How people sign in. @default with a password */
  readonly ways?: Ways;
  readonly console?: Partial<TokenConsoleOptions>;
  /** Lets bearers derive. @default false */
  readonly derivation?: boolean;
  /** Lets anybody ask for a token. @default false */
  readonly takesRequests?: boolean;
  /** A path prefix of the page and of the service. @default none */
  readonly prefix?: string;
}

type Ways = Pick<TokenHandlerOptions, 'authenticate' | 'session' | 'derivation' | 'oauth'>;

/** Signs in with the password. */
export const byPassword = fixedAccounts(
  [USERNAME, OTHER_USERNAME].map((username) => ({ username, password: PASSWORD })),
);

/** Signs in with the password, and then by a session of the service. */
export function bySession() {
  const clock = manualClock(new Date());
  const accounts = [USERNAME, OTHER_USERNAME].map((username) => ({ username, mark: 'password' }));
  const sessions = new Sessions({ leases: new MemoryTokenStore({ clock }).leases, clock });
  return {
    ways: { authenticate: byPassword, session: sessions.of([generateKey()], accounts) },
    clock,
    /** Ends all sessions, as by changed passwords. */
    endSessions: () => {
      for (const account of accounts) account.mark += '!';
    },
  };
}

const REQUESTS = { verificationUri: 'https://auth.example/approve', anonymous: true };

/** Starts a service and a browser, and opens the page. */
export async function openConsole({
  service,
  browser,
  ways = { authenticate: byPassword },
  console = {},
  derivation = false,
  takesRequests = false,
  prefix = '',
}: OpenOptions = {}): Promise<Opened> {
  const tokens = new TokenService({
    store: await SqliteTokenStore.open(':memory:'),
    usage: true,
    keys: [generateKey()],
    prefix: 'acme',
    ...service,
  });
  const requests = takesRequests ? new TokenRequests({ ...REQUESTS, tokens }) : undefined;
  const oauth = requests && { issuer: 'https://auth.example', requests };
  const { server, state } = serverOf(tokens, { ...ways, derivation, oauth }, prefix, console);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  launched ??= chromium.launch({ executablePath: CHROMIUM, args: FLAGS.split(' ') });
  const context = await (await launched).newContext(browser);
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const origin = `http://127.0.0.1:${port}`;
  const offenses = offensesOf(context, origin);
  const url = `${origin}${prefix}/console`;
  await page.goto(url);
  return {
    page,
    tokens,
    requests: () => {
      if (requests === undefined) throw new Error('this service takes no requests');
      return requests;
    },
    context,
    url,
    goAway: () => {
      state.isAway = true;
      server.closeAllConnections();
    },
    comeBack: () => {
      state.isAway = false;
    },
    setPasswordsRight: (areRight) => {
      state.arePasswordsRight = areRight;
    },
    close: async () => {
      const stored = await storedBy(page);
      await context.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await tokens.close();
      expect([...offenses, ...stored]).toEqual([]);
    },
  };
}

/** Like {@link openConsole}, and closes everything when the test ends. */
export async function openForTest(options: OpenOptions = {}): Promise<Opened> {
  const opened = await openConsole(options);
  onTestFinished(opened.close);
  return opened;
}

/** The service and its page, as one server whose outages the test controls. */
function serverOf(
  tokens: TokenService,
  { authenticate, session, derivation, oauth }: Ways,
  prefix: string,
  options: Partial<TokenConsoleOptions>,
) {
  const state = { isAway: false, arePasswordsRight: true };
  const ways: Pick<TokenHandlerOptions, 'authenticate' | 'session'> = {
    session,
    ...(authenticate && {
      authenticate: (credentials, request) =>
        state.arePasswordsRight ? authenticate(credentials, request) : null,
    }),
  };
  const toApi = toNodeListener(
    tokenHandler({
      tokens,
      basePath: `${prefix}/auth`,
      derivation,
      oauth,
      ...(ways as SignInWay),
    }),
  );
  const toPage = toNodeListener(
    tokenConsole({
      basePath: `${prefix}/console`,
      api: `${prefix}/auth`,
      brand: 'Acme',
      ...options,
    }),
  );
  const server = createServer((request, response) => {
    if (state.isAway) return void request.socket.destroy();
    const isPage = request.url?.startsWith(`${prefix}/console`) === true;
    return void (isPage ? toPage : toApi)(request, response);
  });
  return { server, state };
}

/** Collects what no page may do: break its policy, throw, or call another origin. */
function offensesOf(context: BrowserContext, origin: string): readonly string[] {
  const offenses: string[] = [];
  context.on('console', (message) => {
    if (/content security policy|trusted/i.test(message.text())) offenses.push(message.text());
  });
  context.on('weberror', (error) => offenses.push(String(error.error())));
  context.on('request', (request) => {
    if (request.isNavigationRequest() || !request.frame().url().startsWith(origin)) return;
    const { protocol, origin: called } = new URL(request.url());
    if (protocol !== 'data:' && called !== origin) offenses.push(`calls ${request.url()}`);
  });
  return offenses;
}

/** What the page has stored, so that it outlives the page. */
async function storedBy(page: Page): Promise<string[]> {
  if (page.isClosed()) return [];
  const stored = await page.evaluate(
    '[...Object.keys(localStorage), ...Object.keys(sessionStorage)]',
  );
  return (stored as string[]).map((name) => `stores ${name}`);
}

/** Whether a value is still in the page, its fields, its address or its storage. */
export async function keepsValue(page: Page, value: string): Promise<boolean> {
  const kept =
    await page.evaluate(`JSON.stringify([document.documentElement.outerHTML, location.href,
    history.state, document.title, { ...localStorage }, { ...sessionStorage }, document.cookie,
    [...document.querySelectorAll('input, textarea')].map((field) => field.value)])`);
  return String(kept).includes(value);
}

export async function signIn(page: Page, username: string = USERNAME): Promise<void> {
  await page.getByLabel('User name').fill(username);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Tokens', exact: true }).waitFor();
}

/** Presses the button with exactly this name. */
export function press(page: Page, name: string): Promise<void> {
  return page.getByRole('button', { name, exact: true }).click();
}

/** Opens the dialog that edits a token, with its scopes in view. */
export async function editScopes(page: Page): Promise<Locator> {
  await press(page, 'Edit');
  const dialog = page.getByRole('dialog', { name: 'Edit token' });
  await dialog.locator('summary').filter({ hasText: 'What the token may do' }).click();
  return dialog;
}

/** Rules whose result depends on widths and colors. */
const RULES_OF_LOOKS = ['color-contrast', 'target-size', 'scrollable-region-focusable'];

/** The faults that axe finds, and whether the page is wider than the window; empty if there are none. */
export async function faultsOf(page: Page, rules: 'all' | 'looks' = 'all'): Promise<string[]> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(AXE);
  return page.evaluate(
    async (runOnly) => {
      interface Violation {
        readonly id: string;
        readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
      }
      interface Axe {
        run(
          where: unknown,
          options: object,
        ): Promise<{ readonly violations: readonly Violation[] }>;
      }
      const { axe, document, innerWidth } = globalThis as unknown as {
        axe: Axe;
        document: { readonly documentElement: { readonly scrollWidth: number } };
        innerWidth: number;
      };
      const { violations } = await axe.run(document, { runOnly, resultTypes: ['violations'] });
      const { scrollWidth } = document.documentElement;
      return [
        ...violations.flatMap(({ id, nodes }) =>
          nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
        ),
        ...(scrollWidth > innerWidth ? [`${scrollWidth - innerWidth} pixels too wide`] : []),
      ];
    },
    rules === 'looks'
      ? { type: 'rule', values: RULES_OF_LOOKS }
      : {
          type: 'tag',
          values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
        },
  );
}

/** Widths and themes in which every screen is checked. */
export const LOOKS = [
  { viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
  { viewport: { width: 320, height: 640 }, colorScheme: 'dark' },
] as const satisfies readonly BrowserContextOptions[];
