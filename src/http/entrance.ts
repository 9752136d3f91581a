import { AUTHENTICATE_DEADLINE_MS, SLOT_SHARE, STRANGER_SHARE } from '../bounds.ts';
import { clearTimeout, setTimeout } from '../time/timers.ts';
import { newMarker } from '../values/hmac.ts';
import type { HttpRequest } from './request.ts';
import { type Party, Reservation, Slots } from './slots.ts';

/** Credentials and sessions of one caller that are remembered for that. @bound */
export const MAX_KNOWN_CREDENTIALS = 8;

/** Callers of each kind whose credentials were right, so that their next calls need no slots of strangers. @bound */
export const MAX_KNOWN_CALLERS = 10_000;

/**
 * Where calls of one kind of caller begin, before their credentials are checked.
 *
 * Strangers have slots of their own there, so they never take those of callers whose credentials were
 * checked. Credentials that were right before take slots of their caller from the start, however many
 * strangers there are.
 */
export class Entrance {
  /** For calls of strangers that are worked on. */
  readonly strangers: Slots;
  /** For those that wait until they are. */
  readonly #places: Slots;
  /** The oldest are first. Each takes a slot if there is one, and says whether it did. */
  readonly #waiting = new Set<() => boolean>();
  readonly #mark = newMarker();
  /** The parties that credentials opened, by the marks of the credentials. */
  readonly #partyOf = new Map<string, string>();
  /** The marks of each party, in a bounded number: a caller can spell a session in many ways. */
  readonly #marksOf = new Map<string, readonly string[]>();

  constructor(maxInFlight: number) {
    this.strangers = new Slots(maxInFlight, STRANGER_SHARE);
    this.#places = new Slots(maxInFlight, SLOT_SHARE - STRANGER_SHARE);
  }

  /**
   * Takes a slot of strangers. If the address has none left, waits for one, since many programs may begin
   * behind one address. Resolves to false if no address has one left, if too many wait, or if it takes too
   * long.
   */
  enter(slots: Reservation, address: Party): boolean | Promise<boolean> {
    if (slots.take(this.strangers, [address])) return true;
    const place = new Reservation();
    if (this.strangers.isFull || !place.take(this.#places, [address])) return false;
    return new Promise((resolve) => {
      const end = (isIn: boolean) => {
        clearTimeout(timer);
        this.#waiting.delete(tryToEnter);
        place.release();
        resolve(isIn);
      };
      const tryToEnter = () => {
        const isIn = slots.take(this.strangers, [address]);
        if (isIn) end(true);
        return isIn;
      };
      const timer = setTimeout(end, AUTHENTICATE_DEADLINE_MS, false);
      this.#waiting.add(tryToEnter);
    });
  }

  /** Lets the next stranger in. Call it when a call has given its slot back. */
  admitNext(): void {
    for (const tryToEnter of this.#waiting) if (tryToEnter()) return;
  }

  /** Identifies what a caller shows, without storing it; `undefined` if that is nothing. */
  markOf(request: HttpRequest): string | undefined {
    const shown = request.header('authorization') ?? request.header('cookie');
    return shown === undefined ? undefined : this.#mark(shown);
  }

  /** The party that these credentials opened the last time. They still have to be checked. */
  knownParty(mark: string | undefined): string | undefined {
    return mark === undefined ? undefined : this.#partyOf.get(mark);
  }

  remember(mark: string | undefined, party: string): void {
    if (mark === undefined || this.#partyOf.get(mark) === party) return;
    this.forget(mark);
    const marks = [...(this.#marksOf.get(party) ?? []), mark];
    if (marks.length > MAX_KNOWN_CREDENTIALS) this.#partyOf.delete(marks.shift() as string);
    this.#partyOf.set(mark, party);
    this.#marksOf.set(party, marks);
    if (this.#marksOf.size > MAX_KNOWN_CALLERS) this.#dropOldest();
  }

  forget(mark: string | undefined): void {
    const party = this.knownParty(mark);
    if (mark === undefined || party === undefined) return;
    this.#partyOf.delete(mark);
    const others = (this.#marksOf.get(party) ?? []).filter((other) => other !== mark);
    if (others.length > 0) this.#marksOf.set(party, others);
    else this.#marksOf.delete(party);
  }

  #dropOldest(): void {
    for (const [party, marks] of this.#marksOf) {
      this.#marksOf.delete(party);
      for (const mark of marks) this.#partyOf.delete(mark);
      return;
    }
  }
}
