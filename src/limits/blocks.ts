import { AddressBlocks, parseAddress } from './addresses.ts';

/**
 * Whether addresses may use tokens. Each list that comes frozen is compiled once, as it is of cached
 * records; what is compiled is collected with the list.
 */
export class CompiledBlocks {
  readonly #compiled = new WeakMap<readonly string[], AddressBlocks>();
  readonly #onCorrupt: () => Error;

  /** `onCorrupt` makes the error for a list that holds anything but blocks. */
  constructor(onCorrupt: () => Error) {
    this.#onCorrupt = onCorrupt;
  }

  /** Why an address may not use a token that is limited to some; `undefined` if it may. */
  refusalOf(
    allowed: readonly string[],
    address: string | undefined,
  ): 'address_unknown' | 'address_denied' | undefined {
    const parsed = typeof address === 'string' ? parseAddress(address) : undefined;
    if (parsed === undefined) return 'address_unknown';
    return this.#blocksOf(allowed).has(parsed) ? undefined : 'address_denied';
  }

  #blocksOf(texts: readonly string[]): AddressBlocks {
    const known = this.#compiled.get(texts);
    if (known !== undefined) return known;
    const blocks = this.#compile(texts);
    if (Object.isFrozen(texts)) this.#compiled.set(texts, blocks);
    return blocks;
  }

  #compile(texts: readonly string[]): AddressBlocks {
    try {
      return new AddressBlocks(texts);
    } catch {
      throw this.#onCorrupt();
    }
  }
}
