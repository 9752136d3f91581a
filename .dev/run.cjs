// Runs a command of package.json with all that it needs: `node .dev/run.cjs [set …] -- command …`. A
// command that is one argument is a line for the shell.
//
// A set is a folder here: packages that only some commands use, with a lock file. It is installed when
// a command names it for the first time, and again when its lock file has changed. So is a Node, where
// the one of this machine is too old for the tools. This file has to run on that one.
'use strict';
const { spawn, spawnSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const { existsSync, lstatSync, readFileSync, symlinkSync, writeFileSync } = require('node:fs');
const { constants } = require('node:os');
const { delimiter, join } = require('node:path');
const { isatty } = require('node:tty');

const root = join(__dirname, '..');
/** Where the packages of a set are found by the files that import them. */
const LINKS = {
  test: ['test', 'examples'],
  prisma: ['examples/prisma'],
  bench: ['test/bench'],
  mutation: ['test/mutation'],
  docs: ['docs'],
};
const isWindows = process.platform === 'win32';

const args = process.argv.slice(2);
const split = args.indexOf('--');
const [command, ...rest] = args.slice(split + 1);
if (split === -1 || command === undefined) fail('usage: node .dev/run.cjs [set …] -- command …');

const env = { ...process.env };
const pathName = Object.keys(env).find((name) => name.toUpperCase() === 'PATH') ?? 'PATH';
// npm sets these for the folder that it was called in.
for (const name of ['npm_config_local_prefix', 'npm_config_prefix']) delete env[name];

/** The folders of commands: those of the root first, for some sets bring a TypeScript of their own. */
const folders = [join(root, 'node_modules/.bin')];
const inherited = env[pathName];
env[pathName] = [...folders, inherited].join(delimiter);
// All that is installed after it runs on it, npm too.
if (!canRunTools(process.versions.node)) install('node');
for (const set of args.slice(0, split)) install(set);

const child = spawn(command, rest, {
  cwd: root,
  env,
  stdio: 'inherit',
  shell: isWindows || rest.length === 0,
});
process.on('SIGTERM', () => child.kill());
// A terminal sends these to the command as well.
const hasTerminal = isatty(0);
for (const signal of ['SIGINT', 'SIGHUP'])
  process.on(signal, () => hasTerminal || child.kill(signal));
child.on('error', (error) => fail(`${command}: ${error.message}`));
child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));

/** What the engines of tsup and vitest have in common, which also runs TypeScript as it is. */
function canRunTools(version) {
  const [major, minor] = version.split('.').map(Number);
  return (major === 22 && minor >= 18) || (major === 24 && minor >= 11) || major >= 26;
}

function install(set) {
  const folder = join(__dirname, set);
  if (!existsSync(join(folder, 'package.json'))) fail(`.dev has no set "${set}"`);
  const lock = readFileSync(join(folder, 'package-lock.json'));
  const hash = createHash('sha256').update(lock).digest('hex');
  const stamp = join(folder, 'node_modules/.installed');
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== hash) {
    process.stderr.write(`installing what ${set} needs, once\n`);
    const options = ['install', '--no-audit', '--no-fund', '--no-save', '--loglevel=error'];
    // Packages run nothing when they are installed, but that of Node, which fetches its binary so.
    if (set !== 'node') options.push('--ignore-scripts');
    const { status } = spawnSync('npm', options, {
      cwd: folder,
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
      shell: isWindows,
    });
    if (status !== 0) fail(`npm install failed in .dev/${set}`);
    writeFileSync(stamp, hash);
  }
  folders.push(join(folder, 'node_modules/.bin'));
  env[pathName] = [...folders, inherited].join(delimiter);
  link(set, join(folder, 'node_modules'));
}

function link(set, target) {
  for (const place of LINKS[set] ?? []) {
    const path = join(root, place, 'node_modules');
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) {
      symlinkSync(target, path, 'junction');
    }
  }
}

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}
