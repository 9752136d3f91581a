import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, vi } from 'vitest';
import type { Command, Part } from '../../../src/app/cli/command.ts';
import { CATALOG_COMMANDS } from '../../../src/app/cli/commands/catalog.ts';
import { LIST_COMMANDS } from '../../../src/app/cli/commands/catalog-lists.ts';
import { CATALOG_TEST } from '../../../src/app/cli/commands/catalog-test.ts';
import { WORD_COMMANDS } from '../../../src/app/cli/commands/catalog-words.ts';
import { COMMANDS as EVERY_COMMAND } from '../../../src/app/cli/commands/index.ts';
import { SERVE } from '../../../src/app/cli/commands/serve.ts';
import { loadKeys } from '../../../src/app/server/files/key-file.ts';
import { describeError } from '../../../src/app/terminal/error-message.ts';
import { CliError } from '../../../src/app/terminal/errors.ts';
import type { Example } from '../../../src/app/terminal/layout.ts';
import { TokenService, type TokenServiceOptions } from '../../../src/index.ts';
import { SqliteTokenStore } from '../../../src/stores/sqlite/index.ts';
import { manualClock } from '../../../src/testing/index.ts';

/** The flags for the account that `call` uses. */
export const ACCOUNT = ['--account', 'ada:correct-horse'];

/** Real catalogs and documents, which are not in the repository. */
export const REAL_DATA = new URL('../../../../shared/data/', import.meta.url).pathname;

const main = new URL('../../../src/app/cli/main.ts', import.meta.url).pathname;

/** What a command printed, and how it ended. */
export interface Run {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
}

/** A running service. */
export interface RunningService {
  readonly url: string;
  readonly greeting: string;
  readonly process: ChildProcess;
  /** Sends a signal, and resolves once the service has exited. */
  stop(signal?: NodeJS.Signals): Promise<Run>;
}

/** An empty folder, removed when the test ends. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A service on the store and the keys of a data folder, set up like serve. */
export function serviceOn(
  data: string,
  options: Pick<TokenServiceOptions, 'reveal' | 'foreign'> & {
    readonly limits?: true;
    readonly usage?: true;
  } = {},
): TokenService {
  const store = SqliteTokenStore.open(data);
  const tokens = new TokenService({ store, keys: loadKeys(data), prefix: 'tw', ...options });
  onTestFinished(() => tokens.close());
  return tokens;
}

/** Hides the settings of this machine from commands in this process. Use it with `beforeEach`. */
export function hideVariables(): () => void {
  for (const name of Object.keys(process.env)) {
    if (name.startsWith('TOKENWRIGHT_')) vi.stubEnv(name, undefined);
  }
  return () => vi.unstubAllEnvs();
}

/** A log to read with `take`, and a clock and timers that the test controls. */
export function newLog() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'], now: manualClock().now() });
  onTestFinished(() => void vi.useRealTimers());
  const texts: string[] = [];
  return {
    clock: {
      now: () => new Date(),
      advance: (seconds: number) => void vi.advanceTimersByTime(seconds * 1000),
    },
    texts,
    write: (text: string) => void texts.push(text),
    take: () => texts.splice(0),
  };
}

