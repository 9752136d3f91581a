import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { defineConfig, type Options } from 'tsup';
import { buildPage } from './src/app/console/assets.ts';

/** One for each subpath of the package. */
const entry: Record<string, string> = {
  index: 'src/index.ts',
  scope: 'src/scope/index.ts',
  openapi: 'src/openapi/index.ts',
  http: 'src/http/index.ts',
  mcp: 'src/mcp/index.ts',
  console: 'src/app/console/index.ts',
  testing: 'src/testing/index.ts',
  sqlite: 'src/stores/sqlite/index.ts',
  postgres: 'src/stores/postgres/index.ts',
  mysql: 'src/stores/mysql/index.ts',
  redis: 'src/stores/redis/index.ts',
};

/**
 * No subpath, but a file of its own: a bundler drops a whole file that is not used. Otherwise the store
 * and the rules of tokens would share a file with the schemas, and a program that imports just the
 * store would keep zod.
 */
const apart = { memory: 'src/stores/memory/index.ts' };

type Plugin = NonNullable<Options['esbuildPlugins']>[number];

/** Of our own package.json, what the code reads: whole, it would tell of all our tools. */
const versionAlone: Plugin = {
  name: 'version-alone',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]package\.json$/ }, ({ path }) => {
      if (path !== join(import.meta.dirname, 'package.json')) return undefined;
      const { version } = JSON.parse(readFileSync(path, 'utf8'));
      return { contents: JSON.stringify({ version }), loader: 'json' };
    });
  },
};

/**
 * The JSON Schemas of zod in a file of their own: only the OpenAPI document needs them. esbuild would put
 * them with the rest of zod, because its indexes name them, and each program would load them.
 */
const jsonSchemaApart: Plugin = {
  name: 'json-schema-apart',
  setup({ onLoad, onResolve }) {
    const core = join(import.meta.dirname, 'node_modules/zod/v4/core');
    onResolve({ filter: /^zod\/v4\/core$/ }, () => ({
      path: join(core, 'json-schema-processors.js'),
    }));
    onLoad(
      { filter: /[\\/]zod[\\/]v4[\\/](?:mini[\\/]external|core[\\/]index)\.js$/ },
      ({ path }) => ({
        contents: readFileSync(path, 'utf8').replace(/^export .*json-schema.*$/gm, ''),
      }),
    );
  },
};

/** Whose code is bundled, by the folder of the package. */
const bundled = new Set<string>();

/** The page of the console as texts, in place of the file that builds it: one file for both formats. */
const consolePage: Plugin = {
  name: 'console-page',
  setup({ onResolve, initialOptions: { outdir = 'dist' } }) {
    onResolve({ filter: /^\.\/assets\.ts$/ }, () => {
      const { assets, inputs } = buildPage();
      for (const input of inputs) addBundled(input);
      mkdirSync(outdir, { recursive: true });
      const text = `exports.pageAssets = () => (${JSON.stringify(assets)});\n`;
      writeFileSync(join(outdir, 'console-page.cjs'), text);
      return { path: './console-page.cjs', external: true };
    });
  },
};

/** Writes the licenses of what is bundled beside it. */
const notices: Plugin = {
  name: 'notices',
  setup({ onEnd, initialOptions: { outdir = 'dist' } }) {
    onEnd(({ metafile }) => {
      for (const { inputs } of Object.values(metafile?.outputs ?? {})) {
        for (const [file, { bytesInOutput }] of Object.entries(inputs)) {
          if (bytesInOutput > 0) addBundled(file);
        }
      }
      mkdirSync(outdir, { recursive: true });
      writeFileSync(join(outdir, 'THIRD-PARTY-NOTICES.md'), noticesOf([...bundled].sort()));
    });
  },
};

function addBundled(file: string): void {
  const folder = /^.*node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(file)?.[0];
  if (folder !== undefined) bundled.add(relative(import.meta.dirname, folder));
}

function noticesOf(folders: readonly string[]): string {
  const parts = folders.map((folder) => {
    const { name, version, license } = JSON.parse(
      readFileSync(join(folder, 'package.json'), 'utf8'),
    );
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (file === undefined) throw new Error(`no license is found in ${folder}`);
    const text = readFileSync(join(folder, file), 'utf8').trim();
    return `## ${name} ${version} (${license})\n\n\`\`\`text\n${text}\n\`\`\`\n`;
  });
  return ['# Third-party notices\n\nThis package holds parts of these:\n', ...parts].join('\n');
}

export default defineConfig({
  entry: { ...entry, ...apart, cli: 'src/app/cli/main.ts' },
  format: ['esm'],
  outDir: 'dist',
  target: 'node20',
  platform: 'node',
  splitting: true,
  removeNodeProtocol: false,
  dts: { entry },
  esbuildPlugins: [versionAlone, consolePage, jsonSchemaApart, notices],
  // In a user's tree they would weigh more than they do: what is used of them is bundled.
  noExternal: ['zod', 'nanoid', 'date-fns'],
  // What people install beside it for a part of the command.
  external: ['@apidevtools/swagger-parser', 'prom-client', 'swagger-ui-dist'],
});
