// The timers of the platform, as they were when this module was loaded. A test may replace the global ones
// with fake ones, which nobody moves while a call of this library waits for them.

const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, queueMicrotask } =
  globalThis;
// Not in each runtime that can read scopes and documents.
const nextTick: typeof process.nextTick = globalThis.process?.nextTick;

const performance = {
  /** The monotonic time, in milliseconds. */
  now: globalThis.performance.now.bind(globalThis.performance),
  /** When the process began, by the system clock. */
  timeOrigin: globalThis.performance.timeOrigin,
};

export {
  clearInterval,
  clearTimeout,
  nextTick,
  performance,
  queueMicrotask,
  setImmediate,
  setInterval,
  setTimeout,
};

/** Waits. Keeps the process alive meanwhile. */
export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits. The process may end meanwhile. */
export function idleDelay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
