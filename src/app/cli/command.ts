import { type ParseArgsConfig, parseArgs } from 'node:util';
import { nearestName } from '../../scope/nearest.ts';
import { count } from '../../text/wording.ts';
import { setTimeout } from '../../time/timers.ts';
import { theLog } from '../server/logs/log.ts';
import { isServiceLink } from '../server/setting-sources.ts';
import { VARIABLES } from '../server/settings.ts';
import { usageError } from '../terminal/errors.ts';
import {
  type Example,
  type Finding,
  helpRows,
  listFindings,
  paragraphs,
  showExample,
  wrapUsage,
} from '../terminal/layout.ts';
import { adviceOn, flagHint } from './synonyms.ts';

// Texts that the help of several token commands shares.

export const CLIENT_FAULT = 'the service or the store refused the call, or cannot be reached';
export const ABSENT = 'the account has no such token';

export const ID_HELP = `ID is the id of the token. With a store, its value works as well: give - and pass the value on
standard input, because arguments are visible in process lists.`;

export const TOKEN_JSON =
  'the token as in the answer of the service: { id, token, masked, scopes, state, createdAt, expire, version, pending?, parent?, name?, metadata?, limits?, createdBy?, purpose?, actor? }; times are UNIX seconds';

/** The result of a command, for people and for programs. */
export interface Outcome {
  /** Goes to standard output. */
  readonly text: string;
  /** Goes to standard output instead of the text, with `--json`. */
  readonly json: unknown;
  /** Goes to standard error, but not with `--json`. */
  readonly notes?: string;
  /** Makes the exit code 3: scripts branch on the answer. */
  readonly isNegative?: boolean;
  /** Makes the exit code 1: what was to be proved is not so. */
  readonly isFailed?: boolean;
}

/** One of many parts of an answer, for people and for programs. */
export type Part = Pick<Outcome, 'text' | 'json'>;

/**
 * Prints a part of an answer as soon as it is known, so that a long answer is not kept in memory.
 */
export type PrintPart = (part: Part) => Promise<void>;

/** The result of a command that has printed its answer in parts: with `--json`, as one array. */
export interface Ending extends Omit<Outcome, 'text' | 'json'> {
  readonly isInParts: true;
}

/** How a person wants an outcome printed. */
interface Presentation {
  readonly isJson: boolean;
  /** Whether the notes are left out. */
  readonly isQuiet: boolean;
}

/** A command that can be run and explained. */
export interface Command {
  /** The words that call it: `token get`. */
  readonly name: string;
  /** The name with its operands and flags: `token get <ID> [--json]`. */
  readonly usage: string;
  /** What it does, in a few words: a line of the help. */
  readonly summary: string;
  /** The names of its operands: `LIST`, `URL?`, `FILE...`. */
  readonly operands: readonly string[];
  readonly flags: Readonly<Record<string, Flag>>;
  /** The whole help: usage, summary, flags, exit codes and an example. */
  readonly help: string;
  readonly example: Example;
  /**
   * Reads the words after the name and runs the command. The result is `undefined` if the command
   * prints by itself.
   *
   * @throws {CliError} when the words are wrong
   */
  run(
    words: readonly string[],
    printerOf: (isJson: boolean) => PrintPart,
  ): Promise<((Outcome | Ending) & Presentation) | undefined>;
}

/** A flag of a command. */
export interface Flag {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: boolean;
  /** The name of its value. */
  readonly value?: string;
  /** All values that it takes. */
  readonly choices?: readonly string[];
  readonly isRequired?: boolean;
  readonly help?: string;
}
type Flags = Readonly<Record<string, Flag>>;
/** The flags as `parseArgs` gives them. */
export type Given<F extends Flags> = ReturnType<typeof parseArgs<{ options: F }>>['values'];

interface Definition<F extends Flags> {
  readonly name: string;
  /** `LIST` is required, `URL?` and all after it are optional; `FILE...`, at the end, repeats. */
  readonly operands?: readonly string[];
  readonly summary: string;
  readonly about: string;
  readonly flags: F;
  /** Describes the output of `--json`; without it there is no such flag. */
  readonly json?: string;
  /** The meaning of each exit code. That of 2 has a default. */
  readonly exits?: Readonly<Record<number, string>>;
  readonly example: Example;
  run(
    operands: readonly string[],
    flags: Given<F> & { readonly json?: boolean },
    print: PrintPart,
  ): Promise<Outcome | Ending | undefined>;
}

