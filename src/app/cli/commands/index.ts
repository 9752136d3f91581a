import { ACCOUNT_HELP } from '../account/flags.ts';
import type { Command } from '../command.ts';
import { CATALOG_COMMANDS, FILE_HELP } from './catalog.ts';
import { CONTRACT, CONTRACT_HELP } from './contract.ts';
import { DOCS } from './docs.ts';
import { EXPLAIN } from './explain.ts';
import { KEYS_COMMANDS, KEYS_HELP } from './keys.ts';
import { LIST_HELP, SCOPES_COMMANDS } from './scopes.ts';
import { SERVE } from './serve.ts';
import { STORE_COMMANDS } from './store.ts';
import { TOKEN_COMMANDS } from './token.ts';

/** The commands of one word that work on the service and its store. */
export const SERVICE_COMMANDS: readonly Command[] = [SERVE, ...STORE_COMMANDS];

/** All commands, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  ...SERVICE_COMMANDS,
  ...TOKEN_COMMANDS,
  ...KEYS_COMMANDS,
  ...SCOPES_COMMANDS,
  ...CATALOG_COMMANDS,
  CONTRACT,
  EXPLAIN,
  DOCS,
];

/** The commands of two words, by the first word. */
export const GROUPS: ReadonlyMap<string, { readonly title: string; readonly about: string }> =
  new Map([
    ['token', { title: 'look after the tokens of an account', about: ACCOUNT_HELP }],
    ['keys', { title: 'look after the keys of a service', about: KEYS_HELP }],
    ['scopes', { title: 'look at lists of scopes', about: LIST_HELP }],
    ['catalog', { title: 'look at catalogs, the scopes that exist', about: FILE_HELP }],
    ['store', { title: 'prove a store', about: CONTRACT_HELP }],
  ]);

/** The commands that begin with a word, such as `token`. */
export function commandsOf(group: string): readonly Command[] {
  return COMMANDS.filter(({ name }) => name.startsWith(`${group} `));
}
