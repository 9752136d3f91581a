import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { NOUNS } from '../../../../src/app/cli/commands/index.ts';
import { ALL_COMMANDS, newFolder, outcomeOf } from '../support.ts';
import { HAS_TERMINALS, inTerminal } from '../terminal.ts';

const isInstalled = (shell: string) => spawnSync(shell, ['-c', 'true']).status === 0;

/** A folder with the script for a shell, a file and a folder to complete. */
async function folderWith(shell: string): Promise<string> {
  const { text } = await outcomeOf(['completion', shell]);
  const folder = newFolder();
  writeFileSync(join(folder, 'script'), text);
  writeFileSync(join(folder, 'wares.json'), '[]');
  return folder;
}

/** Lines as they are typed, with tabs, and the words that the command gets. */
const TYPED: readonly (readonly [line: string, words: string])[] = [
  [
    'tok\tiss\t--sco\tGET:a.example/x --nam\tci',
    '<token><issue><--scope><GET:a.example/x><--name><ci>',
  ],
  ['token list --sta\tsus\t', '<token><list><--state><suspended>'],
  ['token list --state=sus\t', '<token><list><--state=suspended>'],
  ['store doc\t--ful\t', '<store><doctor><--full>'],
  ['serve --cata\twar\t', '<serve><--catalog><wares.json>'],
  ['serve --gran\tpre\t--conso\tof\t', '<serve><--granularity><prefix><--console><off>'],
  ['catalog lint war\t', '<catalog><lint><wares.json>'],
  ['completion fi\t', '<completion><fish>'],
  ['token list --name war\t', '<token><list><--name><war>'],
  ['token bogus war\t', '<token><bogus><war>'],
];

describe('completion', () => {
  it.each(['bash', 'zsh', 'fish'])(
    'prints a script for %s that knows all commands',
    async (shell) => {
      const { text, json } = await outcomeOf(['completion', shell]);

      expect(json).toEqual({ script: text });
      for (const noun of NOUNS.keys()) expect(text).toContain(`'${noun}'`);
      for (const { flags } of ALL_COMMANDS) {
        for (const flag of Object.keys(flags)) expect(text).toContain(`--${flag}`);
      }
      expect(text).not.toMatch(/undefined|\[object/);
    },
  );

  it.each(['powershell', 'Bash', ''])('refuses another shell: %j', async (shell) => {
    await expect(outcomeOf(['completion', shell, '--'])).rejects.toMatchObject({ exitCode: 2 });
  });
});

describe.each([
  ['bash', 'bash --norc --noprofile -i', ''],
  ['zsh', 'zsh -f -i', 'autoload -U compinit; compinit -u -D; '],
])('the script for %s', (shell, start, before) => {
  it.runIf(HAS_TERMINALS && isInstalled(shell))(
    'completes commands, flags, values and files',
    async () => {
      const folder = await folderWith(shell);
      const terminal = inTerminal(`cd ${folder}; ${start}`);
      terminal.type(`${before}source ./script; tokenwright() { printf '<%s>' "$@"; echo .; }\n`);
      for (const [line, words] of TYPED) {
        terminal.type(`tokenwright ${line}\n`);
        await terminal.shows(`${words}.`);
      }
      terminal.type('exit\n');
      await terminal.ended;
    },
  );
});

describe.runIf(isInstalled('fish'))('the script for fish', () => {
  const completed = (folder: string, line: string) => {
    const script = 'cd $argv[1]; source ./script; complete -C $argv[2]';
    const { stdout } = spawnSync('fish', ['--no-config', '-c', script, folder, line], {
      encoding: 'utf8',
    });
    return stdout
      .trimEnd()
      .split('\n')
      .map((row) => row.split('\t')[0]);
  };

  it.each([
    ['tokenwright tok', ['token']],
    ['tokenwright token li', ['list']],
    ['tokenwright token list --sta', ['--state']],
    ['tokenwright token list --state sus', ['suspended']],
    ['tokenwright token list --state=sus', ['--state=suspended']],
    ['tokenwright serve --catalog war', ['wares.json']],
    ['tokenwright catalog lint war', ['wares.json']],
    ['tokenwright completion z', ['zsh']],
    ['tokenwright token list --name war', ['']],
    ['tokenwright store zzz', ['']],
  ])('completes %j', async (line, words) => {
    expect(completed(await folderWith('fish'), line)).toEqual(words);
  });
});
