// Processes that run a script at the same time, for tests of migrations and shared files.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

export interface Child {
  /** Settles when the script has printed something. */
  readonly started: Promise<unknown>;
  readonly ended: Promise<{ code: number; errors: string }>;
  /** Sends a line to the script. */
  go(): void;
}

/** Runs a module in a new process, from the root of the repository, so that it finds the drivers. */
export function startChild(script: string): Child {
  const options = ['--no-warnings', '--input-type=module', '--eval', script];
  const cwd = new URL('../..', import.meta.url);
  const child: ChildProcess = spawn(process.execPath, options, { cwd });
  const errors = text(child.stderr as NonNullable<typeof child.stderr>);
  return {
    started: once(child.stdout as NonNullable<typeof child.stdout>, 'data'),
    ended: once(child, 'exit').then(async ([code]) => ({ code, errors: await errors })),
    go: () => child.stdin?.write('go'),
  };
}

/** Waits until all processes have started, lets them go on together, and returns how they ended. */
export async function runTogether(children: readonly Child[]): Promise<readonly unknown[]> {
  await Promise.all(children.map(({ started }) => started));
  for (const { go } of children) go();
  return Promise.all(children.map(({ ended }) => ended));
}
