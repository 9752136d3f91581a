import { ACCOUNT_HELP } from '../account/flags.ts';
import type { Command } from '../command.ts';
import { CATALOG_COMMANDS, FILE_HELP } from './catalog.ts';
import { LIST_COMMANDS, LIST_HELP } from './catalog-lists.ts';
import { CATALOG_TEST } from './catalog-test.ts';
import { WORD_COMMANDS } from './catalog-words.ts';
import { completionOf } from './completion.ts';
import { DOCS } from './docs.ts';
import { IMPORT } from './import.ts';
import { KEYS_COMMANDS, KEYS_HELP } from './keys.ts';
import { SERVE } from './serve.ts';
import { STORE_COMMANDS } from './store.ts';
import { TOKEN_COMMANDS } from './token.ts';

/** What the commands of two words are about: their first word. */
export interface Noun {
  readonly title: string;
  readonly about: string;
  readonly commands: readonly Command[];
}

/** The nouns, in the order of the help. */
export const NOUNS: ReadonlyMap<string, Noun> = new Map([
  [
    'token',
    {
      title: 'Tokens of an account',
      about: ACCOUNT_HELP,
      commands: [...TOKEN_COMMANDS, IMPORT],
    },
  ],
  [
    'catalog',
    {
      title: 'Catalogs: the scopes that exist',
      about: `${FILE_HELP}\n\n${LIST_HELP}`,
      commands: [...CATALOG_COMMANDS, ...WORD_COMMANDS, ...LIST_COMMANDS, CATALOG_TEST],
    },
  ],
  ['keys', { title: 'Keys of a service', about: KEYS_HELP, commands: KEYS_COMMANDS }],
  [
    'store',
    {
      title: 'Stores: where tokens are kept',
      about: 'They work on the store that serve would use with the same flags and variables.',
      commands: STORE_COMMANDS,
    },
  ],
]);

const NOUN_COMMANDS = [...NOUNS.values()].flatMap(({ commands }) => commands);

/** The commands of one word. The last one completes all of them. */
export const PLAIN_COMMANDS: readonly Command[] = [
  SERVE,
  DOCS,
  completionOf([SERVE, ...NOUN_COMMANDS, DOCS]),
];

/** All commands, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  SERVE,
  ...NOUN_COMMANDS,
  ...PLAIN_COMMANDS.filter((each) => each !== SERVE),
];
