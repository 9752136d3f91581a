import type { IncomingMessage } from 'node:http';
import * as z from 'zod/mini';
import { once } from '../inputs/once.ts';
import { checkOptions, readBy, strict } from '../inputs/schemas.ts';
import { AddressBlocks, parseAddress, readBlock } from '../limits/addresses.ts';
import { shownBlock } from '../text/wording.ts';
import { readAddress } from './address.ts';
import type { GuardedRequest } from './guard/guard.ts';
import { addressOf, ownForms } from './request.ts';

/** The options of {@link forwardedAddress}. */
export interface ForwardedAddressOptions {
  /**
   * The IP addresses and CIDR blocks of your proxies: one or more, such as `10.0.0.0/8`. Entries that they
   * write into the header are trusted. A block of all addresses is refused.
   */
  readonly proxies: readonly string[];
  /**
   * The header in which a proxy names its client: `Forwarded` (RFC 7239), or one that holds a list of
   * addresses or a single one, such as `CF-Connecting-IP`. Each proxy must append to it or overwrite it.
   * @default 'X-Forwarded-For'
   */
  readonly header?: string | undefined;
}

/**
 * Finds the IP address of the client behind your proxies, for `clientAddress` of {@link bearerGuard} and
 * {@link tokenHandler}.
 *
 * Begins with the address at the other end of the connection. As long as an address is one of `proxies`,
 * the client of that proxy comes next: the last entry of the header that was not looked at yet. So the
 * result is the last address that is not one of your proxies; if all are, the first entry. Entries that
 * clients write themselves are left of that, and are never read.
 *
 * Returns `undefined` if it cannot know the address. Either a proxy sends no such header or an empty one, or
 * names its client by something that is not an address, such as `unknown` or `_hidden`. Or the other end of
 * the connection is not known, such as of a Unix socket, or of a Fetch `Request` that did not come through
 * `toNodeListener`. The guard then refuses tokens that are restricted to certain addresses.
 *
 * The result has no port, brackets or zone, and IPv4 within IPv6 is IPv4.
 *
 * As `clientAddress` of {@link tokenHandler}, pass the function itself: then `X-Forwarded-Host` of these
 * proxies also names the host that a call was sent to, for the check that no page of another site made it.
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * const clientAddress = forwardedAddress({ proxies: ['10.0.0.0/8'] });
 * const guard = bearerGuard({ tokens, domain: 'orders.acme.example', clientAddress });
 */
export function forwardedAddress(
  options: ForwardedAddressOptions,
): (request: GuardedRequest) => string | undefined {
  const { proxies, header = 'X-Forwarded-For' } = checkOptions(forwardedOptions(), options);
  const trusted = new AddressBlocks(proxies);
  const name = header.toLowerCase();
  const read = name === 'forwarded' ? clientsInForwarded : clientsInList;
  const clientAddress = (request: GuardedRequest) => {
    const client = hostIn(peerOf(request));
    if (client === undefined || !isIn(trusted, client)) return client;
    return furthest(trusted, read(headerIn(request, name)));
  };
  ownForms.set(clientAddress, {
    isProxy: (peer) => {
      const host = hostIn(peer);
      return host !== undefined && isIn(trusted, host);
    },
  });
  return clientAddress;
}

/** The last of these clients that is not a proxy, else the first. */
function furthest(
  trusted: AddressBlocks,
  clients: readonly (string | undefined)[],
): string | undefined {
  let client: string | undefined;
  for (let i = clients.length - 1; i >= 0; i--) {
    client = hostIn(clients[i]);
    if (client === undefined || !isIn(trusted, client)) return client;
  }
  return client;
}

/** An address without its port, in its canonical spelling. */
function hostIn(text: string | undefined): string | undefined {
  return (text === undefined ? undefined : readAddress(text)?.host) || undefined;
}

function isIn(blocks: AddressBlocks, host: string): boolean {
  const address = parseAddress(host);
  return address !== undefined && blocks.has(address);
}

/** The address at the other end of the connection. */
function peerOf(request: GuardedRequest): string | undefined {
  const socket = 'socket' in request ? request.socket : undefined;
  return socket?.remoteAddress ?? addressOf(request);
}

/** A header, joined if it came several times, as Node and Fetch do with all but a few. */
function headerIn({ headers }: GuardedRequest, name: string): string {
  const value =
    typeof (headers as Partial<Headers>).get === 'function'
      ? (headers as Headers).get(name)
      : (headers as IncomingMessage['headers'])[name];
  return String(value ?? '');
}

function clientsInList(value: string): readonly string[] {
  return value.split(',').map((entry) => entry.trim());
}

/** Empty if any part is malformed: a quote that a client leaves open may hide what a proxy appended. */
function clientsInForwarded(value: string): readonly (string | undefined)[] {
  const elements = splitUnquoted(value, ',');
  if (elements === undefined) return [];
  return elements.map((element) => {
    const [client, ...more] = (splitUnquoted(element, ';') ?? []).flatMap(clientInPair);
    return more.length === 0 ? client : undefined;
  });
}

function clientInPair(pair: string): readonly string[] {
  const [, value] = /^for=(.*)$/i.exec(pair.trim()) ?? [];
  if (value === undefined) return [];
  if (!value.startsWith('"')) return [value];
  return [value.slice(1, -1).replace(/\\(.)/g, '$1')];
}

/** Splits a text at a separator outside of quotes; `undefined` if a quote stays open. */
function splitUnquoted(text: string, separator: ',' | ';'): readonly string[] | undefined {
  const parts: string[] = [];
  let isQuoted = false;
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (character === '"') isQuoted = !isQuoted;
    else if (isQuoted && character === '\\') i += 1;
    else if (!isQuoted && character === separator) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  return isQuoted ? undefined : [...parts, text.slice(start)];
}

const BLOCK_RULE = 'an IP address or a CIDR block, such as "10.0.0.7" or "2001:db8::/32"';
const HEADER_RULE = 'header must be the name of a header, such as "Forwarded"';

/** Reads the blocks into their canonical spelling. */
function proxiesField(): z.ZodMiniType<readonly string[]> {
  return readBy((value, refuse) => {
    const blocks: string[] = [];
    const fault = faultOfProxies(value, blocks);
    return fault === undefined ? blocks : refuse(fault);
  });
}

/** Says what is wrong with a list of proxies, and adds those that it reads to `blocks`. */
function faultOfProxies(list: unknown, blocks: string[]): string | undefined {
  if (!Array.isArray(list) || list.length === 0) {
    return `proxies must be a list of one or more, each ${BLOCK_RULE}`;
  }
  for (const [index, text] of list.entries()) {
    const reading = readBlock(text);
    if (!reading.ok) {
      return `proxies[${index}] must be ${BLOCK_RULE}; ${shownBlock(text)} ${reading.fault}`;
    }
    if (reading.text.endsWith('/0')) {
      return `proxies[${index}] must not hold all addresses: clients could then name any address as theirs`;
    }
    blocks.push(reading.text);
  }
  return undefined;
}

const forwardedOptions = once(() =>
  strict({
    proxies: proxiesField(),
    header: z.optional(
      z
        .string({ error: HEADER_RULE })
        .check(z.regex(/^[A-Za-z0-9-]{1,100}$/, { error: HEADER_RULE })),
    ),
  }),
);
