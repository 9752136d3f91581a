import { MAX_REMEMBERED_VALUES } from '../bounds.ts';
import { ALPHABET, CHECKSUM_LENGTH, type PresentedValue } from './format.ts';
import { sha256 } from './hmac.ts';

/** A value that was read before, with its SHA-256, which cannot be presented. */
interface ReadValue {
  readonly hash: string;
  readonly presented: PresentedValue;
}

/**
 * Remembers what values were read as. Recognizes a value by the SHA-256 of the whole. Keeps two
 * generations: when the recent one is full, it replaces the former one.
 */
export class RememberedValues {
  #recent = new Map<number, ReadValue>();
  #former = new Map<number, ReadValue>();

  /** The result of reading a value before; `undefined` if it is not remembered. */
  get(value: string): PresentedValue | undefined {
    const slot = slotOf(value);
    const recent = this.#recent.get(slot);
    const known = recent ?? this.#former.get(slot);
    if (known === undefined || known.hash !== sha256(value)) return undefined;
    if (recent === undefined) this.#store(slot, known);
    return known.presented;
  }

  add(value: string, presented: PresentedValue): void {
    this.#store(slotOf(value), { hash: sha256(value), presented });
  }

  #store(slot: number, read: ReadValue): void {
    if (this.#recent.size === MAX_REMEMBERED_VALUES) {
      this.#former = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(slot, read);
  }
}

/** The last characters as a number: V8 slices keep the parent string alive, which here is the secret. */
function slotOf(value: string): number {
  let slot = 0;
  for (let i = value.length - CHECKSUM_LENGTH; i < value.length; i++) {
    slot = (Math.imul(slot, ALPHABET.length) + value.charCodeAt(i)) | 0;
  }
  return slot;
}