/** Starts a server on a free local port, and closes it when the test ends. */
export async function listen(server: Server): Promise<number> {
  onTestFinished(() => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

/** The example in the help of a command. */
export function exampleOf(command: string): Example {
  const known = ALL_COMMANDS.find(({ name }) => name === command);
  if (known === undefined) throw new Error(`no such command: ${command}`);
  return known.example;
}

/** Runs the command to its end. Without `input`, its standard input stays open and empty. */
export async function run(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
  input?: string,
): Promise<Run> {
  const { child, ended } = start(args, environment);
  if (input !== undefined) child.stdin.end(input);
  return ended;
}

/**
 * Runs `serve --check` inside this process: what it prints, and how it ends. It reads the variables of this
 * process.
 */
export async function check(args: readonly string[]): Promise<Run> {
  const warnings: string[] = [];
  const printed = vi.spyOn(console, 'error').mockImplementation((line) => void warnings.push(line));
  try {
    const outcome = await SERVE.run([...args, '--check'], () => async () => {});
    const text = outcome !== undefined && 'text' in outcome ? `${outcome.text}\n` : '';
    return { code: 0, stdout: text, stderr: warnings.map((line) => `${line}\n`).join('') };
  } catch (error) {
    const code = error instanceof CliError ? error.exitCode : 1;
    const lines = [...warnings, `tokenwright: ${describeError(error)}`];
    return { code, stdout: '', stderr: lines.map((line) => `${line}\n`).join('') };
  } finally {
    printed.mockRestore();
  }
}

/** Runs a shell line in which `tokenwright` is the command and `$1` the first argument. */
export async function runInShell(line: string, ...args: readonly string[]): Promise<Run> {
  const script = `tokenwright() { "$NODE" "$MAIN" "$@"; }; ${line}`;
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, NODE: process.execPath, MAIN: main };
  return outputOf(spawn('bash', ['-c', script, 'bash', ...args], { env })).ended;
}

/** The commands for catalogs and lists of scopes, which only read and print. */
export const COMMANDS: readonly Command[] = [
  ...CATALOG_COMMANDS,
  ...WORD_COMMANDS,
  ...LIST_COMMANDS,
  CATALOG_TEST,
];

/** All commands except serve, which runs until it is stopped. */
export const ALL_COMMANDS: readonly Command[] = EVERY_COMMAND.filter(
  ({ name }) => name !== 'serve',
);

/** Runs a command inside this process, and returns its outcome. */
export async function outcomeOf(words: readonly string[]) {
  const known = ALL_COMMANDS.find(({ name }) => `${words.join(' ')} `.startsWith(`${name} `));
  const parts: Part[] = [];
  const print = async (part: Part) => void parts.push(part);
  const outcome = await known?.run(words.slice(known.name.split(' ').length), () => print);
  if (outcome === undefined) throw new Error(`no such command: ${words.join(' ')}`);
  const { text, json, ...rest } =
    'isInParts' in outcome
      ? {
          ...outcome,
          text: parts.map((part) => part.text).join('\n'),
          json: parts.map((part) => part.json),
        }
      : outcome;
  return { ...rest, text, json: JSON.parse(JSON.stringify(json)) };
}

/** Writes files to a folder that is removed when the test ends; returns the path of each by name. */
export function filesOf(contents: Readonly<Record<string, unknown>>): (name: string) => string {
  const folder = newFolder();
  for (const [name, content] of Object.entries(contents)) {
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    writeFileSync(join(folder, name), text);
  }
  return (name) => join(folder, name);
}

/** Starts `serve` on a free port, and waits until it is ready. */
export async function serve(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<RunningService> {
  const { child, output, ended } = start(['serve', '--port', '0', ...args], environment);
  onTestFinished(() => void child.kill('SIGKILL'));
  while (!/curl[\s\S]*\/token\n/.test(output.stdout)) {
    const more = await Promise.race([once(child.stdout as NodeJS.ReadableStream, 'data'), ended]);
    if (!Array.isArray(more)) throw new Error(`the service did not start: ${JSON.stringify(more)}`);
  }
  const url = /listens on (http:\S+)/.exec(output.stdout)?.[1] ?? '';
  return {
    url,
    greeting: output.stdout,
    process: child,
    stop(signal = 'SIGTERM') {
      child.kill(signal);
      return ended;
    },
  };
}

/** Calls a service with Basic credentials. */
export async function call(
  service: Pick<RunningService, 'url'>,
  path: string,
  { as = 'ada:correct-horse', method = 'GET', body = undefined as unknown } = {},
) {
  const response = await fetch(service.url + path, {
    method,
    headers: {
      authorization: `Basic ${Buffer.from(as).toString('base64')}`,
      // A kept-alive connection would delay the shutdown of the service.
      connection: 'close',
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: an answer of any shape
  return { status: response.status, body: (await response.json()) as any };
}

/** Starts the command without waiting for its end. */
export function start(args: readonly string[], environment: NodeJS.ProcessEnv = {}) {
  const { PATH, HOME } = process.env;
  return outputOf(
    spawn(process.execPath, [main, ...args], { env: { PATH, HOME, ...environment } }),
  );
}

function outputOf(child: ChildProcessWithoutNullStreams) {
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => {
    output.stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    output.stderr += chunk;
  });
  const ended = once(child, 'close').then(([code]): Run => ({ ...output, code }));
  return { child, output, ended };
}
