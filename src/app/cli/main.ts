#!/usr/bin/env node
import packageJson from '../../../package.json' with { type: 'json' };
import { nearestName } from '../../scope/nearest.ts';
import { theLog } from '../server/logs/log.ts';
import { SERVE_FLAGS } from '../server/settings.ts';
import { describeError } from '../terminal/error-message.ts';
import { CliError, usageError } from '../terminal/errors.ts';
import {
  columns,
  indent,
  jsonText,
  paragraphs,
  printableLines,
  showExample,
  wrap,
} from '../terminal/layout.ts';
import { asksForHelp, type Command, endSoon, type Part } from './command.ts';
import { DOCS } from './commands/docs.ts';
import { EXPLAIN } from './commands/explain.ts';
import { COMMANDS, commandsOf, GROUPS, SERVICE_COMMANDS } from './commands/index.ts';

/** Prints an answer part by part: the texts below each other, or the elements of a JSON array. */
class Parts {
  readonly #write: (text: string) => Promise<void>;
  readonly #isJson: boolean;
  #count = 0;

  constructor(write: (text: string) => Promise<void>, isJson: boolean) {
    this.#write = write;
    this.#isJson = isJson;
  }

  async print({ text, json }: Part): Promise<void> {
    const start = this.#count === 0 ? '[' : ',';
    this.#count += 1;
    await this.#write(this.#isJson ? `${start}\n${indent(jsonText(json))}` : `${text}\n`);
  }

  async end(): Promise<void> {
    if (this.#isJson) await this.#write(this.#count === 0 ? '[]\n' : '\n]\n');
  }
}

const NEGATIVE = 3;

const SHOWN_FIRST: ReadonlySet<string> = new Set([
  'serve',
  'token issue',
  'scopes explain',
  'catalog from-openapi',
]);

/** The names of these commands in other tools. */
const SYNONYMS: ReadonlyMap<string, string> = new Map([
  ['show', 'get'],
  ['create', 'issue'],
  ['new', 'issue'],
  ['ls', 'list'],
  ['update', 'modify'],
  ['edit', 'modify'],
  ['delete', 'revoke'],
  ['remove', 'revoke'],
  ['rm', 'revoke'],
]);

const MORE_HELP = `Every command has --json. Its --help explains its flags, the JSON and its exit
codes.`;

await main(process.argv.slice(2));

async function main(words: readonly string[]): Promise<void> {
  try {
    await run(words);
  } catch (error) {
    theLog().fatal(describeError(error));
    process.exitCode = error instanceof CliError ? error.exitCode : 1;
    await theLog().close();
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
  let parts: Parts | undefined;
  const outcome = await known.run(words.slice(known.name.split(' ').length), (isJson) => {
    const all = new Parts(write, isJson);
    parts = all;
    return (part) => all.print(part);
  });
  if (outcome === undefined) return;
  const { notes, isNegative, isFailed, isJson } = outcome;
  if (isNegative === true) process.exitCode = NEGATIVE;
  if (isFailed === true) process.exitCode = 1;
  try {
    if ('isInParts' in outcome) await parts?.end();
    else await print(isJson ? jsonText(outcome.json) : outcome.text);
  } finally {
    // The notes may name a token that exists although its value could not be printed.
    if (notes !== undefined && !isJson) console.error(printableLines(notes));
  }
  endSoon();
}

function commandOf(words: readonly string[]): Command | undefined {
  return COMMANDS.find(({ name }) => name.split(' ').every((word, i) => word === words[i]));
}

/** Never repeats the word, which may be a password. */
function unknownCommand([first, second]: readonly string[]): CliError {
  if (first !== undefined && GROUPS.has(first)) {
    const names = commandsOf(first).map(({ name }) => name.slice(first.length + 1));
    return usageError(
      `a command is required after ${first}${hintOf(second, names)}: ${names.join(', ')}; see tokenwright ${first} --help`,
    );
  }
  const names = [
    ...SERVICE_COMMANDS.map(({ name }) => name),
    ...GROUPS.keys(),
    EXPLAIN.name,
    DOCS.name,
  ];
  const all = names.join(', ');
  const isFlag = Object.hasOwn(SERVE_FLAGS, first?.replace(/^--|=.*/g, '') ?? '');
  if (isFlag) {
    return usageError(
      'a command must come before the flags; did you mean tokenwright serve? See tokenwright --help',
    );
  }
  return first === undefined
    ? usageError(`a command is required: ${all}; see tokenwright --help`)
    : usageError(
        `this command is not known${hintOf(first, names)}; the commands are: ${all}; see tokenwright --help`,
      );
}

function hintOf(word: string | undefined, names: readonly string[]): string {
  const same = SYNONYMS.get(word ?? '');
  const isSame = same !== undefined && names.includes(same);
  const known = isSame || word === undefined ? same : nearestName(word, names);
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
${usageLines(SERVICE_COMMANDS)}

${groups.join('\n\n')}

help
${usageLines([EXPLAIN, DOCS])}
  tokenwright <command> --help  its settings or flags, and an example
  tokenwright <group> --help    the commands of a group, such as token
  tokenwright --version         the version

Examples
${COMMANDS.filter(({ name }) => SHOWN_FIRST.has(name))
  .map(({ example }) => showExample(example))
  .join('\n\n')}`;
}

function usageLines(commands: readonly Command[]): string {
  const rows = commands.flatMap(({ name, summary }) =>
    wrap(summary, 54).map((line, i) => [(i === 0 ? name : '').padEnd(20), line] as const),
  );
  return indent(columns(rows));
}

async function print(text: string): Promise<void> {
  if (text !== '') await write(`${text}\n`);
}

/**
 * Writes what is safe for a terminal, whatever a store or a service put into it. Ignores a reader that
 * stops early, such as `head`.
 */
async function write(text: string): Promise<void> {
  let onError: (error: NodeJS.ErrnoException) => void = () => {};
  const failure = await new Promise<NodeJS.ErrnoException | null | undefined>((resolve) => {
    onError = resolve;
    process.stdout.once('error', onError);
    process.stdout.write(printableLines(text), resolve);
  });
  // The stream emits the same error later.
  if (!failure) process.stdout.off('error', onError);
  else if (failure.code !== 'EPIPE') throw failure;
}
