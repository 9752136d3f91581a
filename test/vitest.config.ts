import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

const root = new URL('..', import.meta.url).pathname;
const growth = 'test/**/growth.test.ts';
const faults = 'test/faults/**/*.test.ts';
/** What starts processes, looks at the built package, or takes long. */
const long = [
  'test/{docs,examples,nightly,package,types}/**/*.test.ts',
  'test/app/{cli,server}/**/*.test.ts',
  'test/app/console/browser/*.test.ts',
  'test/stores/sqlite/{bulk,checkpoints,files,lock}.test.ts',
  'test/stores/{lineage,lineage-*,rotation}.test.ts',
  'test/stores/redis/generations.test.ts',
  'test/stores/{mysql/galera,postgres/{pglite,poolers}}.test.ts',
  'test/http/{hostile,under-load}.test.ts',
  'test/http/{description/{client,document},guard/{mounts,routers},sign-in/basic-auth}.test.ts',
  'test/mcp/conformance.test.ts',
  'test/openapi/sources.test.ts',
  'test/scope/{entry,hostile,typed}.test.ts',
  'test/{docstrings,known-defects,regexes}.test.ts',
  'test/values/heap.test.ts',
];
/** The contracts, and the engines that keep them. */
const engines = [
  'test/stores/**/*.test.ts',
  'test/testing/faults.test.ts',
  'test/usage/engines.test.ts',
];
const filesWith = (pattern: RegExp): string[] =>
  globSync('test/**/*.test.ts', { cwd: root, exclude: ['**/node_modules'] }).filter((file) =>
    pattern.test(readFileSync(join(root, file), 'utf8')),
  );
/** Where properties are, by the file that says how often they are tried. */
const laws = filesWith(/\/laws\.ts'/);
/** What replaces modules, timers or globals needs a process of its own. All other unit tests share one for each core. */
const isolated = filesWith(/\bvi\.(?!fn\b)|\bprocess\.(?:on|env|emit|stdout)|globalThis|canary/);

/** The engines lane has two ways to use an engine, the default and the worst host. The names of others say so. */
const furtherWays = String.raw`\(further\)`;
/** By name within files; an option that vitest reads for each project and types for all of them. */
const named = (pattern: string): object => ({ testNamePattern: new RegExp(pattern) });

/** How often the long lane tries a property, unless it is said. */
const many = { LAW_RUNS: process.env['LAW_RUNS'] ?? '1000' };
const shared = {
  environment: 'node',
  testTimeout: 30_000 + 100 * Number(many.LAW_RUNS),
  hookTimeout: 120_000,
  setupFiles: ['test/timers.setup.ts', 'test/canary.setup.ts'],
  exclude: ['**/node_modules/**'],
};
/** Where nothing measures times, all cores may work. */
const parallel = { ...shared, maxWorkers: '100%', sequence: { groupOrder: 0 } };
/** What measures times has the machine to itself, one file after the other. */
const alone = { ...shared, fileParallelism: false };
const others = (...patterns: string[]) => [...shared.exclude, ...patterns];

/** A lane is a project, or some of them: see test/run.ts. */
const projects = [
  {
    ...parallel,
    name: 'unit',
    include: ['test/**/*.test.ts'],
    exclude: others(...engines, ...long, ...isolated, growth, faults),
    isolate: false,
  },
  {
    ...parallel,
    name: 'isolated',
    include: isolated,
    exclude: others(...engines, ...long, growth, faults),
  },
  {
    ...parallel,
    name: 'engines',
    include: engines,
    exclude: others(...long, growth),
    ...named(`^(?![^]*${furtherWays})`),
  },
  {
    ...parallel,
    name: 'ways',
    include: engines,
    exclude: others(...long, growth),
    ...named(furtherWays),
  },
  { ...parallel, name: 'long', include: long, exclude: others(growth), env: many },
  // Once more, with more cases than on each push.
  {
    ...parallel,
    name: 'laws',
    include: laws,
    exclude: others(...long),
    env: many,
  },
  { ...alone, name: 'faults', include: [faults], sequence: { groupOrder: 1 } },
  {
    ...alone,
    name: 'growth',
    include: [growth],
    setupFiles: [],
    sequence: { groupOrder: 2 },
  },
];

export default defineConfig({
  root,
  test: {
    globalSetup: ['test/servers.ts'],
    projects: projects.map((test) => ({ root, test })),
  },
});
