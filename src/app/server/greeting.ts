import type { AddressInfo } from 'node:net';
import type { FixedAccount } from '../../http/sign-in/basic-auth.ts';
import type { ScopeCatalog } from '../../scope/index.ts';
import { firstAccountFile } from './files/account-files.ts';
import { keyFileOf, otherKeysHint } from './files/key-file.ts';
import { urlOf } from './listen.ts';
import { CONSOLE } from './pages/console-page.ts';
import type { ServeSettings } from './settings.ts';

/** The facts that `serve` prints when it is ready. */
export interface GreetingFacts {
  readonly settings: ServeSettings;
  readonly catalog: ScopeCatalog;
  readonly storeName: string;
  /** Absent if uses are not recorded. */
  readonly usageName: string | undefined;
  readonly address: AddressInfo;
  readonly accounts: readonly FixedAccount[];
  /** The password of an account that was just made. */
  readonly password: string | undefined;
  /** Where the metrics are; absent if they are off. */
  readonly metricsAt: string | undefined;
}

/** What `serve` says when it is ready, for people and for programs. */
export interface Greeting {
  /** With a first call to copy. */
  readonly text: string;
  readonly message: string;
  /** The members of the message in a JSON log. */
  readonly members: Readonly<Record<string, unknown>>;
}

export function greeting(facts: GreetingFacts): Greeting {
  const { settings, catalog, storeName, usageName, address, accounts, password } = facts;
  const url = urlOf(address);
  return {
    text: textOf(facts, url),
    message: `tokenwright listens on ${url}`,
    members: {
      url,
      data: settings.data,
      keys: keyFileOf(settings),
      store: storeName,
      usage: usageName ?? null,
      scopes: catalog.size,
      accounts: accounts.map(({ username }) => username),
      console: settings.console === 'on' ? url + CONSOLE : null,
      pages: pathsOf(facts),
      ...(password !== undefined && { password }),
    },
  };
}

function textOf(facts: GreetingFacts, url: string): string {
  const { settings, catalog, storeName, usageName, accounts, password } = facts;
  const { data } = settings;
  const scopes = catalog.toArray();
  const first = scopes.find((scope) => scope.startsWith('GET:')) ?? scopes[0];
  const user = accounts[0]?.username ?? '';
  const credentials = password === undefined ? user : `${user}:${password}`;
  const keys = keyFileOf(settings);
  const other = otherKeysHint(keys);
  const source = settings.catalog.length === 0 ? ' of an example; give yours with --catalog' : '';
  return `tokenwright listens on ${url}

  data      ${data}
  keys      ${keys}${other === undefined ? '' : `; ${other}`}
  store     ${storeName}
  usage     ${usageName ?? 'not recorded'}
  catalog   ${catalog.size} scopes${source}
  accounts  ${accounts.map(({ username }) => username).join(', ')}${passwordNote(facts)}
  console   ${settings.console === 'on' ? url + CONSOLE : 'off'}
  also      ${pathsOf(facts).join(', ')}

${firstSteps(facts)}

  curl -u '${credentials}' -H 'Content-Type: application/json' \\
    -d '{"scopes":["${first}"],"ttl":3600}' ${url}/token
`;
}

/** Tells a person where to begin: with the console, if this start shows a password. */
function firstSteps({ settings, accounts, password }: GreetingFacts): string {
  if (settings.console === 'off' || password === undefined) return 'A first call:';
  return `Sign in to the console as ${accounts[0]?.username} with that password, or make a first call:`;
}

/** The paths that it serves besides those that manage tokens. */
function pathsOf({ settings, metricsAt }: GreetingFacts): string[] {
  const { introspection, revocation, derivation, docs } = settings;
  return [
    '/healthz',
    '/readyz',
    ...(metricsAt === undefined ? [] : [metricsAt]),
    ...(introspection.length > 0 ? ['/introspect'] : []),
    ...(revocation ? ['/revoke'] : []),
    ...(derivation ? ['/token/derive'] : []),
    ...(docs ? ['/docs'] : []),
  ];
}

function passwordNote({ settings, password }: GreetingFacts): string {
  if (settings.accounts.length > 0) return '';
  return password === undefined
    ? ` (its password was shown on the first start; for a new one delete ${firstAccountFile(settings.data)})`
    : `, password ${password} (made now, not shown again)`;
}
