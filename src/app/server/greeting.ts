import type { AddressInfo } from 'node:net';
import type { ScopeCatalog } from '../../scope/index.ts';
import { otherKeysHint } from './files/key-file.ts';
import type { FirstAccount } from './files/service-files.ts';
import { urlOf } from './listen.ts';
import type { Greeting } from './logs/log.ts';
import { CONSOLE, EXAMPLE } from './pages.ts';

/** The facts that `serve` prints when it is ready. */
export interface GreetingFacts {
  readonly address: AddressInfo;
  /** The data folder. */
  readonly data: string;
  readonly keyPath: string;
  readonly storeName: string;
  /** Absent if uses are not recorded. */
  readonly usageName: string | undefined;
  readonly catalog: ScopeCatalog;
  readonly isExample: boolean;
  /** Whether the service answers the calls of the example. */
  readonly isExampleOn: boolean;
  /** The names of those who may sign in. */
  readonly users: readonly string[];
  /** Absent if the accounts are given. */
  readonly firstAccount: FirstAccount | undefined;
  readonly hasConsole: boolean;
  /** The paths that it serves besides those that manage tokens. */
  readonly paths: readonly string[];
}

export function greeting(facts: GreetingFacts): Greeting {
  const { data, keyPath, storeName, usageName, catalog, users, hasConsole, paths } = facts;
  const url = urlOf(facts.address);
  const password = facts.firstAccount?.password;
  return {
    text: textOf(facts, url),
    message: `tokenwright listens on ${url}`,
    members: {
      url,
      data,
      keys: keyPath,
      store: storeName,
      usage: usageName ?? null,
      scopes: catalog.size,
      accounts: users,
      console: hasConsole ? url + CONSOLE : null,
      pages: paths,
      ...(password !== undefined && { password }),
    },
  };
}

function textOf(facts: GreetingFacts, url: string): string {
  const { data, keyPath, storeName, usageName, catalog, users, hasConsole } = facts;
  const scopes = catalog.toArray();
  const first = facts.isExample
    ? EXAMPLE_SCOPE
    : (scopes.find((scope) => scope.startsWith('GET:')) ?? scopes[0]);
  const user = users[0] ?? '';
  const password = facts.firstAccount?.password;
  const credentials = password === undefined ? user : `${user}:${password}`;
  const other = otherKeysHint(keyPath);
  const source = facts.isExample ? ' of an example; give yours with --catalog' : '';
  const steps =
    hasConsole && password !== undefined
      ? `Sign in to the console as ${user} with that password, or make a first call:`
      : 'A first call:';
  return `tokenwright listens on ${url}

  data      ${data}
  keys      ${keyPath}${other === undefined ? '' : `; ${other}`}
  store     ${storeName}
  usage     ${usageName ?? 'not recorded'}
  catalog   ${catalog.size} scopes${source}
  accounts  ${users.join(', ')}${passwordNote(facts.firstAccount)}
  console   ${hasConsole ? url + CONSOLE : 'off'}
  also      ${facts.paths.join(', ')}

${steps}

  curl -u '${credentials}' -H 'Content-Type: application/json' \\
    -d '{"scopes":["${first}"],"ttl":3600}' ${url}/token
${facts.isExampleOn ? exampleCall(url) : ''}`;
}

/** The scope of the first call, and the call that it allows, if the catalog is the example. */
const EXAMPLE_SCOPE = 'GET:orders.acme.example/orders';

function exampleCall(url: string): string {
  return `
Then use the token: run this, and paste the value that "token" has in the answer:

  read -rs TOKEN && curl -H "Authorization: Bearer $TOKEN" ${url}${EXAMPLE}/orders
`;
}

function passwordNote(first: FirstAccount | undefined): string {
  if (first === undefined) return '';
  return first.password === undefined
    ? ` (its password was shown on the first start; for a new one delete ${first.path})`
    : `, password ${first.password} (made now, not shown again)`;
}
