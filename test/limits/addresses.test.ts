import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AddressBlocks, parseAddress, readBlock } from '../../src/limits/addresses.ts';
import { CompiledBlocks } from '../../src/limits/blocks.ts';
import { runs } from '../laws.ts';

/** A block as a token stores it, or why it is refused. */
function blockOf(text: string): string {
  const reading = readBlock(text);
  return reading.ok ? reading.text : reading.fault;
}

function isIn(blocks: readonly string[], text: string): boolean | undefined {
  const address = parseAddress(text);
  return address && new AddressBlocks(blocks.map(blockOf)).has(address);
}

describe('readBlock', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7/32', '203.0.113.7'],
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['2001:DB8:0:0::/32', '2001:db8::/32'],
    ['2001:db8::1/128', '2001:db8::1'],
    ['::/0', '::/0'],
    ['::ffff:10.0.0.0/104', '10.0.0.0/8'],
    ['::ffff:a00:1', '10.0.0.1'],
    ['::ffff:0:0/96', '0.0.0.0/0'],
    ['::10.0.0.1', '::a00:1'],
  ])('normalizes %s to %s', (text, expected) => {
    expect(blockOf(text)).toBe(expected);
    expect(blockOf(expected)).toBe(expected);
  });

  it.each([
    ['10.0.0.1/8', /10\.0\.0\.0\/8 for the network, or 10\.0\.0\.1 for one/],
    ['2001:db8::1/32', /2001:db8::\/32 for the network, or 2001:db8::1 for one/],
    ['::ffff:10.0.0.1/104', /has bits after its prefix/],
    ['::ffff:0:0/80', /has bits after its prefix/],
    ['10.0.0.0/33', /a number from 0 to 32/],
    ['::/129', /a number from 0 to 128/],
    ['10.0.0.0/08', /a number from 0 to 32/],
    ['10.0.0.0/', /a number from 0 to 32/],
    ['10.0.0.0/8/8', /neither/],
    ['fe80::1%eth0', /zone/],
    ['fe80::%1/10', /zone/],
    ['10.0.0', /neither/],
    ['010.0.0.1', /neither/],
    ['0x7f.0.0.1', /neither/],
    ['127.1', /neither/],
    ['1.2.3.4:80', /neither/],
    ['[::1]', /neither/],
    [' ::1', /neither/],
    ['localhost', /neither/],
    ['', /neither/],
    [7, /not a text/],
    [null, /not a text/],
  ])('refuses %s', (text, fault) => {
    expect(readBlock(text)).toEqual({ ok: false, fault: expect.stringMatching(fault) });
  });
});

describe('parseAddress', () => {
  it.each([
    'fe80::1%eth0',
    '::ffff:10.0.0.1%1',
    '10.0.0.1:80',
    '[::1]',
    '10.0.0.1, 10.0.0.2',
    '10.0.0.0/8',
    '010.0.0.1',
    'unknown',
    '',
    `::${'0'.repeat(10_000)}1`,
  ])('returns undefined for $0', (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });
});

