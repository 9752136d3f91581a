import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

const main = new URL('../../src/cli/main.ts', import.meta.url).pathname;

/** What a command printed, and how it ended. */
export interface Run {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
}

/** A service that listens. */
export interface RunningService {
  readonly url: string;
  readonly greeting: string;
  readonly process: ChildProcess;
  /** Ends it with a signal, and says how it ended. */
  stop(signal?: NodeJS.Signals): Promise<Run>;
}

/** An empty folder that goes with the test. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs the command to its end. */
export async function run(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<Run> {
  return start(args, environment).ended;
}

/** Runs `serve` on a free port until it is ready. */
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
  service: RunningService,
  path: string,
  { as = 'ada:pw', method = 'GET', body = undefined as unknown } = {},
) {
  const response = await fetch(service.url + path, {
    method,
    headers: {
      authorization: `Basic ${Buffer.from(as).toString('base64')}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: an answer of any shape
  return { status: response.status, body: (await response.json()) as any };
}

function start(args: readonly string[], environment: NodeJS.ProcessEnv) {
  const { PATH, HOME } = process.env;
  const child = spawn(process.execPath, [main, ...args], { env: { PATH, HOME, ...environment } });
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
