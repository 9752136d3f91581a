/** Tells how far a long command is. */
export interface Progress {
  /** Returns a function that takes how many things are done with this verb. @default records */
  of(verb: string, things?: string): (done: number) => void;
  /** Clears the line. */
  end(): void;
}

/** The terminal, as far as this needs it. */
export interface Terminal {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

const CLEAR = '\r\u001b[K';

/** Shows one line that changes, on a terminal only: a file or a pipe gets nothing. */
export function progressOn(terminal: Terminal): Progress {
  if (terminal.isTTY !== true) return { of: () => () => {}, end: () => {} };
  return {
    of:
      (verb, things = 'records') =>
      (done) =>
        void terminal.write(`${CLEAR}${verb} ${done} ${things}`),
    end: () => void terminal.write(CLEAR),
  };
}