describe('AddressBlocks', () => {
  it.each([
    ['10.0.0.0/8', '10.255.255.255', true],
    ['10.0.0.0/8', '11.0.0.0', false],
    ['10.0.0.0/8', '9.255.255.255', false],
    ['203.0.113.7', '203.0.113.7', true],
    ['203.0.113.7', '203.0.113.8', false],
    ['0.0.0.0/0', '203.0.113.8', true],
    ['2001:db8::/33', '2001:db8:7fff:ffff::', true],
    ['2001:db8::/33', '2001:db8:8000::', false],
    // The same IPv4 address in all its spellings.
    ['10.0.0.1', '::ffff:10.0.0.1', true],
    ['10.0.0.1', '::FFFF:A00:1', true],
    ['10.0.0.1', '0:0:0:0:0:ffff:0a00:0001', true],
    ['::ffff:10.0.0.1', '10.0.0.1', true],
    // IPv6 addresses that only look like IPv4.
    ['10.0.0.1', '::10.0.0.1', false],
    ['::10.0.0.1', '10.0.0.1', false],
    ['10.0.0.1', '64:ff9b::10.0.0.1', false],
    // The block of all IPv6 addresses contains no IPv4 address, in any spelling, nor the reverse.
    ['::/0', '10.0.0.1', false],
    ['::/0', '::ffff:10.0.0.1', false],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['::/0', '2001:db8::1', true],
  ])('of %s contain %s: %s', (block, address, expected) => {
    expect(isIn([block], address)).toBe(expected);
  });

  it('contain an address if one of several blocks does', () => {
    const blocks = ['192.0.2.0/24', '2001:db8::/32', '198.51.100.7'];

    expect(isIn(blocks, '198.51.100.7')).toBe(true);
    expect(isIn(blocks, '2001:db8::7')).toBe(true);
    expect(isIn(blocks, '198.51.100.8')).toBe(false);
    expect(isIn([], '198.51.100.8')).toBe(false);
  });

  it.each([
    'nonsense',
    '10.0.0.0/99',
    'fe80::1%eth0',
    '10.0.0.0/x',
    // A lenient reader would take these for a block of many addresses, or of all.
    '10.0.0.1/',
    '10.0.0.1/ ',
    '0.0.0.0/-0',
    '10.0.0.0/0x8',
    '10.0.0.0/8/9',
    '10.0.0.1/8',
    '10.0.0.0/32',
    '::ffff:10.0.0.1',
    '2001:DB8::/32',
  ])('refuse the stored block "%s"', (text) => {
    expect(() => new AddressBlocks([text])).toThrow();
    expect(() => new AddressBlocks(['10.0.0.0/8']).covers(text)).toThrow();
  });

  it.each(['10.0.0.0/8', '10.0.0.1', '0.0.0.0/0', '::/0', '2001:db8::/32', '::1'])(
    'read the stored block %s',
    (text) => {
      expect(new AddressBlocks([text]).covers(text)).toBe(true);
    },
  );

  it('agree with arithmetic for random blocks, addresses and spellings', () => {
    fc.assert(
      fc.property(
        fc.array(anyBlock(), { minLength: 1, maxLength: 5 }),
        anyAddress(),
        (blocks, one) => {
          // About half of the addresses are next to the edge of a block.
          const address = one.isNear ? near(blocks[0] as RandomBlock, one) : one;
          const expected = blocks.some((block) => holds(block, address));
          const texts = blocks.map((block) => `${spelled(block, block.spelling)}/${bitsOf(block)}`);

          expect(
            isIn(texts, spelled(address, one.spelling)),
            `${texts} ${spelled(address, 0)}`,
          ).toBe(expected);
        },
      ),
      runs(3),
    );
  });
});

describe('CompiledBlocks', () => {
  function refusalsOf(allowed: readonly string[], addresses: readonly (string | undefined)[]) {
    const blocks = new CompiledBlocks(() => new Error('corrupt'));
    return addresses.map((address) => blocks.refusalOf(allowed, address));
  }

  it.each([
    ['frozen', Object.freeze(['10.0.0.0/8', '2001:db8::/32'])],
    ['mutable', ['10.0.0.0/8', '2001:db8::/32']],
  ])('decide each address separately, with a list that is %s', (_, allowed) => {
    const inside = ['10.0.0.1', '::ffff:10.0.0.1', '2001:db8::1'];
    const outside = ['11.0.0.1', '::10.0.0.1', '2001:db9::1'];
    const unknown = ['', '10.0.0.1:80', undefined];
    const mixed = [0, 1, 2].flatMap((i) => [inside[i], outside[i], outside[i], inside[i]]);

    expect(refusalsOf(allowed, [...mixed, ...unknown, '10.0.0.1'])).toEqual([
      ...[0, 1, 2].flatMap(() => [undefined, 'address_denied', 'address_denied', undefined]),
      ...unknown.map(() => 'address_unknown'),
      undefined,
    ]);
  });

  it('do not mix up two lists', () => {
    const blocks = new CompiledBlocks(() => new Error('corrupt'));
    const [one, two] = [Object.freeze(['10.0.0.0/8']), Object.freeze(['11.0.0.0/8'])];
    const answers = [one, two, one, two].map((list) => blocks.refusalOf(list, '10.0.0.1'));

    expect(answers).toEqual([undefined, 'address_denied', undefined, 'address_denied']);
  });
});

