#!/usr/bin/env node
import packageJson from '../../package.json' with { type: 'json' };
import { isTokenError } from '../errors.ts';
import { redact } from '../value.ts';
import { CATALOG_COMMANDS, FILE_HELP } from './catalog.ts';
import {
  asksForHelp,
  type Command,
  columns,
  command,
  endSoon,
  indent,
  paragraphs,
  printable,
  showExample,
  wrap,
} from './command.ts';
import { InputError } from './files.ts';
import { KEYS_COMMANDS, KEYS_HELP } from './keys.ts';
import { LIST_HELP, SCOPES_COMMANDS } from './scopes.ts';
import { nearest, readSettings, SERVE_OPTIONS, UsageError } from './settings.ts';
import { STORE_COMMANDS } from './store-commands.ts';
import { forTerminal } from './stores.ts';
import { TOKEN_COMMANDS, TOKEN_HELP } from './token.ts';

const NEGATIVE = 3;

const SERVE = command({
  name: 'serve',
  operands: [],
  summary: 'runs the token service, on an embedded SQLite file or a database',
  about: `Settings                                                     (environment)
  --port NUMBER        where to listen; default 8787           PORT
  --host NAME          default 127.0.0.1                       TOKENWRIGHT_HOST
  --data FOLDER        keys, and the SQLite file; default ./data
                                                               TOKENWRIGHT_DATA
  --store URL          a database for the tokens: postgres://, mysql://,
                       mariadb://, redis://, rediss:// or
                       redis+cluster://host,host. Those of Redis may end in
                       ?replicas=1: so many must have a write. sqlite:FILE is
                       another SQLite file                     TOKENWRIGHT_STORE
  --table NAME         the table, for Redis what keys begin with
                                                               TOKENWRIGHT_TABLE
  --keys FILE          keys that are there, instead of keys.json of the data,
                       which is made on the first start. Services on one
                       store need the same keys                TOKENWRIGHT_KEYS
  --catalog FILE       the scopes that exist: a JSON array of scopes, an OpenAPI
                       document in JSON or YAML, or a folder of these;
                       repeatable. Default: an example
                                              TOKENWRIGHT_CATALOG, with commas
  --account USER:PASSWORD
                       who may call the service; repeatable. Flags show in
                       process lists: prefer the variable
                                             TOKENWRIGHT_ACCOUNTS, with commas
  --prefix TEXT        what values begin with; default tw    TOKENWRIGHT_PREFIX
  --reveal WHEN        whether values can be shown again: once or always;
                       default always                        TOKENWRIGHT_REVEAL
  --max-stale-ms MS    how old may be what is checked from memory, 0 to 60000;
                       default 0: nothing is           TOKENWRIGHT_MAX_STALE_MS
  --introspection USER:PASSWORD
                       a resource server that may ask about values, at
                       /introspect (RFC 7662); repeatable. Prefer the variable
                                        TOKENWRIGHT_INTROSPECTION, with commas
  --revocation         bearers may revoke their token, at /revoke (RFC 7009)
                                                  TOKENWRIGHT_REVOCATION=true
  --docs               a reference page at /docs; needs the package
                       swagger-ui-dist                  TOKENWRIGHT_DOCS=true
  --path-tokens WHICH  what stands for a token in an address: any, or id-only,
                       since addresses end up in logs TOKENWRIGHT_PATH_TOKENS
  --client-header NAME behind a proxy: the header in which it names the client,
                       as X-Real-IP. Without it all of its callers count as one
                       when passwords are wrong     TOKENWRIGHT_CLIENT_HEADER
  --accept-legacy-body take what older clients send
                                         TOKENWRIGHT_ACCEPT_LEGACY_BODY=true

A flag wins over its variable. A call has 15 s for its headers, of 16 KiB at most, and 30 s
for all of it. Of wrong passwords, 100 for a user from one address are answered in 15 minutes, and
1000 from one address; after that it has to wait. A variable that begins with TOKENWRIGHT_ and is
none of these, nor of the other commands, is refused.

To stop it, press Ctrl-C or send SIGTERM: it takes no new connections, answers what is in flight,
for ten seconds at most, closes the store, and ends with 0. Where a supervisor does that, start
node_modules/.bin/tokenwright serve, not npx: on SIGTERM npx ends, and leaves the service behind.`,
  flags: SERVE_OPTIONS,
  example: {
    call: 'serve --catalog openapi.json --port 8787',
    output: 'tokenwright listens on http://127.0.0.1:8787',
  },
  async run(_, flags) {
    // Only when it is asked for: the other commands need no database, and start sooner.
    const { serve } = await import('./serve.ts');
    await serve(readSettings(flags, process.env));
    return undefined;
  },
});

const COMMANDS: readonly Command[] = [
  SERVE,
  ...STORE_COMMANDS,
  ...TOKEN_COMMANDS,
  ...KEYS_COMMANDS,
  ...SCOPES_COMMANDS,
  ...CATALOG_COMMANDS,
];

/** The commands of two words, by their first one. */
const GROUPS: ReadonlyMap<string, { readonly title: string; readonly about: string }> = new Map([
  ['token', { title: 'look after the tokens of an account', about: TOKEN_HELP }],
  ['keys', { title: 'look after the keys of a service', about: KEYS_HELP }],
  ['scopes', { title: 'look at lists of scopes', about: LIST_HELP }],
  ['catalog', { title: 'look at catalogs, the scopes that exist', about: FILE_HELP }],
]);

const SHOWN_FIRST: ReadonlySet<string> = new Set([
  'token issue',
  'scopes explain',
  'catalog from-openapi',
]);

