import { StringDecoder } from 'node:string_decoder';
import { usageError } from '../terminal/errors.ts';
import { ENDINGS, endBy } from '../terminal/signals.ts';

const MISSING =
  'the password is missing: set TOKENWRIGHT_PASSWORD, or TOKENWRIGHT_PASSWORD_FILE to the path of a file that holds it; on a terminal the command asks for it';

/**
 * Asks a person for a password, without showing it.
 *
 * Ctrl-C ends the process as SIGINT does. However the question ends, the terminal shows again what is typed.
 *
 * @throws {CliError} if there is no terminal, or nothing was entered
 */
export async function askPassword(user: string): Promise<string> {
  const { stdin, stderr } = process;
  // Not on standard output, which may be read by a program.
  if (!stdin.isTTY || !stderr.isTTY || stdin.readableEnded) throw usageError(MISSING);
  const stop = () => {
    stdin.setRawMode(false);
    stdin.pause();
    stderr.write('\n');
    for (const ending of ENDINGS) process.off(ending, onSignal);
  };
  const onSignal = (signal: NodeJS.Signals, number: number) => {
    stop();
    endBy(signal, number);
  };
  for (const ending of ENDINGS) process.on(ending, onSignal);
  // Before the question: keys that follow it must not be shown.
  stdin.setRawMode(true);
  stderr.write(`Password for ${user}: `);
  const line = await typedLine(stdin);
  // In raw mode, Ctrl-C is a key and no signal.
  if (line.isInterrupted) onSignal('SIGINT', 2);
  else stop();
  if (line.text === '') throw usageError(MISSING);
  return line.text;
}

/** Reads keys until a line ends. */
function typedLine(input: NodeJS.ReadStream): Promise<SecretLine> {
  const line = new SecretLine();
  const decoder = new StringDecoder();
  return new Promise((resolve) => {
    const end = () => {
      input.off('data', onData);
      input.off('end', end);
      resolve(line);
    };
    const onData = (chunk: Buffer) => {
      if (line.type(decoder.write(chunk))) end();
    };
    input.on('data', onData);
    input.on('end', end);
  });
}

/** Escape sequences: of arrow keys, and what some terminals put around a pasted text. */
const SEQUENCES = /\p{Cc}(?:\[[\d;]*[~A-Za-z]|O[A-Z])/gu;

/** A line that is typed in raw mode, where the terminal leaves its keys to us. */
export class SecretLine {
  #text = '';
  #isInterrupted = false;

  get text(): string {
    return this.#text.replaceAll(/\p{Cc}/gu, '');
  }

  get isInterrupted(): boolean {
    return this.#isInterrupted;
  }

  /** Takes typed or pasted keys. Returns whether the line has ended; keys after its end are dropped. */
  type(keys: string): boolean {
    return [...keys].some((key) => this.#press(key));
  }

  /** Returns whether the key ends the line. */
  #press(key: string): boolean {
    if (key === '\u0003') this.#isInterrupted = true;
    // Enter, Ctrl-C and Ctrl-D.
    if ('\r\n\u0003\u0004'.includes(key)) return true;
    if ('\b\u007f'.includes(key)) this.#text = [...this.#text].slice(0, -1).join('');
    else if (key === '\u0015') this.#text = '';
    else this.#text = (this.#text + key).replaceAll(SEQUENCES, '');
    return false;
  }
}
