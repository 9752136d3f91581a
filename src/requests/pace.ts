/** Seconds between two polls, and what each early one adds (RFC 8628 section 3.5). */
export const POLL_SECONDS = 5;

/** When a device code may be polled again. */
interface Poll {
  nextAt: number;
  seconds: number;
  readonly until: number;
}

/**
 * Remembers when each device code was polled by this process, so that a poll that comes too early reads
 * nothing. Only codes that were found are remembered, until they expire.
 */
export class Pace {
  readonly #polls = new Map<string, Poll>();

  /** Whether a poll comes too early; if so, the next one has to wait 5 seconds more. */
  isEarly(id: string, now: number): boolean {
    const poll = this.#polls.get(id);
    if (poll === undefined) return false;
    const isEarly = now < poll.nextAt;
    if (isEarly) poll.seconds += POLL_SECONDS;
    poll.nextAt = now + poll.seconds * 1000;
    return isEarly;
  }

  /** Remembers a code that was found. */
  note(id: string, until: Date, now: number): void {
    if (this.#polls.has(id)) return;
    this.#forgetEnded(now);
    this.#polls.set(id, {
      nextAt: now + POLL_SECONDS * 1000,
      seconds: POLL_SECONDS,
      until: until.getTime(),
    });
  }

  forget(id: string): void {
    this.#polls.delete(id);
  }

  /** The oldest come first. */
  #forgetEnded(now: number): void {
    for (const [id, { until }] of this.#polls) {
      if (until > now) return;
      this.#polls.delete(id);
    }
  }
}
