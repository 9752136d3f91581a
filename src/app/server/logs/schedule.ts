import { setTimeout } from '../../../time/timers.ts';

/** Runs something later. */
export type Schedule = (work: () => void, ms: number) => unknown;

/** Runs something later, with a timer that does not keep the process alive. */
export const unrefTimer: Schedule = (work, ms) => setTimeout(work, ms).unref();
