import { isIPv4, isIPv6 } from 'node:net';
// Not Node's BlockList: workerd does not have it, that of Bun ends the process for the block
// ::ffff:10.0.0.0/104, and it cannot compute the network of a block.
import ipaddr from 'ipaddr.js';

/** An IP address. IPv4 within IPv6 (`::ffff:10.0.0.1`) is IPv4. */
export type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** All addresses that begin with some bits of an address. */
interface Block {
  readonly network: Address;
  readonly bits: number;
}

/** The result of reading a block: its canonical spelling, or what is wrong with the text. */
export type BlockReading =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly fault: string };

const MAPPED = ipaddr.IPv6.parse('::ffff:0:0');
const MAPPED_BITS = 96;
/** The length of the longest spelling of an IPv6 address, which ends in an IPv4 address. */
const MAX_ADDRESS_LENGTH = 45;

/** Reads an IP address: without a port, brackets or a zone. Returns `undefined` for any other text. */
export function parseAddress(text: string): Address | undefined {
  if (text.length > MAX_ADDRESS_LENGTH) return undefined;
  if (isIPv4(text)) return ipaddr.IPv4.parse(text);
  const address = parseIPv6(text);
  return address !== undefined && isMapped(address) ? address.toIPv4Address() : address;
}

/** A zone names an interface of one machine: it says nothing about where a request comes from. */
function parseIPv6(text: string): ipaddr.IPv6 | undefined {
  if (!isIPv6(text) || text.includes('%')) return undefined;
  // ipaddr.js takes ::10.0.0.1, which is ::a00:1, for ::ffff:10.0.0.1.
  const groups = text.includes('.') ? new URL(`http://[${text}]`).hostname.slice(1, -1) : text;
  return ipaddr.IPv6.parse(groups);
}

function isMapped(address: ipaddr.IPv6): boolean {
  return address.match(MAPPED, MAPPED_BITS);
}

/** Reads a block: an address, or a CIDR block that begins with the first address of its network. */
export function readBlock(text: unknown): BlockReading {
  if (typeof text !== 'string') return { ok: false, fault: 'is not a text' };
  const [start = '', prefix, ...more] = text.split('/', 3);
  if (start.includes('%')) return { ok: false, fault: 'has a zone, which means nothing elsewhere' };
  const address = parseIPv6(start) ?? parseAddress(start);
  if (address === undefined || more.length > 0) return { ok: false, fault: 'is neither' };
  const most = widthOf(address);
  const bits = prefix === undefined ? most : readPrefix(prefix, most);
  if (bits === undefined) {
    return { ok: false, fault: `has a prefix that is not a number from 0 to ${most}` };
  }
  const network = networkOf(address, bits);
  if (!address.match(network, most)) return { ok: false, fault: strayBits(network, bits, start) };
  return { ok: true, text: textOf(unmapped({ network, bits })) };
}

/** The fault of a block such as `10.0.0.1/8`, which may mean the network or the address. */
function strayBits(network: Address, bits: number, start: string): string {
  const block = textOf({ network, bits });
  return `has bits after its prefix: give ${block} for the network, or ${start} for one address`;
}

function readPrefix(text: string, most: number): number | undefined {
  const bits = /^(?:0|[1-9]\d{0,2})$/.test(text) ? Number(text) : Number.NaN;
  return bits <= most ? bits : undefined;
}

function widthOf(address: Address): 32 | 128 {
  return address.kind() === 'ipv4' ? 32 : 128;
}

function networkOf(address: Address, bits: number): Address {
  const text = `${address}/${bits}`;
  return address.kind() === 'ipv4'
    ? ipaddr.IPv4.networkAddressFromCIDR(text)
    : ipaddr.IPv6.networkAddressFromCIDR(text);
}

/**
 * Turns a block of IPv4-mapped addresses into the IPv4 block. Returns any other block as it is: one of
 * fewer bits has a network that is not mapped.
 */
function unmapped({ network, bits }: Block): Block {
  if (!(network instanceof ipaddr.IPv6 && isMapped(network))) return { network, bits };
  return { network: network.toIPv4Address(), bits: bits - MAPPED_BITS };
}

function textOf({ network, bits }: Block): string {
  const text = network instanceof ipaddr.IPv6 ? network.toRFC5952String() : network.toString();
  return bits === widthOf(network) ? text : `${text}/${bits}`;
}

/** Blocks of addresses, parsed once to check many addresses. */
export class AddressBlocks {
  readonly #ipv4: Block[] = [];
  readonly #ipv6: Block[] = [];

  /**
   * @throws {Error} if a text is not a block in its canonical spelling, as {@link readBlock} returns it
   */
  constructor(texts: readonly string[]) {
    for (const text of texts) {
      const block = canonicalBlock(text);
      (block.network.kind() === 'ipv4' ? this.#ipv4 : this.#ipv6).push(block);
    }
  }

  /**
   * Whether one of the blocks covers a whole block.
   *
   * @throws {Error} as the constructor
   */
  covers(text: string): boolean {
    const { network: inner, bits: most } = canonicalBlock(text);
    const blocks = inner.kind() === 'ipv4' ? this.#ipv4 : this.#ipv6;
    return blocks.some(({ network, bits }) => bits <= most && inner.match(network, bits));
  }

  /** Whether an address is in one of the blocks. No block of IPv6 holds an address of IPv4. */
  has(address: Address): boolean {
    const blocks = address.kind() === 'ipv4' ? this.#ipv4 : this.#ipv6;
    for (const { network, bits } of blocks) {
      if (address.match(network, bits)) return true;
    }
    return false;
  }
}

/** Reads a block in its canonical spelling, and refuses any other: it comes from the store. */
function canonicalBlock(text: string): Block {
  const [start = '', prefix] = text.split('/', 2);
  const network = parseAddress(start);
  if (network === undefined) throw new Error('not an address');
  const bits = prefix === undefined ? widthOf(network) : readPrefix(prefix, widthOf(network));
  if (bits === undefined) throw new Error('not a block');
  const block = { network: networkOf(network, bits), bits };
  if (textOf(block) !== text) throw new Error('not in its canonical spelling');
  return block;
}
