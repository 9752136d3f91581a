import { TokenError } from '../../errors.ts';
import type { TokenRecord } from '../../token/record.ts';
import { limitsText } from '../shared/limits.ts';
import { originText } from '../shared/origin.ts';
import { pendingText } from '../shared/pending.ts';
import { corruptRecord } from './driver.ts';
import { creationIn, entryOf, expiryIn, idIn, LAYOUT, parentIn, rootIn } from './layout.ts';

const MIN_LINES = 23;
const MAX_LINES = 24;
const MARK = `${LAYOUT} `;

/**
 * A record as text, one field a line; an absent field is an empty line, also at the end: the script
 * that replaces a record keeps lines beyond those it is given. The scripts read and write
 * the first nine lines. The third is the id of the last write. The fourth, between the two parts
 * given here, is the token's generation: the id of the write that inserted it.
 *
 * Versions of tokenwright work side by side during an upgrade. A later one that has a new field adds
 * a line at the end, which this one ignores and keeps. Where it must not be ignored, it counts up the number
 * of the layout, with which the first line begins, and this version refuses the record.
 */
export function encodeRecord(record: TokenRecord, writeId: string): [head: string, tail: string] {
  const body = [
    entryOf(record),
    JSON.stringify(record.account),
    record.suspendedAt?.getTime(),
    record.ancestors && JSON.stringify(record.ancestors),
    record.format,
    JSON.stringify(record.prefix),
    JSON.stringify(record.kid),
    base64(record.digest),
    base64(record.box),
    JSON.stringify(record.scopes),
    JSON.stringify(record.requested),
    JSON.stringify(record.name),
    JSON.stringify(record.metadata),
    base64(record.previousDigest),
    record.previousUntil?.getTime(),
    record.scopesChangedAt?.getTime(),
    record.rotatedAt?.getTime(),
    pendingText(record.pending),
    limitsText(record.limits),
    // Few records have one, and it never changes: a line of its own only where it is.
    ...(record.origin === undefined ? [] : [originText(record.origin)]),
  ].join('\n');
  const head = `${MARK}${record.revokedAt?.getTime() ?? ''}\n${record.version}\n${writeId}\n`;
  return [head, `\n${body}`];
}

/**
 * Reads a record as the cells of a row, in the order of our columns. A malformed field becomes a
 * cell that the row reader rejects.
 *
 * @throws {TokenError} `store_corrupt`
 */
export function decodeRecord(value: string): unknown[] {
  const lines = linesOf(value);
  const entry = lines[4];
  return [
    idIn(entry),
    textIn(lines[5]),
    textIn(lines[9]),
    textIn(lines[10]),
    bytesIn(lines[11]),
    bytesIn(lines[12]),
    lines[13] || null,
    lines[14] || null,
    creationIn(entry),
    expiryIn(entry),
    lines[1],
    textIn(lines[15]),
    lines[16] || null,
    lines[0].slice(MARK.length) || null,
    bytesIn(lines[17]),
    lines[18] || null,
    lines[6] || null,
    lines[19] || null,
    lines[20] || null,
    lines[21] || null,
    lines[22] || null,
    lines[7] || null,
    parentIn(lines[7]) || null,
    rootIn(lines[7]) || null,
    lines[8] || null,
    lines[23] || null,
  ];
}

// biome-ignore format: two lines say it better than twenty
type RecordLines = [
  string, string, string, string, string, string, string, string, string, string,
  string, string, string, string, string, string, string, string, string, string,
  string, string, string, string,
];

/** Every verify reads a record, and this is twice as fast as `split`. */
function linesOf(value: string): RecordLines {
  const lines = new Array<string>(MAX_LINES).fill('');
  let count = 0;
  for (let start = 0; start !== -1 && count < MAX_LINES; count += 1) {
    const end = value.indexOf('\n', start);
    lines[count] = end === -1 ? value.slice(start) : value.slice(start, end);
    start = end === -1 ? -1 : end + 1;
  }
  if (count < MIN_LINES || !value.startsWith(MARK)) throw unreadableRecord(value);
  return lines as RecordLines;
}

function unreadableRecord(value: string): TokenError {
  if (Number(/^(\d+) /.exec(value)?.[1]) > LAYOUT) {
    return new TokenError(
      'store_corrupt',
      'a token record in Redis has the layout of a later version of tokenwright',
      { reason: 'schema_newer' },
    );
  }
  if (!OF_DEVELOPMENT.test(value)) return corruptRecord();
  return new TokenError(
    'store_corrupt',
    'a token record in Redis was written by a development version of tokenwright, before the first release; remove it, or use another key prefix',
    { reason: 'schema_older' },
  );
}

/** Those began with the time of the revocation, if any, and the version. */
const OF_DEVELOPMENT = /^-?\d*\n\d+\n/;

function base64(bytes: Uint8Array | undefined): string | undefined {
  if (bytes === undefined) return undefined;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

function bytesIn(line: string): Uint8Array | null | undefined {
  if (line === '') return null;
  const bytes = Buffer.from(line, 'base64');
  const padding = line.endsWith('==') ? 2 : Number(line.endsWith('='));
  // Node.js skips characters that are not Base64.
  return bytes.length === (line.length / 4) * 3 - padding ? bytes : undefined;
}

function textIn(line: string): string | null | undefined {
  if (line === '') return null;
  // Most texts have nothing that JSON escapes.
  if (!line.includes('\\')) return line.slice(1, -1);
  try {
    const text: unknown = JSON.parse(line);
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
}
