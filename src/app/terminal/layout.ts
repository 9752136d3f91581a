import type { ScopeDiff } from '../../scope/index.ts';

const LINE_WIDTH = 80;

/** A call, and what it prints. */
export interface Example {
  readonly call: string;
  readonly output: string;
}

/** Something that a command found and that should be fixed. */
export interface Finding {
  readonly code: string;
  readonly message: string;
  /** The lines that belong to it. */
  readonly below?: readonly string[];
}

/** A flag or an exit code with its explanation. */
export interface HelpRow {
  /** `--port NUMBER`. */
  readonly label: string;
  readonly text: string;
}

/** A flag that has a variable. */
export interface SettingRow extends HelpRow {
  /** Empty if there is none. */
  readonly variable: string;
}

/** Draws a table with titles. On a terminal, lines that are too wide for it are cut off. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [titles, ...rows];
  const widths = titles.map((_, i) => widest(lines.map((cells) => cells[i] ?? '')));
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

/** Draws rows in two columns, the labels padded to one width. */
export function columns(rows: readonly (readonly [label: string, text: string])[]): string {
  const width = widest(rows.map(([label]) => label));
  return rows.map(([label, text]) => `${label.padEnd(width)}  ${text}`.trimEnd()).join('\n');
}

/** Not `Math.max(...)`: a function takes only so many arguments. */
function widest(texts: readonly string[]): number {
  return texts.reduce((width, { length }) => Math.max(width, length), 0);
}

/** Puts a label beside the first of some lines. */
export function labeled(label: string, lines: readonly string[]): (readonly [string, string])[] {
  return lines.map((line, i) => [i === 0 ? label : '', line]);
}

/** Draws findings by their code, each with the lines that belong to it below. */
export function listFindings(findings: readonly Finding[]): string {
  const width = widest(findings.map(({ code }) => code));
  const rows = findings.flatMap(({ code, message, below = [] }) =>
    labeled(code, [...wrap(message, LINE_WIDTH - width - 2), ...below.map((line) => `  ${line}`)]),
  );
  return columns(rows);
}

/** Draws labels in one column, and wrapped texts beside them. */
export function helpRows(rows: readonly HelpRow[], width: number): string {
  return rows
    .flatMap(({ label, text }) => {
      const texts = wrap(text.replaceAll('\n', ' '), LINE_WIDTH - width - 4);
      return labeled(label, label.length > width ? ['', ...texts] : texts).map(([start, line]) =>
        `  ${start.padEnd(width)}  ${line}`.trimEnd(),
      );
    })
    .join('\n');
}

/** The width of the longest flag of a setting. */
const FLAG_WIDTH = 29;

/** Draws flags in one column, their variables beside them, and the texts below. */
export function settingRows(rows: readonly SettingRow[]): string {
  return rows
    .flatMap(({ label, text, variable }) => [
      `  ${label.padEnd(FLAG_WIDTH)}  ${variable}`.trimEnd(),
      ...wrap(text, LINE_WIDTH - 6).map((line) => `      ${line}`),
    ])
    .join('\n');
}

/** Draws the scopes that are added and removed, one in a line. */
export function diffLines({ added, removed }: ScopeDiff): string {
  return [...added.map((scope) => `+ ${scope}`), ...removed.map((scope) => `- ${scope}`)].join(
    '\n',
  );
}

/** Breaks a text into lines. */
export function wrap(text: string, width = LINE_WIDTH): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = `${lines.at(-1)} ${word}`.trimStart();
    if (line.length > width && lines.at(-1) !== '') lines.push(word);
    else lines[lines.length - 1] = line;
  }
  return lines;
}

/** Wraps paragraphs. A paragraph with two spaces in a row is laid out by hand, and stays. */
export function paragraphs(text: string, width = LINE_WIDTH): string {
  return text
    .split('\n\n')
    .map((part) =>
      /^ | {2}/m.test(part) ? part : wrap(part.replaceAll('\n', ' '), width).join('\n'),
    )
    .join('\n\n');
}

/** Wraps a usage such as `token get <ID> [--json]`, never within one of its parts. */
export function wrapUsage(parts: readonly string[]): string {
  const lines = [''];
  for (const part of parts) {
    const line = `${lines.at(-1)} ${part}`.replace(/^ (?=\S)/, '');
    if (line.length > LINE_WIDTH - 'tokenwright '.length) lines.push(`    ${part}`);
    else lines[lines.length - 1] = line;
  }
  return lines.join('\n');
}

/** Replaces the control characters of a text from outside, which could steer a terminal. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '?');
}

/** As {@link printable}, of a text of several lines. */
export function printableLines(text: string): string {
  return text.replaceAll(/[^\P{C}\n]|[\p{Zl}\p{Zp}]/gu, '?');
}

/** JSON for a terminal: characters that are not {@link printable} are written as `\uXXXX`. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, null, 2).replaceAll(/[^\P{C}\n]|[\p{Zl}\p{Zp}]/gu, (character) =>
    character.replaceAll(/./gs, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );
}

/** Draws a call and its output as a terminal shows them. */
export function showExample({ call, output }: Example): string {
  return indent(`$ tokenwright ${call}\n${output}`.trimEnd());
}

export function indent(text: string): string {
  return text.replaceAll(/^(?=.)/gm, '  ');
}