/** A number of 32 or 128 bits. */
interface Numbered {
  readonly isIPv4: boolean;
  readonly value: bigint;
}

interface RandomBlock extends Numbered {
  readonly bits: number;
  readonly spelling: number;
}

interface RandomAddress extends Numbered {
  readonly isNear: boolean;
  readonly flipped: number;
  readonly spelling: number;
}

const SPELLINGS = 5;

function width({ isIPv4 }: Numbered): number {
  return isIPv4 ? 32 : 128;
}

function prefixOf(one: Numbered, bits: number): bigint {
  return one.value >> BigInt(width(one) - bits);
}

function holds(block: RandomBlock, address: Numbered): boolean {
  return (
    block.isIPv4 === address.isIPv4 && prefixOf(block, block.bits) === prefixOf(address, block.bits)
  );
}

function near({ isIPv4, value, bits }: RandomBlock, { flipped }: RandomAddress): Numbered {
  const width = isIPv4 ? 32 : 128;
  const bit = Math.min(width - 1, Math.max(0, width - bits + (flipped % 3) - 1));
  const beside = value ^ (1n << BigInt(bit));
  // The changed bit can make it an IPv4 address.
  if (!isIPv4 && beside >> 32n === 0xffffn) return { isIPv4: true, value: beside & 0xffffffffn };
  return { isIPv4, value: beside };
}

/** Random bits, or values with many zeros, which have shorter spellings. */
function anyValue(bits: number): fc.Arbitrary<bigint> {
  const all = (1n << BigInt(bits)) - 1n;
  const any = fc.bigInt({ min: 0n, max: all });
  return fc.oneof(
    any,
    fc.tuple(any, any, any).map(([a, b, c]) => a & b & c),
    fc.bigInt({ min: 0n, max: 0xffffn }),
  );
}

function anyNumbered(): fc.Arbitrary<Numbered> {
  return fc
    .boolean()
    .chain((isIPv4) => anyValue(isIPv4 ? 32 : 128).map((value) => ({ isIPv4, value })))
    .filter(({ isIPv4, value }) => isIPv4 || value >> 32n !== 0xffffn);
}

function anyBlock(): fc.Arbitrary<RandomBlock> {
  const spelling = fc.nat(SPELLINGS - 1);
  return (
    fc
      .tuple(anyNumbered(), fc.nat(128), spelling)
      .map(([one, most, spelling]) => {
        const bits = most % (width(one) + 1);
        const rest = BigInt(width(one) - bits);
        return { ...one, value: (one.value >> rest) << rest, bits, spelling };
      })
      // Leaves out IPv6 blocks whose network is an IPv4 address.
      .filter(({ isIPv4, value }) => isIPv4 || value >> 32n !== 0xffffn)
  );
}

function anyAddress(): fc.Arbitrary<RandomAddress> {
  return fc
    .tuple(anyNumbered(), fc.boolean(), fc.nat(100), fc.nat(SPELLINGS - 1))
    .map(([one, isNear, flipped, spelling]) => ({ ...one, isNear, flipped, spelling }));
}

/** The prefix length for the spelling of a block: IPv4 spelled as IPv6 has 96 bits more. */
function bitsOf({ isIPv4, bits, spelling }: RandomBlock): number {
  return isIPv4 && spelling > 0 ? bits + 96 : bits;
}

function spelled({ isIPv4, value }: Numbered, spelling: number): string {
  if (isIPv4 && spelling === 0) return dotted(value);
  const whole = isIPv4 ? (0xffffn << 32n) | value : value;
  const groups = Array.from({ length: 8 }, (_, i) => (whole >> BigInt(112 - 16 * i)) & 0xffffn);
  const texts = groups.map((group) => group.toString(16));
  if (spelling === 1) return groups.map((group) => group.toString(16).padStart(4, '0')).join(':');
  if (spelling === 2) return `${texts.slice(0, 6).join(':')}:${dotted(whole & 0xffffffffn)}`;
  if (spelling === 3) return texts.join(':').toUpperCase();
  return texts.join(':').replace(/(?:^|:)0(?::0)+(?:$|:)/, '::');
}

function dotted(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join('.');
}
