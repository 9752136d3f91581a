/** Pieces that parsers of paths, headers, JSON, forms and text often get wrong. */
const PIECES = [
  ...['', ' ', '\t', '\r\n', '\n', '\0', '\u007f', '\u0085', '\u00a0', '\u200b', '\ufeff', '…'],
  ...['/', '//', '/./', '/../', '.', '..', '...', '%2e', '%2E%2e', '%2f', '%2F', '%5c', '\\', ';'],
  ...['%', '%0', '%00', '%25', '%252e', '%zz', '%c0%ae', '%ef%bc%8e', '%e2%80%ae', '%41', '%7E'],
  ...['*', '*.', '.*', '**', '?', '#', ':', '::', '@', '[', ']', '{', '}', '|', '^', '~', '+', '-'],
  ...['_', ',', ', ', '=', '==', '&', '"', "'", '`', '<', '$', '(', '1', '0x7f', '127.0.0.1', '-1'],
  ...['１', 'Ａ', '．', '／', 'K', 'ſ', 'é', 'e\u0301', '😀', '\ud800', '\udc00', 'İ'],
  ...['__proto__', 'constructor', 'toString', 'null', 'true', '1e999', '9007199254740993', '[]'],
];

/**
 * A seeded random generator (xorshift128, Marsaglia 2003). It is many times faster than the arbitraries
 * of fast-check, so that millions of inputs take a minute.
 */
export class Random {
  #a: number;
  #b: number;
  #c = 0x9e3779b9;
  #d = 0x243f6a88;

  constructor(seed: number, stream: number) {
    this.#a = seed | 0;
    this.#b = Math.imul(stream + 1, 0x85ebca6b);
    for (let i = 0; i < 16; i++) this.#next();
  }

  /** A whole number from 0 up to, but not including, `limit`. */
  below(limit: number): number {
    return this.#next() % limit;
  }

  oneIn(many: number): boolean {
    return this.below(many) === 0;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item;
  }

  /** From 0 to `atMost` items. */
  some<Item>(atMost: number, make: () => Item): Item[] {
    return Array.from({ length: this.below(atMost + 1) }, make);
  }

  /** One of `PIECES`, one of them repeated many times, or a few random characters. */
  text(): string {
    if (this.oneIn(200)) return this.pick(PIECES).repeat(this.below(5000));
    if (this.oneIn(2)) return this.pick(PIECES);
    return this.some(8, () => String.fromCharCode(this.below(this.oneIn(4) ? 0x10000 : 0x80))).join(
      '',
    );
  }

  /** The text unchanged, or with a few small defects. */
  spoil(text: string): string {
    let spoiled = text;
    for (let times = this.pick(TIMES); times > 0; times--) spoiled = this.#spoilOnce(spoiled);
    return spoiled;
  }

  #spoilOnce(text: string): string {
    const at = this.below(text.length + 1);
    const to = Math.min(text.length, at + 1 + this.below(4));
    const [before, cut, after] = [text.slice(0, at), text.slice(at, to), text.slice(to)];
    switch (this.below(10)) {
      case 0:
        return before + after;
      case 1:
        return before + cut + cut + after;
      case 2:
        return before + this.text() + after;
      case 3:
        return before + this.text() + cut + after;
      case 4:
        return before + cut.toUpperCase() + after;
      case 5:
        return before + cut.toLowerCase() + after;
      case 6:
        return before + encodedBadly(cut) + after;
      case 7:
        return this.oneIn(2) ? before : cut + after;
      case 8:
        return before + widened(cut) + after;
      default:
        return this.oneIn(2) ? text + this.text() : this.text() + text;
    }
  }

  #next(): number {
    const t = this.#d ^ (this.#d << 11);
    this.#d = this.#c;
    this.#c = this.#b;
    this.#b = this.#a;
    this.#a = this.#a ^ (this.#a >>> 19) ^ t ^ (t >>> 8);
    return this.#a >>> 0;
  }
}

/** Mostly few, so that the result stays close to valid input. */
const TIMES = [0, 0, 1, 1, 1, 1, 2, 2, 3, 6];

function encodedBadly(text: string): string {
  return Array.from(text, (one) => `%${one.charCodeAt(0).toString(16).padStart(2, '0')}`).join('');
}

/** The full-width forms of ASCII look the same, and normalization turns them into ASCII. */
function widened(text: string): string {
  return text.replace(/[!-~]/g, (one) => String.fromCharCode(one.charCodeAt(0) + 0xfee0));
}
