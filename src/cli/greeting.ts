import type { AddressInfo } from 'node:net';
import type { FixedAccount } from '../http/basic-auth.ts';
import type { ScopeCatalog } from '../scope/index.ts';
import { firstAccountFile } from './account-files.ts';
import { keyFile, otherKeys } from './key-file.ts';
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
}

/** The text that `serve` prints when it is ready, with a first call to copy. */
export function greeting(facts: GreetingFacts): string {
  const { settings, catalog, storeName, usageName, address, accounts, password } = facts;
  const { data } = settings;
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  const url = `http://${host}:${address.port}`;
  const scopes = catalog.toArray();
  const first = scopes.find((scope) => scope.startsWith('GET:')) ?? scopes[0];
  const user = accounts[0]?.username ?? '';
  const credentials = password === undefined ? user : `${user}:${password}`;
  const keys = settings.keys ?? keyFile(data);
  const other = otherKeys(keys);
  const source = settings.catalog.length === 0 ? ' of an example; give yours with --catalog' : '';
  return `tokenwright listens on ${url}

  data      ${data}
  keys      ${keys}${other === undefined ? '' : `; ${other}`}
  store     ${storeName}
  usage     ${usageName ?? 'not recorded'}
  catalog   ${catalog.size} scopes${source}
  accounts  ${accounts.map(({ username }) => username).join(', ')}${passwordNote(facts)}${pathsLine(settings)}

A first call:

  curl -u '${credentials}' -H 'Content-Type: application/json' \\
    -d '{"scopes":["${first}"],"ttl":3600}' ${url}/token
`;
}

function pathsLine({ introspection, revocation, docs }: ServeSettings): string {
  const paths = [
    ...(introspection.length > 0 ? ['/introspect'] : []),
    ...(revocation ? ['/revoke'] : []),
    ...(docs ? ['/docs'] : []),
  ];
  return paths.length === 0 ? '' : `\n  also      ${paths.join(', ')}`;
}

function passwordNote({ settings, password }: GreetingFacts): string {
  if (settings.accounts.length > 0) return '';
  return password === undefined
    ? ` (its password was shown on the first start; for a new one delete ${firstAccountFile(settings.data)})`
    : `, password ${password} (made now, not shown again)`;
}