/** Longer than a store may take to close. */
const END_MS = 5000;
const HELP_FLAG: Flag = { type: 'boolean', short: 'h', help: 'show this' };
const QUIET_FLAG: Flag = { type: 'boolean', help: 'print no remarks on standard error' };

/** Builds a command from its definition: its usage, its help and the check of its words. */
export function command<const F extends Flags>(definition: Definition<F>): Command {
  const { name, operands = [], summary, json, example } = definition;
  const flags: Flags = {
    ...definition.flags,
    ...(json !== undefined && {
      json: { type: 'boolean', help: `print JSON: ${json}` },
      quiet: QUIET_FLAG,
    }),
    help: HELP_FLAG,
  };
  const usage = wrapUsage([
    name,
    ...operands.map((operand) =>
      operand.endsWith('?') ? `[<${operand.slice(0, -1)}>]` : `<${operand}>`,
    ),
    ...usageOf(flags),
  ]);
  return {
    name,
    usage,
    summary,
    operands,
    flags,
    help: helpOf(definition, usage, flags),
    example,
    async run(words, printerOf) {
      const { values, operands: given } = readWords(words, definition, flags);
      for (const warning of quoteWarnings(process.env)) theLog().warn(warning);
      checkVariables(process.env);
      const isJson = values['json'] === true;
      const outcome = await definition.run(given, values as Given<F>, printerOf(isJson));
      return outcome && { ...outcome, isJson, isQuiet: values['quiet'] === true };
    },
  };
}

/** Describes findings of a subject, such as a store. Finding something is a negative answer. */
export function findingsOutcome(
  findings: readonly Finding[],
  subject: string,
  listed: readonly Finding[] = findings,
): Outcome {
  const found = findings.length === 0 ? 'nothing found' : count(findings.length, 'finding');
  return {
    text: listFindings(listed),
    json: findings,
    notes: `${found} in ${subject}`,
    isNegative: findings.length > 0,
  };
}

/**
 * Ends the process in some seconds, even if something cannot be closed, such as a connection to a
 * server that has stopped answering.
 */
export function endSoon(): void {
  setTimeout(() => process.exit(), END_MS).unref();
}

function readWords<F extends Flags>(
  words: readonly string[],
  { name, operands: names = [] }: Definition<F>,
  flags: Flags,
) {
  const see = `see tokenwright ${name} --help`;
  const { values, tokens } = parseWords(words, flags, { name, allowPositionals: names.length > 0 });
  const isOpen = names.at(-1)?.endsWith('...') === true;
  const operands: string[] = [];
  let list: unknown;
  for (const token of tokens) {
    if (token.kind === 'option') list = flags[token.name]?.multiple && values[token.name];
    if (token.kind !== 'positional') continue;
    if (isOpen || operands.length < names.length) {
      operands.push(token.value);
      list = undefined;
    } else if (Array.isArray(list)) {
      // A shell expands `--catalog *.json` to `--catalog a.json b.json`.
      list.push(token.value);
    } else {
      throw usageError(`unexpected argument after <${names.at(-1)?.replace('?', '')}>; ${see}`);
    }
  }
  const missing = names[operands.length];
  if (missing?.endsWith('?') === false) throw usageError(`<${missing}> is missing; ${see}`);
  const unset = Object.keys(flags).find(
    (flag) => flags[flag]?.isRequired === true && values[flag] === undefined,
  );
  if (unset !== undefined) throw usageError(`--${unset} is required; ${see}`);
  const empty = operands.indexOf('');
  if (empty === -1) return { values, operands };
  throw usageError(`<${(names[empty] ?? names.at(-1))?.replace('?', '')}> is empty; ${see}`);
}

/**
 * Looks for a help flag anywhere: someone who asks for help may not have the other words right yet.
 */
export function asksForHelp(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  return words.slice(0, end === -1 ? undefined : end).some((word) => /^(?:--help|-h)$/.test(word));
}

