// What is run where.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { builtinModules, createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { isInstalled, startServer } from '../servers.ts';
import {
  binaryOf,
  contentsOf,
  installTarball,
  outputOf,
  type Project,
  requireTool,
  run,
  toolFile,
} from './project.ts';

/** One runtime, used in one way. */
export interface Lane {
  readonly runtime: string;
  readonly format: string;
  /** The file that runs; absent where this platform has none. */
  readonly binary: string | undefined;
  /** The version that runs, as it says itself; absent for what is no runtime of its own. */
  readonly version?: (binary: string) => Promise<string>;
  /** Rejects with what went wrong. */
  run(binary: string, project: Project): Promise<void>;
}

const CORE = 'verbs scopes service guard openapi contract faults';
const SQLITE_DONE = `${CORE} databases sqlite`;
const FORMATS = [
  ['ESM', 'esm'],
  ['CommonJS', 'cjs'],
] as const;

/** All lanes, in the order of the table. */
export function allLanes(): Lane[] {
  const bun = binaryOf('@oven', 'bin', 'bun');
  const deno = binaryOf('@deno', 'deno');
  return [
    ...nodeLanes('node-20.19', false),
    ...['node-22.13', 'node-22', 'node-24', 'node-26'].flatMap((name) => nodeLanes(name, true)),
    ...programLanes('Bun', bun, []),
    ...programLanes('Deno', deno, ['run', '--allow-all', '--node-modules-dir=manual']),
    workerdLane(),
    workerdOnPostgresLane(),
    ...['5.4', '5.9', '6.0', '7.0'].flatMap((line) =>
      ['node16', 'nodenext', 'bundler'].map((resolution) => typescriptLane(line, resolution)),
    ),
    jestLane(),
    browserLane(),
    installLane(),
  ];
}

function nodeLanes(name: string, hasSqlite: boolean): Lane[] {
  const binary = toolFile(name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
  const node = { runtime: 'Node.js', binary, version: versionOf };
  return [
    ...programLanes('Node.js', binary, [], hasSqlite),
    { ...node, format: 'command', run: (file, project) => command(file, project) },
    hasSqlite
      ? { ...node, format: 'serve', run: (file, project) => serve(file, project) }
      : { ...node, format: 'no serve', run: (file, project) => serveRefuses(file, project) },
  ];
}

/** The whole program in each format, and both formats in one process. */
function programLanes(
  runtime: string,
  binary: string | undefined,
  flags: readonly string[],
  hasSqlite = true,
): Lane[] {
  const lane = { runtime, binary, version: versionOf };
  const done = hasSqlite ? SQLITE_DONE : `${CORE} databases no-sqlite`;
  return [
    ...FORMATS.map(([format, folder]) => ({
      ...lane,
      format,
      async run(file: string, project: Project) {
        const cwd = join(project.folder, folder);
        const which = hasSqlite ? 'sqlite' : 'none';
        assert.equal(
          await outputOf(file, [...flags, 'main.js', which], { cwd }),
          `done: ${done}\n`,
        );
      },
    })),
    {
      ...lane,
      format: 'both together',
      async run(file, project) {
        const cwd = join(project.folder, 'esm');
        assert.equal(await outputOf(file, [...flags, 'together.js'], { cwd }), 'done: together\n');
      },
    },
  ];
}

/** Help, an answer and a negative one, by npx where the package is installed. */
async function command(node: string, { folder }: Project): Promise<void> {
  const options = { cwd: folder, env: environment(node) };
  const npx = (...args: string[]) => run('npx', ['tokenwright', ...args], options);
  const help = await npx('--help');
  assert.equal(help.code, 0, help.stderr);
  assert.match(help.stdout, /serve .*runs the token service/);

  const orders = 'GET:shop.example/orders';
  const less = await npx('catalog', 'minimize', `${orders},${orders}/open`);
  assert.deepEqual([less.stdout, less.code], [`${orders}\n`, 0]);
  const refused = await npx('catalog', 'explain', orders, 'POST', 'https://shop.example/orders');
  assert.equal(refused.code, 3, refused.stderr);
  assert.equal((await npx('nonsense')).code, 2);
}

/** One call answered, one refused, and a clean end. */
async function serve(node: string, { folder }: Project): Promise<void> {
  const child = spawn(tokenwright(folder), serveArgs(folder), {
    cwd: folder,
    env: { ...environment(node), TOKENWRIGHT_ACCOUNTS: 'ada:correct-horse' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 60_000,
    killSignal: 'SIGKILL',
  });
  const ended = once(child, 'close');
  let printed = '';
  const address = await new Promise<string>((resolve, reject) => {
    const read = (chunk: Buffer) => {
      printed += chunk;
      const url = /listens on (\S+)/.exec(printed)?.[1];
      if (url !== undefined) resolve(url);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('close', () => reject(new Error(`serve ended\n${printed}`)));
  });
  try {
    const call = (credentials: string) =>
      fetch(`${address}/token`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${btoa(credentials)}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ scopes: ['*:*/*'], ttl: 60 }),
      });
    assert.equal((await call('ada:correct-horse')).status, 200);
    assert.equal((await call('ada:wrong')).status, 401);
  } finally {
    child.kill('SIGTERM');
  }
  assert.deepEqual(await ended, [0, null], printed);
}

