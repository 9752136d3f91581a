import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { inputError, usageError } from '../terminal/errors.ts';
import type { Terminal } from './progress.ts';

/** Where a person can be asked. */
interface Dialog {
  readonly input: Readable & { readonly isTTY?: boolean };
  /** Not standard output, which may be read by a program. */
  readonly output: Terminal;
}

/**
 * Asks a person before something that cannot be undone. A script has to give `--yes` instead.
 *
 * @param consequence such as `this would revoke all tokens of ada`
 * @throws {CliError} unless it is confirmed
 */
export async function confirm(
  consequence: string,
  { yes }: { readonly yes?: boolean | undefined },
  { input, output }: Dialog = { input: process.stdin, output: process.stderr },
): Promise<void> {
  if (yes === true) return;
  if (input.isTTY !== true || output.isTTY !== true) {
    throw usageError(`${consequence}: add --yes to confirm`);
  }
  output.write(`${consequence}. Continue? [y/N] `);
  if (/^y(?:es)?$/i.test((await lineOf(input)).trim())) return;
  throw inputError('nothing was changed');
}

/** The next line; empty at the end of the input. */
async function lineOf(input: Readable): Promise<string> {
  // The terminal edits the line by itself, so Ctrl-C still ends the process.
  const lines = createInterface({ input, terminal: false });
  try {
    const closed = once(lines, 'close').then(() => ['']);
    const [line] = (await Promise.race([once(lines, 'line'), closed])) as [string];
    return line;
  } finally {
    lines.close();
  }
}
