// Stands for src/time/timers.ts in the tests (timers.setup.ts): looks up each timer when it is called, so that a
// test can move the library's time with fake ones.

export const setTimeout = ((...args: Parameters<typeof globalThis.setTimeout>) =>
  globalThis.setTimeout(...args)) as typeof globalThis.setTimeout;
export const setInterval = ((...args: Parameters<typeof globalThis.setInterval>) =>
  globalThis.setInterval(...args)) as typeof globalThis.setInterval;
export const setImmediate = ((...args: Parameters<typeof globalThis.setImmediate>) =>
  globalThis.setImmediate(...args)) as typeof globalThis.setImmediate;
export const clearTimeout: typeof globalThis.clearTimeout = (timer) =>
  globalThis.clearTimeout(timer);
export const clearInterval: typeof globalThis.clearInterval = (timer) =>
  globalThis.clearInterval(timer);
export const queueMicrotask: typeof globalThis.queueMicrotask = (work) =>
  globalThis.queueMicrotask(work);
export const nextTick: typeof process.nextTick = (work, ...args) => process.nextTick(work, ...args);
export const performance = { now: () => globalThis.performance.now() };

export const delay = (ms: number): Promise<void> =>
  new Promise((resolve) => globalThis.setTimeout(resolve, ms));
export const idleDelay = (ms: number): Promise<void> =>
  new Promise((resolve) => globalThis.setTimeout(resolve, ms).unref());
