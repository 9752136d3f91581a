import { defineConfig } from 'vitest/config';

const root = new URL('..', import.meta.url).pathname;
const growth = 'test/**/growth.test.ts';
const faults = 'test/faults/**/*.test.ts';
/** What starts processes or servers, looks at the built package, or takes long. */
const long = [
  'test/{docs,examples,nightly,package}/**/*.test.ts',
  'test/app/{cli,server}/**/*.test.ts',
  'test/app/console/browser/*.test.ts',
  'test/stores/{mysql,postgres,redis}/*.test.ts',
  'test/stores/sqlite/!(index).test.ts',
  'test/stores/{usage,lease}-*.test.ts',
  'test/stores/{lineage,lineage-*,rotation,transaction}.test.ts',
  'test/recipes/**/*.test.ts',
  'test/usage/engines.test.ts',
  'test/http/{hostile,under-load}.test.ts',
  'test/http/{sign-in/basic-auth,description/document,guard/mounts}.test.ts',
  'test/openapi/sources.test.ts',
  'test/scope/{entry,hostile,typed}.test.ts',
  'test/{docstrings,known-defects,regexes}.test.ts',
];
/** Where nothing measures times, all cores may work. */
const maxWorkers = '100%';
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
          exclude: [...long, growth, faults, '**/node_modules/**'],
          maxWorkers,
          sequence: { groupOrder: 0 },
        },
      },
      {
        root,
        test: {
          ...shared,
          name: 'long',
          setupFiles: ['test/canary.setup.ts'],
          include: long,
          exclude: [growth, faults, '**/node_modules/**'],
          maxWorkers,
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
        test: {
          ...shared,
          name: 'growth',
          include: [growth],
          fileParallelism: false,
          testTimeout: 120_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
