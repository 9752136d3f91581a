import { copyText } from '../text/copy.ts';
import { AddressBlocks, parseAddress } from './addresses.ts';

/** Why a token may not be used by a request, by the address of the request. */
export type AddressFault = 'address_unknown' | 'address_denied';

/** Compiled blocks, and the answer for the last address. */
interface Compiled {
  readonly blocks: AddressBlocks;
  /** Hot path: a bearer's address rarely changes, and comparing texts is faster than parsing. */
  lastAddress: string | undefined;
  lastFault: AddressFault | undefined;
}

/**
 * Decides whether addresses may use tokens. Compiles a frozen list, such as that of a cached record, once;
 * the garbage collector frees the result together with the list.
 */
export class CompiledBlocks {
  readonly #compiled = new WeakMap<readonly string[], Compiled>();
  readonly #onCorrupt: () => Error;

  /** @param onCorrupt makes the error for a list that holds anything but blocks */
  constructor(onCorrupt: () => Error) {
    this.#onCorrupt = onCorrupt;
  }

  /** Why an address may not use a token that is limited to the `allowed` blocks; `undefined` if it may. */
  refusalOf(allowed: readonly string[], address: string | undefined): AddressFault | undefined {
    if (typeof address !== 'string') return 'address_unknown';
    const compiled = this.#compiledOf(allowed);
    if (compiled.lastAddress === address) return compiled.lastFault;
    const parsed = parseAddress(address);
    if (parsed === undefined) return 'address_unknown';
    const fault = compiled.blocks.has(parsed) ? undefined : 'address_denied';
    // The address may be a slice of a whole header.
    compiled.lastAddress = copyText(address);
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