function parseWords(
  words: readonly string[],
  flags: Flags,
  { name, allowPositionals }: { readonly name: string; readonly allowPositionals: boolean },
) {
  const options: NonNullable<ParseArgsConfig['options']> = flags;
  try {
    const args = withNumbers(words, flags);
    return parseArgs({ args, options, strict: true, allowPositionals, tokens: true });
  } catch (error) {
    const [message = ''] = (error as Error).message.split(/\. |\.?\n/);
    const unknown = /^Unknown option '(--?)([^']+)'$/.exec(message);
    // The unexpected argument may be a password: never repeat it.
    const fault = message.replace(/^(Unexpected argument) .*/, '$1');
    const text = unknown === null ? fault : unknownFlag(unknown, name, Object.keys(flags));
    throw usageError(`${text}${text.endsWith('?') ? ' See' : '; see'} tokenwright ${name} --help`);
  }
}

function unknownFlag(
  [, dashes = '', flag = '']: readonly string[],
  name: string,
  flags: readonly string[],
): string {
  const advice = adviceOn(dashes + flag);
  const hint = advice === undefined ? flagHint(flag, flags) : `: ${advice}`;
  return `${name} has no flag ${dashes}${flag}${hint}`;
}

/** Turns `--port -1` into `--port=-1`, so that the error says what a port must be. */
function withNumbers(words: readonly string[], flags: Flags): string[] {
  const args: string[] = [];
  for (const [i, word] of words.entries()) {
    const before = words[i - 1] ?? '';
    const isValue = before.startsWith('--') && flags[before.slice(2)]?.type === 'string';
    if (isValue && /^-\d/.test(word) && !words.slice(0, i).includes('--')) {
      args[args.length - 1] = `${before}=${word}`;
    } else {
      args.push(word);
    }
  }
  return args;
}

function helpOf<F extends Flags>(definition: Definition<F>, usage: string, flags: Flags): string {
  const { summary, about, exits, example } = definition;
  const rows = Object.entries(flags).flatMap(([name, { value = '', help }]) =>
    help === undefined ? [] : [{ label: `--${name} ${value}`.trim(), text: help }],
  );
  const width = Math.max(...rows.map(({ label }) => label.length));
  // JavaScript sorts integer keys, so 2 comes between 1 and 3.
  const exitRows = Object.entries({ 2: 'the command line is wrong', ...exits }).map(
    ([label, text]) => ({ label, text }),
  );
  return [
    `tokenwright ${usage}`,
    paragraphs(`${summary[0]?.toUpperCase()}${summary.slice(1)}.`),
    ...(about === '' ? [] : [paragraphs(about)]),
    ...(rows.length === 1 ? [] : [`Flags\n${helpRows(rows, width)}`]),
    ...(exits === undefined ? [] : [`Exit code\n${helpRows(exitRows, 1)}`]),
    `Example\n${showExample(example)}`,
  ].join('\n\n');
}

function usageOf(flags: Flags): string[] {
  return Object.entries(flags).flatMap(([name, { value, help, multiple, isRequired }]) => {
    if ((help ?? value) === undefined || name === 'help') return [];
    const text = [`--${name}`, value].filter(Boolean).join(' ') + (multiple === true ? '...' : '');
    return isRequired === true ? text : `[${text}]`;
  });
}

const PREFIX = 'TOKENWRIGHT_';

/**
 * Refuses a variable with our prefix that no command reads: a misspelled setting would be ignored,
 * and its default taken.
 *
 * @throws {CliError} naming the variable and the one that was meant, never its value
 */
export function checkVariables(environment: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith(PREFIX) || !value || VARIABLES.includes(name)) continue;
    if (isServiceLink(name, value)) continue;
    const ends = VARIABLES.map((variable) => variable.replace(PREFIX, ''));
    const meant = nearestName(name.slice(PREFIX.length), ends);
    const hint =
      meant === undefined
        ? 'see tokenwright serve --help for those that there are'
        : `did you mean ${VARIABLES[ends.indexOf(meant)]}?`;
    throw usageError(`no command knows the variable ${name}; ${hint}`);
  }
}

/** A password may have quotes of its own. */
const MAY_BE_QUOTED = 'TOKENWRIGHT_PASSWORD';

/**
 * One warning for each variable that is still in its quotes: a shell removes them, but an env file of
 * Docker, for example, keeps them. Never with its value.
 */
export function quoteWarnings(environment: Readonly<Record<string, string | undefined>>): string[] {
  return VARIABLES.filter((name) => name !== MAY_BE_QUOTED)
    .filter((name) => /^(["']).*\1$/s.test(environment[name] ?? ''))
    .map((name) => `${name} begins and ends with a quote, which counts as part of it: remove both`);
}
