// A second implementation of the specification, slow and plain, for the fuzzer to compare with. It shares
// no code with the library.
import { createHmac, hkdfSync } from 'node:crypto';

const METHOD = /^(?:\*|[A-Z](?:[A-Z-]{0,30}[A-Z])?)$/;
const LABEL = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;
const NUMBER = /^(?:[0-9]+|0[xX][0-9A-Fa-f]*)$/;
const SEGMENT = /^(?!\.+$)[A-Za-z0-9\-._~!$&'()+=:@]+$/;
const TEMPLATE = /^\{[A-Za-z0-9\-._]{0,64}\}$/;

export interface PlainScope {
  readonly method: string;
  readonly domain: string;
  readonly path: string;
}

/** Section 2 of the scope language; `undefined` if the text is not a scope. */
export function scopeOf(text: unknown): PlainScope | undefined {
  if (typeof text !== 'string' || text.length > 1024) return undefined;
  const colon = text.indexOf(':');
  const slash = text.indexOf('/', colon + 1);
  if (colon === -1 || slash === -1) return undefined;
  const method = text.slice(0, colon);
  const domain = text.slice(colon + 1, slash);
  const path = text.slice(slash + 1);
  const isParent = domain.startsWith('*.');
  const isDomain =
    domain === '*' || (isParent ? isHost(domain.slice(2), 251) : isHost(domain, 253));
  if (!METHOD.test(method) || !isDomain || !isPath(path)) return undefined;
  const named = path.split('/').map((segment) => segment.replace(/^\{.+\}(?=\$?$)/, '{}'));
  return { method, domain: domain.toLowerCase(), path: named.join('/') };
}

export function isHost(text: string, atMost: number): boolean {
  const labels = text.split('.');
  return (
    text.length <= atMost &&
    labels.every((label) => LABEL.test(label)) &&
    !NUMBER.test(labels.at(-1) as string)
  );
}

function isPath(path: string): boolean {
  if (path === '*' || path === '$') return true;
  const segments = path.replace(/\$$/, '').split('/');
  return (
    path.length <= 512 &&
    segments.length <= 32 &&
    segments.filter((segment) => TEMPLATE.test(segment)).length <= 8 &&
    segments.every((segment) => SEGMENT.test(segment) || TEMPLATE.test(segment))
  );
}

/** Section 1: whether a scope denotes a request. The segments are in RFC 3986 normal form. */
export function denotes(
  scope: PlainScope,
  method: string,
  host: string,
  segments: readonly string[],
): boolean {
  const { domain, path } = scope;
  const isBelow = domain.startsWith('*.') && host.endsWith(domain.slice(1));
  return (
    (scope.method === '*' || scope.method === method) &&
    (domain === '*' || domain === host || isBelow) &&
    (path === '*' || denotesPath(path, segments))
  );
}

function denotesPath(path: string, segments: readonly string[]): boolean {
  const isClosed = path.endsWith('$');
  const pattern = path === '$' ? [] : path.slice(0, isClosed ? -1 : undefined).split('/');
  const isEnd = isClosed ? segments.length === pattern.length : segments.length >= pattern.length;
  return isEnd && pattern.every((one, index) => one === '{}' || one === segments[index]);
}

/** The path segments of a target by the URL standard, each in RFC 3986 normal form. */
export function segmentsOf(target: string): string[] {
  const { pathname } = new URL(`http://h${target}`);
  const path = pathname.slice(1).replace(/\/$/, '');
  return path === '' ? [] : path.split('/').map(normalForm);
}

function normalForm(segment: string): string {
  const equal = segment.replace(/%([0-9A-Fa-f]{2})/g, (all, hex) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16));
    return /[A-Za-z0-9\-._~]/.test(character) ? character : all.toUpperCase();
  });
  // The URL standard encodes these two; a raw target may contain them unencoded.
  return equal.replaceAll('%5E', '^').replaceAll('%7C', '|');
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Recognizes values with a valid tag: section 1 of the token specification. */
export class PlainReader {
  readonly #form: RegExp;
  readonly #key: Uint8Array;

  constructor(secret: string, kid: string, prefix: string) {
    const bytes = Buffer.from(secret, 'base64url');
    this.#key = new Uint8Array(hkdfSync('sha256', bytes, 'tokenwright/v1', 'tag/v1', 32));
    this.#form = new RegExp(`^${prefix}_1${kid}[0-9A-Za-z]{55}$`);
  }

  isValue(text: unknown): boolean {
    if (typeof text !== 'string' || !this.#form.test(text)) return false;
    return this.tagOf(text.slice(0, -6)) === text.slice(-6);
  }

  tagOf(untagged: string): string {
    const mac = createHmac('sha256', this.#key).update(`tag\0${untagged}`).digest();
    let number = mac.readUInt32BE(0);
    let text = '';
    for (let i = 0; i < 6; i++) {
      text = ALPHABET[number % 62] + text;
      number = Math.floor(number / 62);
    }
    return text;
  }
}
