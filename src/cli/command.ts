import { type ParseArgsConfig, parseArgs } from 'node:util';
import { checkVariables, nearest, UsageError } from './settings.ts';

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
  /** `LIST`; `URL?` may be absent, as all after it; the last one may be `FILE...`, for one or more. */
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
  const usage = usageLines([
    name,
    ...definition.operands.map((operand) =>
      operand.endsWith('?') ? `[<${operand.slice(0, -1)}>]` : `<${operand}>`,
    ),
    ...usageOf(flags),
  ]);
  return {
    name,
    usage,
    summary,
    help: helpOf(definition, usage, flags),
    example,
    async run(words) {
      const { values, operands } = readWords(words, definition, flags);
      checkVariables(process.env);
      const outcome = await definition.run(operands, values as Given<F>);
      return outcome && { ...outcome, isJson: values['json'] === true };
    },
  };
}

/** A table with a title over each column. On a terminal, what is too wide for it is cut off. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [titles, ...rows];
  const widths = titles.map((_, i) => Math.max(...lines.map((cells) => cells[i]?.length ?? 0)));
  const { isTTY, columns: room = LINE_WIDTH } = process.stdout;
  return lines
    .map((cells) =>
      cells
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .map((line) => (isTTY && line.length > room ? `${line.slice(0, room - 1)}…` : line))
    .join('\n');
}

/** Rows as text, the columns but the last padded to one width. */
export function columns(rows: readonly (readonly [label: string, text: string])[]): string {
  const width = Math.max(0, ...rows.map(([label]) => label.length));
  return rows.map(([label, text]) => `${label.padEnd(width)}  ${text}`.trimEnd()).join('\n');
}

/** What was found, by its code, with what belongs to it below. */
export function listFindings(
  findings: readonly {
    readonly code: string;
    readonly message: string;
    readonly below?: readonly string[];
  }[],
): string {
  const width = Math.max(0, ...findings.map(({ code }) => code.length));
  const rows = findings.flatMap(({ code, message, below = [] }) =>
    [...wrap(message, LINE_WIDTH - width - 2), ...below.map((line) => `  ${line}`)].map(
      (line, i) => [i === 0 ? code : '', line] as const,
    ),
  );
  return columns(rows);
}

/** Words in lines of a width that is comfortable to read. */
export function wrap(text: string, width = LINE_WIDTH): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = `${lines.at(-1)} ${word}`.trimStart();
    if (line.length > width && lines.at(-1) !== '') lines.push(word);
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
      throw new UsageError(
        `there is an argument too many, after <${names.at(-1)?.replace('?', '')}>; ${see}`,
      );
    }
  }
  const missing = names[operands.length];
  if (missing?.endsWith('?') === false) throw new UsageError(`<${missing}> is missing; ${see}`);
  const unset = Object.keys(flags).find(
    (flag) => flags[flag]?.isRequired === true && values[flag] === undefined,
  );
  if (unset !== undefined) throw new UsageError(`--${unset} is required; ${see}`);
  const empty = operands.indexOf('');
  if (empty === -1) return { values, operands };
  throw new UsageError(`<${(names[empty] ?? names.at(-1))?.replace('?', '')}> is empty; ${see}`);
}

/** With `--help` the rest is not looked at: who asks for help may not have it right yet. */
export function asksForHelp(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  return words.slice(0, end === -1 ? undefined : end).some((word) => /^(?:--help|-h)$/.test(word));
}

function parse(words: readonly string[], flags: Flags, allowPositionals: boolean, see: string) {
  const options: NonNullable<ParseArgsConfig['options']> = flags;
  try {
    const args = withNumbers(words, flags);
    return parseArgs({ args, options, strict: true, allowPositionals, tokens: true });
  } catch (error) {
    const [message = ''] = (error as Error).message.split(/\. |\.?\n/);
    const unknown = /^Unknown option '--([^']+)'$/.exec(message)?.[1];
    const known = unknown === undefined ? undefined : nearest(unknown, Object.keys(flags));
    const hint = known === undefined ? '' : `; did you mean --${known}?`;
    // An argument that is not expected may have been meant for a flag that takes a password.
    throw new UsageError(`${message.replace(/^(Unexpected argument) .*/, '$1')}${hint}; ${see}`);
  }
}

/** `--port -1` as `--port=-1`: a number below zero is no flag, and what reads it says what it must be. */
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

/** A usage in lines that fit a terminal; what belongs together stays in one. */
function usageLines(parts: readonly string[]): string {
  const lines = [''];
  for (const part of parts) {
    const line = `${lines.at(-1)} ${part}`.replace(/^ (?=\S)/, '');
    if (line.length > LINE_WIDTH - 'tokenwright '.length) lines.push(`    ${part}`);
    else lines[lines.length - 1] = line;
  }
  return lines.join('\n');
}

/** Paragraphs in lines that fit a terminal. What is laid out, with two spaces somewhere, stays. */
export function paragraphs(text: string, width = LINE_WIDTH): string {
  return text
    .split('\n\n')
    .map((part) =>
      /^ | {2}/m.test(part) ? part : wrap(part.replaceAll('\n', ' '), width).join('\n'),
    )
    .join('\n\n');
}

function helpOf<F extends Flags>(definition: Definition<F>, usage: string, flags: Flags): string {
  const { summary, about, exits, example } = definition;
  const rows = Object.entries(flags).flatMap(([name, { value = '', help }]) =>
    help === undefined ? [] : [[`--${name} ${value}`.trim(), help] as const],
  );
  const width = Math.max(...rows.map(([flag]) => flag.length));
  const room = LINE_WIDTH - width - 4;
  const flagLines = rows.flatMap(([flag, help]) =>
    wrap(help.replaceAll('\n', ' '), room).map(
      (line, i) => `${(i === 0 ? flag : '').padEnd(width)}  ${line}`,
    ),
  );
  return [
    `tokenwright ${usage}`,
    paragraphs(`${summary[0]?.toUpperCase()}${summary.slice(1)}.`),
    ...(about === '' ? [] : [paragraphs(about)]),
    ...(rows.length === 1 ? [] : [`Flags\n${indent(flagLines.join('\n'))}`]),
    ...(exits === undefined ? [] : [`Exit code\n${indent(exitLines(exits))}`]),
    `Example\n${showExample(example)}`,
  ].join('\n\n');
}

function exitLines(exits: string): string {
  return exits
    .split('\n')
    .map((line) => `${line.slice(0, 3)}${wrap(line.slice(3), LINE_WIDTH - 5).join('\n   ')}`)
    .join('\n');
}

function usageOf(flags: Flags): string[] {
  return Object.entries(flags).flatMap(([name, { value, help, multiple, isRequired }]) => {
    if ((help ?? value) === undefined || name === 'help') return [];
    const text = [`--${name}`, value].filter(Boolean).join(' ') + (multiple === true ? '...' : '');
    return isRequired === true ? text : `[${text}]`;
  });
}
