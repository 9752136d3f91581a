import { defineConfig } from 'vitest/config';
import { partOf } from './parts.ts';

const root = new URL('../..', import.meta.url).pathname;
const { tests } = partOf(process.env['MUTATION_PART']);

// Neither servers nor the canary: what they find, the mutants here do not touch.
// biome-ignore lint/style/noDefaultExport: as vitest reads it
export default defineConfig({
  root,
  test: {
    environment: 'node',
    setupFiles: ['test/timers.setup.ts'],
    include: [...tests],
    // Not those that measure, or count over many cases: mutants make them slow, and there are few cases.
    testNamePattern: /^(?!.*(?:event loop|costs about|of very many shapes|in memory only in part))/,
    testTimeout: 120_000,
  },
});