/** One clear line, where there is no SQLite inside. */
async function serveRefuses(node: string, { folder }: Project): Promise<void> {
  const options = { cwd: folder, env: environment(node) };
  const { stdout, stderr, code } = await run(tokenwright(folder), serveArgs(folder), options);
  assert.deepEqual([stdout, code], ['', 1]);
  assert.match(stderr, /^tokenwright: .*use Node\.js 22\.13 or later.*\n$/);
}

function serveArgs(folder: string): string[] {
  return ['serve', '--port', '0', '--data', mkdtempSync(join(folder, 'data-'))];
}

function tokenwright(folder: string): string {
  return join(folder, 'node_modules/.bin/tokenwright');
}

/** In which `node` is this one. */
function environment(node: string): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${dirname(node)}:${process.env['PATH']}` };
}

interface Miniflare {
  dispatchFetch(url: string, options: object): Promise<Response>;
  dispose(): Promise<void>;
}

interface Esbuild {
  build(options: object): Promise<{ readonly outputFiles: readonly { readonly text: string }[] }>;
}

const WORKER = `import { PARTS } from './program.js';
export default {
  async fetch() {
    try {
      for (const [, run] of PARTS) await run();
      return new Response('done: ' + PARTS.map(([name]) => name).join(' '));
    } catch (error) {
      return new Response(String(error && error.stack), { status: 500 });
    }
  },
};`;

/** What needs no file, bundled as for a deployment. */
function workerdLane(): Lane {
  return {
    ...workerd(),
    format: 'ESM, what needs no file',
    async run(_, { folder }) {
      await inWorkerd(await bundleOfWorker(folder, WORKER), {}, async (call) => {
        assert.equal(await (await call()).text(), `done: ${CORE}`);
      });
    },
  };
}

/** Looked up when the lanes are listed, as its package may be installed before that. */
function workerd(): Pick<Lane, 'runtime' | 'binary'> & Required<Pick<Lane, 'version'>> {
  return {
    runtime: 'workerd',
    binary: binaryOf('@cloudflare', 'bin', 'workerd'),
    version: async () => requireTool('workerd/package.json').version,
  };
}

/** The example for Workers on PostgreSQL; and with one pool for all requests, which has to say what is wrong. */
function workerdOnPostgresLane(): Lane {
  return {
    ...workerd(),
    format: 'PostgreSQL',
    binary: isInstalled('postgres') ? workerd().binary : undefined,
    async run(_, { folder }) {
      const server = await startServer('postgres');
      const pool = new pg.Pool({ connectionString: server.url });
      try {
        const { key, value } = await issueOn(pool, folder);
        const bindings = {
          HYPERDRIVE: { connectionString: server.url },
          KEYS: JSON.stringify([key]),
        };
        const headers = { authorization: `Bearer ${value}` };
        const example = readFileSync(
          new URL('../../examples/serverless/worker.mjs', import.meta.url),
          'utf8',
        );
        await inWorkerd(await bundleOfWorker(folder, example), bindings, async (call) => {
          for (let count = 0; count < 3; count += 1) {
            assert.deepEqual(await (await call('/orders/7', headers)).json(), { account: 'ada' });
          }
          const all = [1, 2, 3].map(async () => (await call('/orders/7', headers)).status);
          assert.deepEqual(await Promise.all(all), [200, 200, 200]);
          assert.equal((await call('/bills', headers)).status, 403);
          assert.equal((await call('/orders/7')).status, 401);
        });
        const shared = example
          .replace('const pool = new', 'const pool = globalThis.pool ??= new')
          .replace(/.*waitUntil.*\n/, '')
          .replace(
            'onError: console.error',
            'onError: ({ details }) => { reason = details.reason }',
          )
          .replace('outcome.response;', 'new Response(reason, outcome.response);')
          .replace('export default', 'let reason;\nexport default');
        await inWorkerd(await bundleOfWorker(folder, shared), bindings, async (call) => {
          assert.equal((await call('/orders/7', headers)).status, 200);
          const refused = await call('/orders/7', headers);
          assert.deepEqual([refused.status, await refused.text()], [503, 'foreign_request']);
        });
      } finally {
        await pool.end();
        await server.stop();
      }
    },
  };
}

/** Issues a token on Node, by the installed package. */
async function issueOn(pool: pg.Pool, folder: string): Promise<{ key: unknown; value: string }> {
  const require = createRequire(join(folder, 'cjs/package.json'));
  const { generateKey, TokenService }: typeof import('tokenwright') = require('tokenwright');
  const { migrate, PostgresTokenStore }: typeof import('tokenwright/postgres') =
    require('tokenwright/postgres');
  await migrate(pool);
  const key = generateKey();
  const store = new PostgresTokenStore(pool);
  const tokens = new TokenService({ store, keys: [key], prefix: 'acme' });
  const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
  return { key, value };
}

/** As for a deployment. The drivers are those of the tests. */
async function bundleOfWorker(folder: string, contents: string): Promise<string> {
  return bundle(join(folder, 'esm'), contents, {
    conditions: ['workerd', 'worker'],
    external: [
      'node:*',
      'cloudflare:*',
      'pg-native',
      ...builtinModules,
      '@apidevtools/swagger-parser',
    ],
    nodePaths: [join(import.meta.dirname, '../../node_modules')],
    // The CommonJS of pg calls it, for modules of Node.
    banner: {
      js: 'import { createRequire as requireFrom } from "node:module"; const require = requireFrom("/");',
    },
  });
}

type Call = (path?: string, headers?: Record<string, string>) => Promise<Response>;

async function inWorkerd(
  contents: string,
  bindings: object,
  work: (call: Call) => Promise<void>,
): Promise<void> {
  const { Miniflare } = requireTool('miniflare');
  let printed = '';
  const worker: Miniflare = new Miniflare({
    modules: [{ type: 'ESModule', path: 'worker.js', contents }],
    compatibilityDate: '2026-04-01',
    compatibilityFlags: ['nodejs_compat'],
    bindings,
    cf: false,
    handleRuntimeStdio(...streams: NodeJS.ReadableStream[]) {
      for (const stream of streams) {
        stream.on('data', (chunk) => {
          printed += chunk;
        });
      }
    },
  });
  try {
    await work((path = '/', headers = {}) =>
      worker.dispatchFetch(`http://shop.example${path}`, { headers }),
    );
  } catch (error) {
    throw new Error(`${error}\n${printed}`);
  } finally {
    await worker.dispose();
  }
}

