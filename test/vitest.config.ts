import { defineConfig } from 'vitest/config';

const root = new URL('..', import.meta.url).pathname;
const growth = 'test/**/growth.test.ts';
const faults = 'test/faults/**/*.test.ts';
const shared = { environment: 'node', testTimeout: 30_000, hookTimeout: 120_000 };

export default defineConfig({
  root,
  test: {
    globalSetup: ['test/servers.ts'],
    projects: [
      {
        root,
        test: {
          ...shared,
          name: 'tests',
          setupFiles: ['test/canary.setup.ts'],
          include: ['test/**/*.test.ts'],
          exclude: [growth, faults],
          sequence: { groupOrder: 0 },
        },
      },
      // What measures times has the machine to itself, one file after the other.
      {
        root,
        test: {
          ...shared,
          name: 'faults',
          setupFiles: ['test/canary.setup.ts'],
          include: [faults],
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
      {
        root,
        test: { ...shared, name: 'growth', include: [growth], sequence: { groupOrder: 2 } },
      },
    ],
  },
});
