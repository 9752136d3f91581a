// The page about the command line, from the commands themselves.
import type { Command } from '../../../src/app/cli/command.ts';
import { NOUNS, PLAIN_COMMANDS } from '../../../src/app/cli/commands/index.ts';
import { opening, safe, tableOf } from './text.ts';

const LEAD = `\`npx tokenwright\` runs the service and works on its tokens, keys, catalogs and store. This page lists the commands. For the flags of a command, what it prints with \`--json\`, its exit codes and an example, run it with \`--help\`:

\`\`\`bash
npx tokenwright token issue --help
\`\`\`

\`npx tokenwright completion --help\` says how bash, zsh and fish complete commands.

Results go to standard output and remarks to standard error. A command ends with 0 if it worked, with 1 if something failed, with 2 if the command line is wrong, and with 3 if the answer is negative, such as a refused token.`;

const SHARED: readonly (readonly [flags: string, meaning: string])[] = [
  ['`--help`, `-h`', 'prints the help of the command'],
  ['`--json`', 'prints JSON instead of text; all commands except `serve`'],
  ['`--quiet`', 'prints no remarks on standard error'],
  [
    '`--url`, `--user`',
    'a running service, and the account there; a terminal asks for the password',
  ],
  ['`--store`, `--tables`, `--data`, `--config`', 'a store, as for `serve`'],
  ['`--keys`, `--prefix`, `--foreign`, `--reveal`', 'the values in a store, as for `serve`'],
  ['`--account`', 'whose tokens in a store'],
  ['`--catalog`, `--granularity`', 'the scopes that exist, as for `serve`'],
  ['`--yes`', 'confirms what cannot be undone; without a terminal it is required'],
];

export function commandsPage(): string {
  const [serve, ...others] = PLAIN_COMMANDS;
  const sections = [
    ['service', 'Service', [serve]],
    ...[...NOUNS].map(([noun, { title, commands }]) => [noun, title, commands] as const),
    ['help', 'Help', others],
  ] as const;
  return [
    opening(
      'Commands',
      'Every command of tokenwright, with one line about each, and the flags that they share.',
      'docs:manual',
    ),
    LEAD,
    '',
    ...sections.map(([anchor, title]) => `- [${title}](#${anchor})`),
    '- [Flags of many commands](#flags)',
    '',
    ...sections.flatMap(([anchor, title, commands]) => [
      `## ${title} {#${anchor}}`,
      '',
      tableOf(['command', 'what it does'], (commands as readonly Command[]).map(rowOf)),
      '',
    ]),
    '## Flags of many commands {#flags}',
    '',
    tableOf(['flag', 'meaning'], SHARED),
    '',
    'Most flags have an environment variable. [Settings](./settings.md) lists all of them.',
    '',
  ].join('\n');
}

function rowOf({ name, summary }: Command): readonly string[] {
  return [`\`${name}\``, safe(summary)];
}