const MORE_HELP = `All of them take --json. With --help each tells its flags, what the JSON holds,
its exit codes.`;

await main(process.argv.slice(2));

async function main(words: readonly string[]): Promise<void> {
  try {
    await run(words);
  } catch (error) {
    const isExpected =
      error instanceof UsageError ||
      error instanceof InputError ||
      isTokenError(error) ||
      isSystemError(error);
    console.error(oneLine(`tokenwright: ${isExpected ? forTerminal(error.message) : error}`));
    process.exitCode = error instanceof UsageError ? 2 : 1;
    endSoon();
  }
}

async function run(words: readonly string[]): Promise<void> {
  const [first, ...rest] = words;
  if (first === '--version' || first === '-v') return print(packageJson.version);
  if (first === 'help') return print(helpOn(rest));
  if (asksForHelp(words)) return print(helpOn(words));
  const known = commandOf(words);
  if (known === undefined) throw unknownCommand(words);
  const outcome = await known.run(words.slice(known.name.split(' ').length));
  if (outcome === undefined) return;
  const { text, json, notes, isNegative, isJson } = outcome;
  if (isNegative === true) process.exitCode = NEGATIVE;
  try {
    await print(isJson ? JSON.stringify(json, null, 2) : text);
  } finally {
    // Also when there was no room for the rest: they may name a token that was made all the same.
    if (notes !== undefined && !isJson) console.error(notes);
  }
  endSoon();
}

function commandOf(words: readonly string[]): Command | undefined {
  return COMMANDS.find(({ name }) => name.split(' ').every((word, i) => word === words[i]));
}

/** Never repeats what was typed: it may have been meant for a flag that takes a password. */
function unknownCommand([first, second]: readonly string[]): UsageError {
  if (first !== undefined && GROUPS.has(first)) {
    const names = commandsOf(first).map(({ name }) => name.slice(first.length + 1));
    return new UsageError(
      `a command is required after ${first}${hintOf(second, names)}: ${names.join(', ')}; see tokenwright ${first} --help`,
    );
  }
  const names = [...[SERVE, ...STORE_COMMANDS].map(({ name }) => name), ...GROUPS.keys()];
  const all = names.join(', ');
  return first === undefined
    ? new UsageError(`a command is required: ${all}; see tokenwright --help`)
    : new UsageError(
        `this command is not known${hintOf(first, names)}; the commands are: ${all}; see tokenwright --help`,
      );
}

function hintOf(word: string | undefined, names: readonly string[]): string {
  const known = word === undefined ? undefined : nearest(word, names);
  return known === undefined ? '' : ` (did you mean ${known}?)`;
}

function helpOn(words: readonly string[]): string {
  const known = commandOf(words);
  if (known !== undefined) return known.help;
  const [name, ...others] = words.filter((word) => !word.startsWith('-'));
  if (name === undefined) return mainHelp();
  const group = others.length === 0 ? GROUPS.get(name) : undefined;
  if (group === undefined) throw unknownCommand(words);
  const parts = commandsOf(name).map(
    ({ usage, summary, example }) =>
      `tokenwright ${usage}\n${indent(`${paragraphs(summary, 78)}\n\n${showExample(example)}`)}`,
  );
  const title = `tokenwright ${name}: ${group.title}`;
  return [title, ...parts, paragraphs(group.about), MORE_HELP].join('\n\n');
}

function mainHelp(): string {
  const groups = [...GROUPS].map(
    ([name, { title }]) => `${title}\n${usageLines(commandsOf(name))}`,
  );
  return `tokenwright ${packageJson.version}: scoped access tokens for your own backend

run the service, and look after its store
${usageLines([SERVE, ...STORE_COMMANDS])}

${groups.join('\n\n')}

help
  tokenwright <command> --help  its settings or flags, and an example
  tokenwright <group> --help    the commands of token, keys, scopes or catalog
  tokenwright --version         the version

Examples
${[SERVE, ...COMMANDS.filter(({ name }) => SHOWN_FIRST.has(name))]
  .map(({ example }) => showExample(example))
  .join('\n\n')}`;
}

function commandsOf(group: string): readonly Command[] {
  return COMMANDS.filter(({ name }) => name.startsWith(`${group} `));
}

function usageLines(commands: readonly Command[]): string {
  const rows = commands.flatMap(({ name, summary }) =>
    wrap(summary, 54).map((line, i) => [(i === 0 ? name : '').padEnd(20), line] as const),
  );
  return indent(columns(rows));
}

/** A reader that has had enough, as `head`, is no fault. */
async function print(text: string): Promise<void> {
  if (text === '') return;
  const failure = await new Promise<NodeJS.ErrnoException | null | undefined>((resolve) => {
    process.stdout.once('error', resolve);
    process.stdout.write(`${text}\n`, resolve);
  });
  if (failure && failure.code !== 'EPIPE') throw failure;
}

/**
 * As one line that shows no value of a token and no password of a URL, whatever was typed or read.
 * What a URL should look like may be shown.
 */
function oneLine(text: string): string {
  const line = printable(text.replaceAll(/\s+/g, ' '));
  return redact(line).split(' ').map(withoutCredentials).join(' ');
}

function isSystemError(error: unknown): error is Error {
  return error instanceof Error && 'syscall' in error;
}

function withoutCredentials(word: string): string {
  const start = word.indexOf('://') + 3;
  const end = word.lastIndexOf('@');
  const isShown = start === 2 || end < start || word.slice(start, end) === 'user:password';
  return isShown ? word : `${word.slice(0, start)}***${word.slice(end)}`;
}
