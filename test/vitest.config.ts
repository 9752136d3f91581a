import { defineConfig } from 'vitest/config';

const growth = 'test/**/growth.test.ts';

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    environment: 'node',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'tests',
          include: ['test/**/*.test.ts'],
          exclude: [growth],
          globalSetup: ['test/servers.ts'],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        // What compares times has the machine to itself.
        test: { name: 'growth', include: [growth], sequence: { groupOrder: 1 } },
      },
    ],
  },
});
