// The page about settings, from the table that `serve` reads.
import { OTHER_VARIABLES, SERVE_SETTINGS, settingFacts } from '../../../src/app/server/settings.ts';
import { opening, safe, sentence, tableOf } from './text.ts';

const LEAD = `You configure the service by flags or by environment variables. A flag wins over its variable, and an empty variable counts as absent. A variable that begins with \`TOKENWRIGHT_\` and is not on this page stops every command with a message that names it, so a misspelled setting is noticed.

\`\`\`bash
TOKENWRIGHT_STORE='postgres://ada:secret@db.internal/acme' npx tokenwright serve --port 8080
\`\`\`

The commands that manage tokens and stores take some of the same settings: see [commands](./commands.md). Numbers that are not settings are in [limits](../security/limits.md).`;

export function settingsPage(): string {
  const settings = SERVE_SETTINGS.map((name) => ({ name, ...settingFacts(name) }));
  const rows = settings.map(({ flag, variable, standard }) => [
    `[\`${nameOf(flag)}\`](#${anchorOf(flag)})`,
    `\`${variable}\``,
    standard === undefined ? 'none' : `\`${standard}\``,
  ]);
  const others = Object.entries(OTHER_VARIABLES).map(([name, help]) => [`\`${name}\``, help]);
  return [
    opening(
      'Settings',
      'Every flag and environment variable of tokenwright serve, with its default.',
      'docs:manual',
    ),
    LEAD,
    '',
    tableOf(['flag', 'environment variable', 'default'], rows),
    '',
    ...settings.flatMap(sectionOf),
    '## Variables of other commands',
    '',
    'The commands that manage tokens read these as well.',
    '',
    tableOf(['variable', 'holds'], others),
    '',
  ].join('\n');
}

function sectionOf({ flag, variable, form, standard, help }: ReturnType<typeof settingFacts>) {
  return [
    `## ${nameOf(flag)} {#${anchorOf(flag)}}`,
    '',
    `\`${flag}\`, or the variable \`${variable}\`${form}. ${defaultOf(standard)}`,
    '',
    sentence(safe(withoutDefault(help, standard))),
    '',
  ];
}

function defaultOf(standard: string | undefined): string {
  return standard === undefined ? 'There is no default.' : `The default is \`${standard}\`.`;
}

/** The line before has said it. */
function withoutDefault(help: string, standard: string | undefined): string {
  return standard === undefined
    ? help
    : help.replace(/[;.] [Dd]efault (\S+?)$/, (text, said) => (said === standard ? '' : text));
}

function nameOf(flag: string): string {
  return flag.replace(/ .*/, '');
}

function anchorOf(flag: string): string {
  return nameOf(flag).slice(2);
}
