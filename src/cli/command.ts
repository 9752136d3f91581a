import { type ParseArgsConfig, parseArgs } from 'node:util';
import { UsageError } from './settings.ts';

/** What a command found. */
export interface Outcome {
  /** For people, on standard output. */
  readonly text: string;
  /** For programs, on standard output in place of the text when `--json` is given. */
  readonly json: unknown;
  /** For people, on standard error; never with `--json`. */
  readonly notes?: string;
  /** Whether the answer is the one that a script branches on: the exit code is 3. */
  readonly isNegative?: boolean;
}

/** One of the commands: what it is called, how it is explained, what it does. */
export interface Command {
  /** As it is typed: `scopes explain`. */
  readonly name: string;
  /** What follows the name and the flags: `scopes explain <LIST> … [--catalog FILE...]`. */
  readonly usage: string;
  readonly summary: string;
  /** All of it in words, with the flags and an example. */
  readonly help: string;
  readonly example: Example;
  /**
   * Reads the words after the name, and does what they say. `undefined` from a command that prints
   * by itself.
   *
   * @throws {UsageError} when the words are not those of the command
   */
  run(words: readonly string[]): Promise<(Outcome & { readonly isJson: boolean }) | undefined>;
}

/** A call, and what it prints. */
export interface Example {
  readonly call: string;
  readonly output: string;
}

interface Flag {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: boolean;
  /** What its value is called. */
  readonly value?: string;
  readonly isRequired?: boolean;
  readonly help?: string;
}
type Flags = Readonly<Record<string, Flag>>;
type Given<F extends Flags> = ReturnType<typeof parseArgs<{ options: F }>>['values'];

interface Definition<F extends Flags> {
  readonly name: string;
  /** `LIST`; the last one may be `FILE...`, for one or more. */
  readonly operands: readonly string[];
  readonly summary: string;
  readonly about: string;
  readonly flags: F;
  /** What `--json` prints; absent where there is no such flag. */
  readonly json?: string;
  readonly exits?: string;
  readonly example: Example;
  run(operands: readonly string[], flags: Given<F>): Promise<Outcome | undefined>;
}

const LINE_WIDTH = 80;
/** More than a store may take to be closed. */
const END_MS = 5000;
const HELP_FLAG: Flag = { type: 'boolean', short: 'h', help: 'show this' };

/** Makes a command of its definition: all that can be said of every command is said here. */
export function command<const F extends Flags>(definition: Definition<F>): Command {
  const { name, summary, json, example } = definition;
  const flags: Flags = {
    ...definition.flags,
    ...(json !== undefined && { json: { type: 'boolean', help: `print JSON: ${json}` } }),
    help: HELP_FLAG,
  };
  const usage = [name, ...definition.operands.map((operand) => `<${operand}>`), ...usageOf(flags)];
  return {
    name,
    usage: usage.join(' '),
    summary,
    help: helpOf(definition, usage.join(' '), flags),
    example,
    async run(words) {
      const { values, operands } = readWords(words, definition, flags);
      const outcome = await definition.run(operands, values as Given<F>);
      return outcome && { ...outcome, isJson: values['json'] === true };
    },
  };
}

/** Rows as text, the columns but the last padded to one width. */
export function columns(rows: readonly (readonly [label: string, text: string])[]): string {
  const width = Math.max(0, ...rows.map(([label]) => label.length));
  return rows.map(([label, text]) => `${label.padEnd(width)}  ${text}`.trimEnd()).join('\n');
}

/** Words in lines of a width that is comfortable to read. */
export function wrap(text: string): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = `${lines.at(-1)} ${word}`.trimStart();
    if (line.length > LINE_WIDTH && lines.at(-1) !== '') lines.push(word);
    else lines[lines.length - 1] = line;
  }
  return lines;
}

