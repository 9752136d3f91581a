// How figures are written: in tables that are printed, or put into pages between two marks.
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');

export type Rows = readonly (readonly string[])[];

/** The first row is the head. */
export function table(rows: Rows): string {
  const [head = []] = rows;
  const lines = [head, head.map((_, i) => (i === 0 ? '---' : '---:')), ...rows.slice(1)];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

export function printTable(title: string, rows: Rows): void {
  console.log(`\n${title}\n\n${table(rows)}`);
}

/** Puts parts between the marks with this name. */
export function putInto(file: string, name: string, parts: readonly string[]): void {
  const path = join(ROOT, file);
  const page = readFileSync(path, 'utf8');
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${file} has no place for ${name}`);
  const text = parts.join('\n\n');
  writeFileSync(path, `${page.slice(0, from + begin.length)}\n\n${text}\n\n${page.slice(to)}`);
}

/** `12.3 µs`: three digits, in the unit that fits; no line breaks in it. */
export function timeText(us: number): string {
  if (us < 1) return `${digits(us * 1000)}\u00a0ns`;
  if (us < 1000) return `${digits(us)}\u00a0µs`;
  return us < 1_000_000 ? `${digits(us / 1000)}\u00a0ms` : `${digits(us / 1_000_000)}\u00a0s`;
}

export function digits(value: number): string {
  const places = Math.max(0, 2 - Math.max(0, Math.floor(Math.log10(value) + 1e-9)));
  return grouped(Number(value.toFixed(places)));
}

/** With a space between thousands. */
export function grouped(value: number): string {
  const [whole = '', part] = String(value).split('.');
  const text = whole.replace(/\B(?=(?:\d{3})+$)/g, '\u00a0');
  return part === undefined ? text : `${text}.${part}`;
}

export function today(): string {
  return new Date().toISOString().slice(0, 10);
}

/** What the figures are from. */
export function machine(): string {
  const memory = Math.round(totalmem() / 2 ** 30);
  const node = `Node.js ${process.versions.node} on ${process.platform}`;
  return `${cpus().length} cores (${cpus()[0]?.model.trim()}), ${memory} GB, ${node}`;
}
