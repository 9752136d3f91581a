// The runtimes, and a project outside the tree that has the packed package installed.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';

const ROOT = new URL('../..', import.meta.url).pathname;
const TOOLS = join(ROOT, '.cache/runtimes');
const HERE = new URL('.', import.meta.url).pathname;

/** What a build does not need, besides what begins with a dot and is not what runs it. */
const LEFT_OUT = new Set(['node_modules', 'dist', 'data', 'coverage']);

/** Node.js as packages of npm; the first of each line is the oldest that is supported. */
const NODES = {
  'node-20.19': '20.19.0',
  'node-22.13': '22.13.0',
  'node-22': '22.23.3',
  'node-24': '24.21.0',
  'node-26': '26.10.0',
};

const OTHERS = {
  '@types/node': '22.20.5',
  esbuild: '0.28.2',
  jest: '30.5.2',
  miniflare: '4.20260426.0',
  'typescript-5.4': 'npm:typescript@5.4.3',
  'typescript-5.9': 'npm:typescript@5.9.3',
  'typescript-6.0': 'npm:typescript@6.0.3',
  'typescript-7.0': 'npm:typescript@7.0.2',
};

/** Not for every platform; npm goes on without them. */
const BINARIES = {
  bun: '1.4.5',
  deno: '2.9.6',
  ...Object.fromEntries(Object.entries(NODES).map(([name, version]) => [name, nodeAt(version)])),
};

const MINUTES_MS = 60_000;

/** How a program ended. */
export interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
}

export interface RunOptions {
  readonly cwd: string;
  readonly env?: NodeJS.ProcessEnv | undefined;
}

/** Runs a program to its end, which comes in three minutes at the latest. */
export async function run(
  command: string,
  args: readonly string[],
  { cwd, env = process.env }: RunOptions,
): Promise<Ended> {
  const child = spawn(command, args, {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 3 * MINUTES_MS,
    killSignal: 'SIGKILL',
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject).on('close', resolve);
  });
  return { stdout, stderr, code };
}

/** What a program prints; rejects with all of it when the program fails. */
export async function outputOf(
  command: string,
  args: readonly string[],
  options: RunOptions,
): Promise<string> {
  const { stdout, stderr, code } = await run(command, args, options);
  if (code === 0) return stdout;
  throw new Error(`${command} ${args.join(' ')} exited with ${code}\n${stdout}${stderr}`);
}

/** A module of the tools. */
export const requireTool = createRequire(join(TOOLS, 'package.json'));

/** A file of the tools, where this platform has it. */
export function toolFile(...path: readonly string[]): string | undefined {
  const file = join(TOOLS, 'node_modules', ...path);
  return existsSync(file) ? file : undefined;
}

/** The file of a runtime that comes in a package of its own for each platform. */
export function binaryOf(scope: string, ...path: readonly string[]): string | undefined {
  const folder = toolFile(scope);
  if (folder === undefined) return undefined;
  return readdirSync(folder)
    .map((name) => join(folder, name, ...path))
    .find(existsSync);
}

/** Installs the runtimes, unless these very ones are there. */
export async function installTools(): Promise<void> {
  const manifest = JSON.stringify({
    private: true,
    dependencies: OTHERS,
    optionalDependencies: BINARIES,
  });
  const stamp = join(TOOLS, 'installed.json');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === manifest) return;
  mkdirSync(TOOLS, { recursive: true });
  writeFileSync(join(TOOLS, 'package.json'), manifest);
  await npmInstall(TOOLS, ['--no-package-lock', '--ignore-scripts']);
  // What is missing may be for another platform, or may have been out of reach: it is tried again.
  if (Object.keys(BINARIES).every((name) => toolFile(name))) writeFileSync(stamp, manifest);
}

/** A project that uses the package, as ES modules in `esm` and as CommonJS in `cjs`. */
export interface Project {
  readonly folder: string;
  readonly tarball: string;
  remove(): void;
}

/**
 * Installs a tarball as a user would.
 *
 * @param given its path. @default builds and packs a copy of the tree
 */
export async function newProject(given?: string): Promise<Project> {
  const base = mkdtempSync(join(tmpdir(), 'tokenwright-runtimes-'));
  const folder = join(base, 'project');
  try {
    const tarball = given ?? (await pack(base));
    mkdirSync(folder);
    await installTarball(folder, tarball);
    writeSources(folder, 'esm', 'module', ts.ModuleKind.ESNext);
    writeSources(folder, 'cjs', 'commonjs', ts.ModuleKind.CommonJS);
    return { folder, tarball, remove: () => rmSync(base, { recursive: true, force: true }) };
  } catch (error) {
    rmSync(base, { recursive: true, force: true });
    throw error;
  }
}

/** Installs the package into a folder that holds nothing. */
export async function installTarball(
  folder: string,
  tarball: string,
  ...flags: readonly string[]
): Promise<void> {
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true }));
  await npmInstall(folder, [...flags, tarball]);
}

/** Every file below a folder, with what it holds. */
export function contentsOf(folder: string): Map<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  return new Map(
    files.map((file) => [
      file.slice(folder.length),
      createHash('sha256').update(readFileSync(file)).digest('hex'),
    ]),
  );
}

async function pack(base: string): Promise<string> {
  const copy = join(base, 'tree');
  mkdirSync(copy);
  for (const name of readdirSync(ROOT)) {
    if (name.startsWith('.') || LEFT_OUT.has(name)) continue;
    cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  }
  cpSync(join(ROOT, '.dev/run.cjs'), join(copy, '.dev/run.cjs'));
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  await outputOf('npm', ['run', '--silent', 'build'], { cwd: copy });
  const packed = await outputOf('npm', ['pack', '--json', '--pack-destination', base], {
    cwd: copy,
  });
  const name = /"filename": *"(.+?)"/.exec(packed)?.[1];
  if (name === undefined) throw new Error(`npm pack names no file\n${packed}`);
  return join(base, name);
}

async function npmInstall(cwd: string, args: readonly string[]): Promise<void> {
  const flags = ['--no-audit', '--no-fund', '--prefer-offline'];
  await outputOf('npm', ['install', ...flags, ...args], { cwd });
}

function writeSources(
  folder: string,
  name: string,
  type: 'module' | 'commonjs',
  module: ts.ModuleKind,
): void {
  const target = join(folder, name);
  mkdirSync(target);
  writeFileSync(join(target, 'package.json'), JSON.stringify({ private: true, type }));
  for (const file of ['program', 'stores', 'main', 'together', 'types']) {
    const source = readFileSync(join(HERE, `${file}.ts`), 'utf8');
    writeFileSync(join(target, `${file}.ts`), source);
    const { outputText } = ts.transpileModule(source, {
      compilerOptions: {
        module,
        target: ts.ScriptTarget.ES2022,
        esModuleInterop: true,
        rewriteRelativeImportExtensions: true,
      },
    });
    writeFileSync(join(target, `${file}.js`), outputText);
  }
}

function nodeAt(version: string): string {
  const system = process.platform === 'win32' ? 'win' : process.platform;
  return `npm:node-${system}-${process.arch}@${version}`;
}