/** A text from outside as a terminal may show it: without control characters. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '?');
}

/** A number of things: `1 token`, `2 tokens`. */
export function count(number: number, thing: string): string {
  return `${number} ${thing}${number === 1 ? '' : 's'}`;
}

/** Shows text as what somebody types and sees. */
export function showExample({ call, output }: Example): string {
  return indent(`$ tokenwright ${call}\n${output}`.trimEnd());
}

export function indent(text: string): string {
  return text.replaceAll(/^(?=.)/gm, '  ');
}

/**
 * Ends the process in some seconds when by then nothing keeps it but what cannot be closed: a
 * connection to a server that has stopped to answer.
 */
export function endSoon(): void {
  setTimeout(() => process.exit(), END_MS).unref();
}

function readWords<F extends Flags>(
  words: readonly string[],
  { name, operands: names }: Definition<F>,
  flags: Flags,
) {
  const see = `see tokenwright ${name} --help`;
  const { values, tokens } = parse(words, flags, names.length > 0, see);
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
      // `--catalog a.json b.json`, as a shell makes it of `--catalog *.json`.
      list.push(token.value);
    } else {
      throw new UsageError(`there is an argument too many, after <${names.at(-1)}>; ${see}`);
    }
  }
  const missing = operands.length < names.length ? names[operands.length] : undefined;
  if (missing !== undefined) throw new UsageError(`<${missing}> is missing; ${see}`);
  const unset = Object.keys(flags).find(
    (flag) => flags[flag]?.isRequired === true && values[flag] === undefined,
  );
  if (unset !== undefined) throw new UsageError(`--${unset} is required; ${see}`);
  const empty = operands.indexOf('');
  if (empty === -1) return { values, operands };
  throw new UsageError(`<${names[empty] ?? names.at(-1)}> is empty; ${see}`);
}

/** With `--help` the rest is not looked at: who asks for help may not have it right yet. */
export function asksForHelp(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  return words.slice(0, end === -1 ? undefined : end).some((word) => /^(?:--help|-h)$/.test(word));
}

function parse(words: readonly string[], flags: Flags, allowPositionals: boolean, see: string) {
  const options: NonNullable<ParseArgsConfig['options']> = flags;
  try {
    return parseArgs({ args: [...words], options, strict: true, allowPositionals, tokens: true });
  } catch (error) {
    const [message = ''] = (error as Error).message.split(/\. |\.?\n/);
    // An argument that is not expected may have been meant for a flag that takes a password.
    throw new UsageError(`${message.replace(/^(Unexpected argument) .*/, '$1')}; ${see}`);
  }
}

function helpOf<F extends Flags>(definition: Definition<F>, usage: string, flags: Flags): string {
  const { summary, about, exits, example } = definition;
  const rows = Object.entries(flags).flatMap(([name, { value = '', help }]) =>
    help === undefined ? [] : [[`--${name} ${value}`.trim(), help] as const],
  );
  const width = Math.max(...rows.map(([flag]) => flag.length));
  const flagLines = rows.flatMap(([flag, help]) =>
    help.split('\n').map((line, i) => `${(i === 0 ? flag : '').padEnd(width)}  ${line}`),
  );
  return [
    `tokenwright ${usage}`,
    `${summary[0]?.toUpperCase()}${summary.slice(1)}.${about === '' ? '' : `\n\n${about}`}`,
    ...(rows.length === 1 ? [] : [`Flags\n${indent(flagLines.join('\n'))}`]),
    ...(exits === undefined ? [] : [`Exit code\n${indent(exits)}`]),
    `Example\n${showExample(example)}`,
  ].join('\n\n');
}

function usageOf(flags: Flags): string[] {
  return Object.entries(flags).flatMap(([name, { value, help, multiple, isRequired }]) => {
    if (help === undefined || name === 'help') return [];
    const text = [`--${name}`, value].filter(Boolean).join(' ') + (multiple === true ? '...' : '');
    return isRequired === true ? text : `[${text}]`;
  });
}
