#!/usr/bin/env node
import packageJson from '../../../package.json' with { type: 'json' };
import { theLog } from '../server/logs/log.ts';
import { describeError } from '../terminal/error-message.ts';
import { CliError } from '../terminal/errors.ts';
import { indent, jsonText, printableLines } from '../terminal/layout.ts';
import { asksForHelp, endSoon, type Part } from './command.ts';
import { NOUNS } from './commands/index.ts';
import { commandOf, helpOn, nounHelp, shortHelp, unknownCommand } from './help.ts';

/** Prints an answer part by part: the texts below each other, or the elements of a JSON array. */
class Parts {
  readonly #write: (text: string) => Promise<void>;
  readonly #isJson: boolean;
  #count = 0;

  constructor(write: (text: string) => Promise<void>, isJson: boolean) {
    this.#write = write;
    this.#isJson = isJson;
  }

  async print({ text, json }: Part): Promise<void> {
    const start = this.#count === 0 ? '[' : ',';
    this.#count += 1;
    await this.#write(this.#isJson ? `${start}\n${indent(jsonText(json))}` : `${text}\n`);
  }

  async end(): Promise<void> {
    if (this.#isJson) await this.#write(this.#count === 0 ? '[]\n' : '\n]\n');
  }
}

const NEGATIVE = 3;

await main(process.argv.slice(2));

async function main(words: readonly string[]): Promise<void> {
  try {
    await run(words);
  } catch (error) {
    theLog().fatal(describeError(error));
    process.exitCode = error instanceof CliError ? error.exitCode : 1;
    await theLog().close();
    endSoon();
  }
}

async function run(words: readonly string[]): Promise<void> {
  const [first, ...rest] = words;
  if (first === '--version' || first === '-v') return print(packageJson.version);
  if (first === undefined) return print(shortHelp());
  if (first === 'help') return print(helpOn(rest));
  if (asksForHelp(words)) return print(helpOn(words));
  if (rest.length === 0 && NOUNS.has(first)) return print(nounHelp(first));
  const known = commandOf(words);
  if (known === undefined) throw unknownCommand(words);
  let parts: Parts | undefined;
  const outcome = await known.run(words.slice(known.name.split(' ').length), (isJson) => {
    const all = new Parts(write, isJson);
    parts = all;
    return (part) => all.print(part);
  });
  if (outcome === undefined) return;
  const { notes, isNegative, isFailed, isJson, isQuiet } = outcome;
  if (isNegative === true) process.exitCode = NEGATIVE;
  if (isFailed === true) process.exitCode = 1;
  try {
    if ('isInParts' in outcome) await parts?.end();
    else await print(isJson ? jsonText(outcome.json) : outcome.text);
  } finally {
    // The notes may name a token that exists although its value could not be printed.
    if (notes !== undefined && !isJson && !isQuiet) console.error(printableLines(notes));
  }
  endSoon();
}

async function print(text: string): Promise<void> {
  if (text !== '') await write(`${text}\n`);
}

/**
 * Writes what is safe for a terminal, whatever a store or a service put into it. Ignores a reader that
 * stops early, such as `head`.
 */
async function write(text: string): Promise<void> {
  let onError: (error: NodeJS.ErrnoException) => void = () => {};
  const failure = await new Promise<NodeJS.ErrnoException | null | undefined>((resolve) => {
    onError = resolve;
    process.stdout.once('error', onError);
    process.stdout.write(printableLines(text), resolve);
  });
  // The stream emits the same error later.
  if (!failure) process.stdout.off('error', onError);
  else if (failure.code !== 'EPIPE') throw failure;
}
