/** An IP address as a number. IPv4 within IPv6 (`::ffff:10.0.0.1`) is IPv4. */
export interface Address {
  /** How many bits it has. */
  readonly width: 32 | 128;
  readonly value: bigint;
}

/** All addresses that begin with the first `bits` of an address, whose other bits are 0. */
interface Block extends Address {
  readonly bits: number;
}

/** The result of reading a block: its canonical spelling, or what is wrong with the text. */
export type BlockReading =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly fault: string };

/** How many bits of `::ffff:10.0.0.1` come before the IPv4 address, and their value. */
const MAPPED_BITS = 96;
const MAPPED = 0xffffn;
/** The length of the longest spelling of an IPv6 address, which ends in an IPv4 address. */
const MAX_ADDRESS_LENGTH = 45;
/** Not `isIPv4` of `node:net`: to load that takes more than a millisecond of each start. */
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;

/** Reads an IP address: without a port, brackets or a zone. Returns `undefined` for any other text. */
export function parseAddress(text: string): Address | undefined {
  if (text.length > MAX_ADDRESS_LENGTH) return undefined;
  if (IPV4.test(text)) {
    const value = text.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
    return { width: 32, value: BigInt(value) };
  }
  const address = parseIPv6(text);
  return address && unmapped({ ...address, bits: 128 });
}

/**
 * What tells callers apart by their address: an IPv4 address, or the first 64 bits of an IPv6 address, because
 * one customer holds all of them. Any other text as it is.
 */
export function networkOf(text: string): string {
  const address = parseAddress(text);
  if (address === undefined) return text;
  return `${address.width === 32 ? address.value : address.value >> 64n}/${address.width}`;
}

/** A zone names an interface of one machine: it says nothing about where a request comes from. */
function parseIPv6(text: string): Address | undefined {
  if (!/^[\da-f:.]+$/i.test(text) || !URL.canParse(`http://[${text}]`)) return undefined;
  const parts = (text.includes('.') ? canonicalIPv6(text) : text).split('::');
  const [start = [], end = []] = parts.map((part) => (part === '' ? [] : part.split(':')));
  const zeros = Array.from({ length: 8 - start.length - end.length }, () => '');
  const digits = [...start, ...zeros, ...end].map((group) => group.padStart(4, '0'));
  return { width: 128, value: BigInt(`0x${digits.join('')}`) };
}

/** The spelling of RFC 5952, as the URL standard serializes a host. */
function canonicalIPv6(text: string): string {
  return new URL(`http://[${text}]`).hostname.slice(1, -1);
}

/** Reads a block: an address, or a CIDR block that begins with the first address of its network. */
export function readBlock(text: unknown): BlockReading {
  if (typeof text !== 'string') return { ok: false, fault: 'is not a text' };
  const [start = '', prefix, ...more] = text.split('/', 3);
  if (start.includes('%')) return { ok: false, fault: 'has a zone, which means nothing elsewhere' };
  const address = parseIPv6(start) ?? parseAddress(start);
  if (address === undefined || more.length > 0) return { ok: false, fault: 'is neither' };
  const { width, value } = address;
  const bits = prefix === undefined ? width : readPrefix(prefix, width);
  if (bits === undefined) {
    return { ok: false, fault: `has a prefix that is not a number from 0 to ${width}` };
  }
  const block = blockOf(address, bits);
  if (block.value !== value) return { ok: false, fault: strayBits(block, start) };
  return { ok: true, text: textOf(unmapped(block)) };
}

/** The fault of a block such as `10.0.0.1/8`, which may mean the network or the address. */
function strayBits(block: Block, start: string): string {
  return `has bits after its prefix: give ${textOf(block)} for the network, or ${start} for one address`;
}

function readPrefix(text: string, most: number): number | undefined {
  const bits = /^(?:0|[1-9]\d{0,2})$/.test(text) ? Number(text) : Number.NaN;
  return bits <= most ? bits : undefined;
}

/** The block of so many bits that an address is in. */
function blockOf({ width, value }: Address, bits: number): Block {
  const rest = BigInt(width - bits);
  return { width, value: (value >> rest) << rest, bits };
}

/**
 * Turns a block of IPv4-mapped addresses into the IPv4 block. Returns any other block as it is: one of
 * fewer bits has a network that is not mapped.
 */
function unmapped({ width, value, bits }: Block): Block {
  if (width === 32 || value >> 32n !== MAPPED) return { width, value, bits };
  return { width: 32, value: BigInt.asUintN(32, value), bits: bits - MAPPED_BITS };
}

function textOf({ width, value, bits }: Block): string {
  const digits = value.toString(16).padStart(width / 4, '0');
  const text =
    width === 32
      ? (digits.match(/../g) ?? []).map((byte) => Number.parseInt(byte, 16)).join('.')
      : canonicalIPv6((digits.match(/..../g) ?? []).join(':'));
  return bits === width ? text : `${text}/${bits}`;
}

function isIn(address: Address, { width, value, bits }: Block): boolean {
  return address.width === width && (address.value ^ value) >> BigInt(width - bits) === 0n;
}

/** Blocks of addresses, parsed once to check many addresses. No block of IPv6 holds an IPv4 address. */
export class AddressBlocks {
  readonly #blocks: readonly Block[];

  /**
   * @throws {Error} if a text is not a block in its canonical spelling, as {@link readBlock} returns it
   */
  constructor(texts: readonly string[]) {
    this.#blocks = texts.map(canonicalBlock);
  }

  /**
   * Whether one of the blocks covers a whole block.
   *
   * @throws {Error} as the constructor
   */
  covers(text: string): boolean {
    const inner = canonicalBlock(text);
    return this.#blocks.some((block) => block.bits <= inner.bits && isIn(inner, block));
  }

  /** Whether an address is in one of the blocks. */
  has(address: Address): boolean {
    return this.#blocks.some((block) => isIn(address, block));
  }
}

/** Reads a block in its canonical spelling, and refuses any other: it comes from the store. */
function canonicalBlock(text: string): Block {
  const [start = '', prefix] = text.split('/', 2);
  const address = parseAddress(start);
  if (address === undefined) throw new Error('not an address');
  const bits = prefix === undefined ? address.width : readPrefix(prefix, address.width);
  if (bits === undefined) throw new Error('not a block');
  const block = blockOf(address, bits);
  if (textOf(block) !== text) throw new Error('not in its canonical spelling');
  return block;
}
