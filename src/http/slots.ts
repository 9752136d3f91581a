import { SLOT_BYTES, SLOT_SHARE } from '../bounds.ts';

/**
 * Bounds the calls in progress, in slots: in all, and for each party, which is an account or an
 * address, so that no party can take all slots.
 */
export class Slots {
  readonly #total: number;
  /** The most slots of one party. */
  readonly share: number;
  readonly #byParty = new Map<string, number>();
  #taken = 0;

  constructor(total: number) {
    this.#total = total;
    this.share = Math.ceil(total * SLOT_SHARE);
  }

  /** Takes slots for these parties, or releases some if `by` is negative. Returns false without room. */
  change(parties: readonly string[], by: number): boolean {
    if (by > 0 && !this.#hasRoom(parties, by)) return false;
    this.#taken += by;
    for (const party of parties) {
      const count = this.#countOf(party) + by;
      if (count === 0) this.#byParty.delete(party);
      else this.#byParty.set(party, count);
    }
    return true;
  }

  /** Whether a party may hold so many more. */
  hasShare(party: string, count: number): boolean {
    return this.#countOf(party) + count <= this.share;
  }

  #hasRoom(parties: readonly string[], count: number): boolean {
    if (this.#taken + count > this.#total) return false;
    return parties.every((party) => this.hasShare(party, count));
  }

  /** Counts slots that are already taken for one more party. */
  attribute(party: string, count: number): void {
    this.#byParty.set(party, this.#countOf(party) + count);
  }

  #countOf(party: string): number {
    return this.#byParty.get(party) ?? 0;
  }
}

/** The slots of one call: none at first. */
export class Reservation {
  readonly #slots: Slots;
  readonly #parties: string[] = [];
  #held = 0;

  constructor(slots: Slots) {
    this.#slots = slots;
  }

  /** Holds more or fewer slots than before. Without room, changes nothing and returns false. */
  hold(count: number): boolean {
    if (!this.#slots.change(this.#parties, count - this.#held)) return false;
    this.#held = count;
    return true;
  }

  /** Holds the slots for so many bytes, but at most a share: more than that would never be free. */
  holdBytes(bytes: number): boolean {
    const count = Math.max(1, Math.ceil(bytes / SLOT_BYTES));
    return this.hold(Math.min(count, this.#slots.share));
  }

  /** Also counts the slots for a party, if it is known. Returns false if the party has no share left. */
  claim(party: string | undefined): boolean {
    if (party === undefined) return true;
    if (!this.#slots.hasShare(party, this.#held)) return false;
    if (this.#held > 0) this.#slots.attribute(party, this.#held);
    this.#parties.push(party);
    return true;
  }

  release(): void {
    this.hold(0);
  }
}
