import { isIPv4, isIPv6 } from 'node:net';

/** The address of a client. Both texts are empty if the host takes all callers for one. */
export interface ClientAddress {
  /** The address in its one canonical spelling, without a port. */
  readonly host: string;
  /** The IPv4 address, or the first 64 bits of an IPv6 address: one customer holds all of them. */
  readonly network: string;
}

/** The host takes all callers for one. */
const EVERYBODY: ClientAddress = { host: '', network: '' };
const HIGHEST_PORT = 65_535;
const SHOWN_LENGTH = 40;

/**
 * Parses an IP address in the spellings of sockets and proxies: alone, with a port, in brackets, with
 * a zone, and IPv4 within IPv6. An empty text means everybody; for any other text, `undefined`.
 */
export function readAddress(text: string): ClientAddress | undefined {
  if (text === '') return EVERYBODY;
  const host = socketIPv4(text) ?? hostOf(text);
  if (host === undefined) return undefined;
  return { host, network: host.includes(':') ? first64Bits(host) : host };
}

/** The start of a text from an unknown source, in printable ASCII, for a log. */
export function showBriefly(text: string): string {
  const start = text.length > SHOWN_LENGTH ? `${text.slice(0, SHOWN_LENGTH)}...` : text;
  return JSON.stringify(start).replace(/[^ -~]/g, escapeOf);
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** An IPv4 address as sockets spell it: those that listen on IPv6 see a mapped address. */
function socketIPv4(text: string): string | undefined {
  const address = text.startsWith('::ffff:') ? text.slice('::ffff:'.length) : text;
  return isIPv4(address) ? address : undefined;
}

function hostOf(text: string): string | undefined {
  const [, bracketed, dotted, port] =
    /^(?:\[([^[\]]*)\]|([\d.]+))(?::(0|[1-9]\d{0,4}))?$/.exec(text) ?? [];
  if (Number(port ?? 0) > HIGHEST_PORT) return undefined;
  if (dotted !== undefined) return isIPv4(dotted) ? dotted : undefined;
  const host = bracketed ?? text;
  return isIPv6(host) ? canonical(host) : undefined;
}

/** An IPv6 address in the spelling of the URL standard; IPv4 within it becomes IPv4. */
function canonical(host: string): string {
  const [withoutZone = ''] = host.split('%', 1);
  const { hostname } = new URL(`http://[${withoutZone}]`);
  const address = hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/.exec(address) ?? [];
  return high === undefined || low === undefined ? address : dottedOf(high, low);
}

function dottedOf(...groups: readonly [high: string, low: string]): string {
  const numbers = groups.map((group) => Number.parseInt(group, 16));
  return numbers.flatMap((number) => [number >> 8, number & 255]).join('.');
}

/** The address must be in its canonical spelling. */
function first64Bits(address: string): string {
  const [head = [], tail] = address
    .split('::', 2)
    .map((half) => half.split(':').filter((group) => group !== ''));
  const zeros = tail === undefined ? [] : Array<string>(8 - head.length - tail.length).fill('0');
  return [...head, ...zeros, ...(tail ?? [])].slice(0, 4).join(':');
}
