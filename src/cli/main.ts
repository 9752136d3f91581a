#!/usr/bin/env node
import { parseArgs } from 'node:util';
import packageJson from '../../package.json' with { type: 'json' };
import { isTokenError } from '../errors.ts';
import { serve } from './serve.ts';
import { readSettings, SERVE_OPTIONS, UsageError } from './settings.ts';

const HELP = `tokenwright ${packageJson.version}: scoped access tokens for your own backend

Usage
  tokenwright serve [flags]     run the token service on an embedded SQLite file
  tokenwright --help            show this
  tokenwright --version         show the version

Flags of serve                                                     (environment)
  --port <number>           where to listen; default 8787          PORT
  --host <name>             default 127.0.0.1                      TOKENWRIGHT_HOST
  --data <folder>           database and keys; default ./data      TOKENWRIGHT_DATA
  --catalog <file|folder>   the scopes that exist: a JSON array of scopes, or an
                            OpenAPI document in JSON; a folder takes all in it.
                            Repeatable. Default: an example        TOKENWRIGHT_CATALOG (commas)
  --account <user:password> who may call the service. Repeatable. Flags show in
                            process lists: prefer the variable     TOKENWRIGHT_ACCOUNTS (commas)
  --prefix <text>           what values begin with; default tw     TOKENWRIGHT_PREFIX
  --reveal <once|always>    whether values can be shown again; default always
                                                                   TOKENWRIGHT_REVEAL
  --accept-legacy-body      take what older clients send           TOKENWRIGHT_ACCEPT_LEGACY_BODY=true

A flag wins over its variable.

Example
  TOKENWRIGHT_ACCOUNTS='ada:correct horse' tokenwright serve --catalog openapi.json
`;

await main(process.argv.slice(2));

async function main(words: readonly string[]): Promise<void> {
  try {
    await run(words);
  } catch (error) {
    const isExpected = error instanceof UsageError || isTokenError(error) || isSystemError(error);
    console.error(`tokenwright: ${isExpected ? error.message : error}`);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
}

async function run([command, ...rest]: readonly string[]): Promise<void> {
  if (command === '--version' || command === '-v') return console.log(packageJson.version);
  if (command === '--help' || command === '-h' || command === 'help') return console.log(HELP);
  if (command !== 'serve') {
    throw new UsageError(
      command === undefined
        ? 'a command is required; see tokenwright --help'
        : 'this command is not known; the commands are: serve',
    );
  }
  const flags = parseFlags(rest);
  if (flags.help === true) return console.log(HELP);
  await serve(readSettings(flags, process.env));
}

function parseFlags(args: string[]) {
  try {
    return parseArgs({ args, options: SERVE_OPTIONS, strict: true, allowPositionals: false })
      .values;
  } catch (error) {
    throw new UsageError(
      `${(error as Error).message.split(/\. |\.?\n/)[0]}; see tokenwright --help`,
    );
  }
}

function isSystemError(error: unknown): error is Error {
  return error instanceof Error && 'syscall' in error;
}
