// The page about the command line, from the commands themselves.
import { COMMANDS } from '../../../src/app/cli/commands/index.ts';
import { block, opening, safe, sentence, tableOf } from './text.ts';

const LEAD = `\`npx tokenwright\` runs the service and looks after its tokens, keys, catalogs and database. \`npx tokenwright <command> --help\` prints what this page shows.

Results go to standard output and remarks to standard error. All commands except \`serve\` take \`--json\`. A command ends with 0 if it worked, with 1 if something failed, with 2 if the command line is wrong, and with 3 if the answer is negative, such as a refused token.`;

export function commandsPage(): string {
  const rows = COMMANDS.map(({ name, summary }) => [
    `[\`${name}\`](#${anchorOf(name)})`,
    safe(summary),
  ]);
  return [
    opening(
      'Commands',
      'The command line reference: every command of tokenwright, with its flags, exit codes and an example.',
      'docs:manual',
    ),
    LEAD,
    '',
    tableOf(['command', 'what it does'], rows),
    '',
    ...COMMANDS.flatMap(sectionOf),
    '## Environment variables',
    '',
    'Most flags have a variable; [settings](./settings.md) lists all of them.',
    '',
  ].join('\n');
}

function sectionOf({ name, summary, help }: (typeof COMMANDS)[number]): string[] {
  return [
    `## tokenwright ${name} {#${anchorOf(name)}}`,
    '',
    sentence(safe(summary)),
    '',
    block('text', help),
    '',
  ];
}

function anchorOf(name: string): string {
  return name.replaceAll(' ', '-');
}
