import { AddressBlocks, parseAddress } from './addresses.ts';

/** Why a token may not be used from where it is. */
export type AddressFault = 'address_unknown' | 'address_denied';

/** Blocks, and what they said last. */
interface Compiled {
  readonly blocks: AddressBlocks;
  /** Hot path: a bearer seldom moves, and reading an address takes longer than comparing it. */
  lastAddress: string | undefined;
  lastFault: AddressFault | undefined;
}

/**
 * Whether addresses may use tokens. Each list that comes frozen is compiled once, as it is of cached
 * records; what is compiled is collected with the list.
 */
export class CompiledBlocks {
  readonly #compiled = new WeakMap<readonly string[], Compiled>();
  readonly #onCorrupt: () => Error;

  /** `onCorrupt` makes the error for a list that holds anything but blocks. */
  constructor(onCorrupt: () => Error) {
    this.#onCorrupt = onCorrupt;
  }

  /** Why an address may not use a token that is limited to some; `undefined` if it may. */
  refusalOf(allowed: readonly string[], address: string | undefined): AddressFault | undefined {
    if (typeof address !== 'string') return 'address_unknown';
    const compiled = this.#compiledOf(allowed);
    if (compiled.lastAddress === address) return compiled.lastFault;
    const parsed = parseAddress(address);
    if (parsed === undefined) return 'address_unknown';
    const fault = compiled.blocks.has(parsed) ? undefined : 'address_denied';
    compiled.lastAddress = copyOf(address);
    compiled.lastFault = fault;
    return fault;
  }

  #compiledOf(texts: readonly string[]): Compiled {
    const known = this.#compiled.get(texts);
    if (known !== undefined) return known;
    const blocks = this.#compile(texts);
    const compiled = { blocks, lastAddress: undefined, lastFault: undefined };
    if (Object.isFrozen(texts)) this.#compiled.set(texts, compiled);
    return compiled;
  }

  #compile(texts: readonly string[]): AddressBlocks {
    try {
      return new AddressBlocks(texts);
    } catch {
      throw this.#onCorrupt();
    }
  }
}

/** A slice keeps the string that it was cut out of, such as a whole header. */
function copyOf(address: string): string {
  return Buffer.from(address, 'latin1').toString('latin1');
}