const IN_BROWSER = `import { covers, defineCatalog, ScopeSet } from 'tokenwright/scope';
const orders = 'GET:shop.example/orders';
const [granted] = defineCatalog([orders]).expand(['*:*/*']).granted;
const allows = (target) =>
  ScopeSet.from([granted]).allows({ method: 'GET', domain: 'shop.example', target }).allowed;
globalThis.answers = [covers('*:*/*', orders), allows('/orders/7'), allows('/ordersx')];`;

/** A bundle that knows no module and no global of Node, run where there are none. */
function browserLane(): Lane {
  return {
    runtime: 'browsers',
    format: 'tokenwright/scope, bundled',
    binary: toolFile('esbuild', 'package.json'),
    async run(_, { folder }) {
      const script = await bundle(join(folder, 'esm'), IN_BROWSER, {
        platform: 'browser',
        format: 'iife',
      });
      const { runInNewContext } = await import('node:vm');
      const globals: { answers?: unknown } = {};
      runInNewContext(script, globals);
      assert.deepEqual(Array.from(globals.answers as unknown[]), [true, true, false]);
    },
  };
}

/** Fails when something cannot be resolved, or is only to be had in Node. */
async function bundle(resolveDir: string, contents: string, options: object): Promise<string> {
  const esbuild: Esbuild = requireTool('esbuild');
  const { outputFiles } = await esbuild.build({
    stdin: { contents, resolveDir },
    bundle: true,
    write: false,
    format: 'esm',
    logLevel: 'silent',
    ...options,
  });
  return outputFiles.map(({ text }) => text).join('');
}

