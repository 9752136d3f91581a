import type { TokenRecord } from '../token/record.ts';
import { listWeight } from '../token/size.ts';

/** Measured: a record without its lists, with an empty compiled set. */
const RECORD_BYTES = 1536;

/**
 * Estimates how many bytes records take in memory. A list that several records share counts once: ten
 * thousand tokens with the same thousand scopes take little more than their own fields.
 */
export class RecordWeights {
  readonly #uses = new Map<readonly string[], number>();
  #bytes = 0;

  /** The sum. */
  get bytes(): number {
    return this.#bytes;
  }

  add(record: TokenRecord): void {
    this.#bytes += ownBytes(record);
    for (const list of listsOf(record)) {
      const uses = this.#uses.get(list) ?? 0;
      if (uses === 0) this.#bytes += listWeight(list);
      this.#uses.set(list, uses + 1);
    }
  }

  /** Removes a record that was added before. */
  remove(record: TokenRecord): void {
    this.#bytes -= ownBytes(record);
    for (const list of listsOf(record)) {
      const uses = this.#uses.get(list) as number;
      if (uses > 1) this.#uses.set(list, uses - 1);
      else {
        this.#uses.delete(list);
        this.#bytes -= listWeight(list);
      }
    }
  }

  clear(): void {
    this.#uses.clear();
    this.#bytes = 0;
  }
}

function listsOf({ scopes, requested }: TokenRecord): readonly (readonly string[])[] {
  return scopes === requested ? [scopes] : [scopes, requested];
}

function ownBytes({ metadata, limits, ancestors }: TokenRecord): number {
  return RECORD_BYTES + bytesOf(metadata) + bytesOf(limits) + bytesOf(ancestors);
}

function bytesOf(part: object | undefined): number {
  return part === undefined ? 0 : 2 * JSON.stringify(part).length;
}
