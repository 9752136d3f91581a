// The page about settings, from the table that `serve` reads.
import { fileVariableOf } from '../../../src/app/server/setting-sources.ts';
import {
  OTHER_VARIABLES,
  SETTING_GROUPS,
  settingFacts,
  settingsIn,
} from '../../../src/app/server/settings.ts';
import { opening, safe, sentence, tableOf } from './text.ts';

const LEAD = `You configure the service by flags, by environment variables, or in a file. A flag wins over its variable, and an empty variable counts as absent. A variable that begins with \`TOKENWRIGHT_\` and is not on this page stops every command with a message that names it, so a misspelled setting is noticed.

\`\`\`bash
TOKENWRIGHT_STORE='postgres://ada:secret@db.internal/acme' npx tokenwright serve --port 8080
\`\`\`

## In a file

\`--config FILE\`, or \`TOKENWRIGHT_CONFIG\`, names a JSON object of settings. Its names are those of the flags, without the hyphens at their beginning. A setting that can be repeated is an array, and a switch is \`true\` or \`false\`:

\`\`\`json
{
  "port": 8080,
  "catalog": ["openapi.json"],
  "trust-proxy": ["10.0.0.0/8"],
  "max-ttl": "90d",
  "metrics": true
}
\`\`\`

Flags and variables win over the file. A name that is not a setting stops the command. Paths in the file are relative to the folder in which the command runs, like those of flags. The file is read once, at the start: SIGHUP does not read it again. It can hold secrets; then let only the user of the service read it.

## Secrets in files

A variable that holds a secret has a second form, which ends in \`_FILE\` and names a file with that secret, as Docker and Kubernetes provide them: \`TOKENWRIGHT_STORE_FILE=/run/secrets/store\`. The file holds one line. A line break at its end does not count. If both forms are set, the command stops. The file of accounts has more than one line: see \`--account-file\`. Keys are always in a file: see \`--keys\`.

## Other commands

The commands that manage tokens and stores take some of the same settings: see [commands](./commands.md). Numbers that are not settings are in [limits](../security/limits.md).`;

export function settingsPage(): string {
  const others = Object.entries(OTHER_VARIABLES).map(([name, { help, ...other }]) => [
    `\`${name}\``,
    'isSecret' in other ? `${help}. Or \`${fileVariableOf(name)}\`` : help,
  ]);
  return [
    opening(
      'Settings',
      'Every flag and environment variable of tokenwright serve, with its default.',
      'docs:manual',
    ),
    LEAD,
    '',
    ...SETTING_GROUPS.map((group) => `- [${titleOf(group)}](#${group})`),
    '',
    ...SETTING_GROUPS.flatMap(groupOf),
    '## Variables of other commands',
    '',
    'The commands that manage tokens read these as well.',
    '',
    tableOf(['variable', 'holds'], others),
    '',
  ].join('\n');
}

function groupOf(group: (typeof SETTING_GROUPS)[number]): string[] {
  const settings = settingsIn(group).map((name) => settingFacts(name));
  const rows = settings.map(({ flag, variable, standard }) => [
    `[\`${nameOf(flag)}\`](#${anchorOf(flag)})`,
    `\`${variable}\``,
    standard === undefined ? 'none' : `\`${standard}\``,
  ]);
  return [
    `## ${titleOf(group)} {#${group}}`,
    '',
    tableOf(['flag', 'environment variable', 'default'], rows),
    '',
    ...settings.flatMap(sectionOf),
  ];
}

function titleOf(group: string): string {
  return `${group[0]?.toUpperCase()}${group.slice(1)}`;
}

function sectionOf({
  flag,
  variable,
  file,
  form,
  standard,
  help,
}: ReturnType<typeof settingFacts>) {
  const secret = file === undefined ? '' : ` \`${file}\` names a file that holds it.`;
  return [
    `### ${nameOf(flag)} {#${anchorOf(flag)}}`,
    '',
    `\`${flag}\`, or the variable \`${variable}\`${form}.${secret} ${defaultOf(standard)}`,
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
