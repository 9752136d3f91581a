import { SLOT_SHARE } from '../bounds.ts';

/** Bytes of a body or an answer for one slot; a larger one takes more slots. @bound */
export const SLOT_BYTES = 131_072;

/** An account or an address; `undefined` if it is not known, or if all callers count as one. */
export type Party = string | undefined;

/** Bounds work of one kind, in slots: in all, and for each party, so that no party takes all of them. */
export class Slots {
  readonly #total: number;
  /** The most slots of one party. */
  readonly share: number;
  readonly #byParty = new Map<string, number>();
  #taken = 0;

  constructor(total: number, share = SLOT_SHARE) {
    this.#total = total;
    this.share = Math.ceil(total * share);
  }

  /** Whether there is no room for any party. */
  get isFull(): boolean {
    return this.#taken >= this.#total;
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

  #hasRoom(parties: readonly string[], count: number): boolean {
    if (this.#taken + count > this.#total) return false;
    return parties.every((party) => this.#countOf(party) + count <= this.share);
  }

  #countOf(party: string): number {
    return this.#byParty.get(party) ?? 0;
  }
}

/** The slots of one call, which are of one kind at a time: none at first. */
export class Reservation {
  #slots: Slots | undefined;
  #parties: readonly string[] = [];
  #held = 0;

  /**
   * Holds slots of this kind instead, as many as before and at least one. Without room, changes nothing
   * and returns false.
   */
  take(slots: Slots, parties: readonly Party[]): boolean {
    const before = { slots: this.#slots, parties: this.#parties };
    const held = this.#held;
    // Given back first: the call may move within one kind, to more parties.
    this.release();
    this.#slots = slots;
    this.#parties = parties.filter((party) => party !== undefined);
    if (this.#hold(Math.max(1, held))) return true;
    this.#slots = before.slots;
    this.#parties = before.parties;
    this.#hold(held);
    return false;
  }

  /**
   * Holds the slots for so many bytes, but at most a share: more than that would never be free. Without
   * room, changes nothing and returns false.
   */
  holdBytes(bytes: number): boolean {
    const count = Math.max(1, Math.ceil(bytes / SLOT_BYTES));
    return this.#hold(Math.min(count, this.#slots?.share ?? 0));
  }

  release(): void {
    this.#hold(0);
  }

  #hold(count: number): boolean {
    if (this.#slots?.change(this.#parties, count - this.#held) === false) return false;
    this.#held = count;
    return true;
  }
}