/** Two consumers, one of each format. */
function typescriptLane(line: string, resolution: string): Lane {
  const name = `typescript-${line}`;
  return {
    runtime: 'TypeScript',
    format: resolution,
    binary: toolFile(name, 'bin', 'tsc'),
    version: async () => requireTool(`${name}/package.json`).version,
    async run(tsc, { folder }) {
      for (const [, format] of FORMATS) {
        const config = join(folder, format, `tsconfig.${line}.${resolution}.json`);
        writeFileSync(config, JSON.stringify(compilerOptions(resolution)));
        await outputOf(process.execPath, [tsc, '-p', config], { cwd: folder });
      }
    },
  };
}

function compilerOptions(resolution: string): object {
  return {
    compilerOptions: {
      module: resolution === 'bundler' ? 'preserve' : resolution,
      moduleResolution: resolution,
      target: 'es2022',
      lib: ['es2022'],
      strict: true,
      skipLibCheck: false,
      noEmit: true,
      esModuleInterop: true,
      allowImportingTsExtensions: true,
      types: ['node'],
      typeRoots: [toolFile('@types')],
    },
    files: ['program.ts', 'stores.ts', 'types.ts'],
  };
}

const JEST = `const { PARTS } = require('../program.js');
const { WITH_SQLITE } = require('../stores.js');
test.each([...PARTS, ...WITH_SQLITE])('%s', (_, run) => run());`;

function jestLane(): Lane {
  return {
    runtime: 'Jest',
    format: 'CommonJS',
    binary: toolFile('jest', 'bin', 'jest.js'),
    version: async () => requireTool('jest/package.json').version,
    async run(jest, { folder }) {
      const rootDir = join(folder, 'cjs/jest');
      mkdirSync(rootDir, { recursive: true });
      writeFileSync(join(rootDir, 'package.json'), JSON.stringify({ private: true }));
      writeFileSync(join(rootDir, 'package.test.js'), JEST);
      const args = [jest, '--rootDir', rootDir, '--json', '--no-watchman', '--no-cache'];
      const { stdout, stderr } = await run(process.execPath, args, { cwd: rootDir });
      const { numPassedTests, numTotalTests } = JSON.parse(stdout || '{}');
      const count = SQLITE_DONE.split(' ').length;
      assert.deepEqual([numPassedTests, numTotalTests], [count, count], stderr);
    },
  };
}

/** What a user gets: one package, and nothing that ran while they were installed. */
function installLane(): Lane {
  return {
    runtime: 'npm',
    format: 'install',
    binary: 'npm',
    async run(_, { folder, tarball }) {
      const packages = readdirSync(join(folder, 'node_modules')).filter(
        (name) => !name.startsWith('.'),
      );
      assert.deepEqual(packages, ['tokenwright']);
      const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
      assert.deepEqual(Object.keys(lock.packages), ['', 'node_modules/tokenwright']);
      for (const [name, { hasInstallScript }] of Object.entries<{ hasInstallScript?: boolean }>(
        lock.packages,
      )) {
        assert.equal(hasInstallScript, undefined, `${name} has an install script`);
      }

      const quiet = join(folder, 'quiet');
      mkdirSync(quiet);
      await installTarball(quiet, tarball, '--ignore-scripts');
      const installed = (base: string) => contentsOf(join(base, 'node_modules/tokenwright'));
      assert.deepEqual(installed(quiet), installed(folder));
    },
  };
}

async function versionOf(binary: string): Promise<string> {
  const printed = await outputOf(binary, ['--version'], { cwd: process.cwd() });
  return /\d+\.\d+\.\d+/.exec(printed)?.[0] ?? printed;
}
