import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';

const main = new URL('../../../src/app/cli/main.ts', import.meta.url).pathname;

/** Whether programs can be run in a terminal of their own here: by `script` of util-linux. */
export const HAS_TERMINALS =
  spawnSync('script', ['-qec', 'true', '/dev/null'], { stdio: ['pipe', 'ignore', 'ignore'] })
    .status === 0;

/** A shell line that runs in a terminal of its own. */
export interface Terminal {
  /** Types keys as a person does. */
  type(keys: string): void;
  /** Resolves with all output, once it contains the text; rejects if the line ends before. */
  shows(text: string): Promise<string>;
  /** Resolves with all output, once the line has ended. */
  readonly ended: Promise<string>;
}

/** Runs a line of `sh` in a terminal. In it, `tokenwright` is the command. */
export function inTerminal(line: string, environment: NodeJS.ProcessEnv = {}): Terminal {
  const { PATH, HOME } = process.env;
  const script = `stty cols 80; tokenwright() { "$NODE" "$MAIN" "$@"; }; ${line}`;
  const env = { PATH, HOME, SHELL: '/bin/sh', NODE: process.execPath, MAIN: main, TERM: 'xterm' };
  const child = spawn('script', ['-qec', script, '/dev/null'], { env: { ...env, ...environment } });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  const ended = once(child, 'close').then(() => output);
  return {
    type: (keys) => void child.stdin.write(keys),
    async shows(text) {
      while (!output.includes(text)) {
        const isOver = await Promise.race([once(child.stdout, 'data'), ended]);
        if (typeof isOver === 'string') throw new Error(`it ended without ${text}: ${output}`);
      }
      return output;
    },
    ended,
  };
}
