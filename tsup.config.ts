import { defineConfig, type Options } from 'tsup';

/** One for each subpath of the package. */
const entry = {
  index: 'src/index.ts',
  scope: 'src/scope/index.ts',
  openapi: 'src/openapi.ts',
  http: 'src/http/index.ts',
  sqlite: 'src/stores/sqlite.ts',
  postgres: 'src/stores/postgres.ts',
  mysql: 'src/stores/mysql.ts',
  redis: 'src/stores/redis.ts',
  testing: 'src/testing/index.ts',
};

const common: Options = {
  outDir: 'dist',
  target: 'node20',
  platform: 'node',
  splitting: true,
  sourcemap: true,
  removeNodeProtocol: false,
  dts: { entry },
  // In a user's tree they would weigh more than they do: what is used of them is bundled.
  noExternal: ['nanoid', 'date-fns'],
};

export default defineConfig([
  { ...common, format: ['esm'], entry: { ...entry, cli: 'src/cli/main.ts' } },
  // In CommonJS there is no import.meta, by which the files of the reference page are found.
  { ...common, format: ['cjs'], entry, shims: true },
]);
