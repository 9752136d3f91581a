import { SERVE_VALUES } from '../../server/settings.ts';
import { choice } from '../../terminal/kinds.ts';
import { type Command, command, type Flag } from '../command.ts';

const SHELL = choice('bash', 'zsh', 'fish');

/** What completes a word: files, folders, some words, or nothing. */
type Completer = 'files' | 'folders' | 'nothing' | readonly string[];

/** By the name of an operand, or of the value of a flag. */
const OPERANDS: Readonly<Record<string, Completer>> = {
  FILE: 'files',
  LIST: 'files',
  BEFORE: 'files',
  AFTER: 'files',
  RULES: 'files',
  FOLDER: 'folders',
  SHELL: SHELL.choices,
};

/**
 * Makes the command that prints a script for a shell.
 *
 * @param others the commands that it completes besides itself
 */
export function completionOf(others: readonly Command[]): Command {
  const self: Command = command({
    name: 'completion',
    operands: ['SHELL'],
    summary: 'prints a script that completes commands in your shell',
    about: `SHELL is ${SHELL.values}. The script completes the word tokenwright, so it must be in your PATH, such as
after npm install --global tokenwright.

bash  add to ~/.bashrc:  source <(tokenwright completion bash)
zsh   add to ~/.zshrc, after compinit:  source <(tokenwright completion zsh)
fish  tokenwright completion fish > ~/.config/fish/completions/tokenwright.fish`,
    flags: {},
    json: '{ script }',
    exits: { 0: 'the script was printed' },
    example: {
      call: 'completion bash | head -n 1',
      output: '# Completes tokenwright in bash: source <(tokenwright completion bash)',
    },
    async run([shell]) {
      const script = SCRIPTS[SHELL.read(shell, '<SHELL>')]([...others, self]);
      return { text: script, json: { script } };
    },
  });
  return self;
}

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript };

/** Words on which a script branches, and what completes there. */
type Case = readonly [words: readonly string[], completer: Completer];

/** What all three scripts know. */
interface Table {
  /** The first words of the commands of two words. */
  readonly nouns: readonly string[];
  /** The next word of a command: after nothing, and after each noun. */
  readonly steps: readonly (readonly [after: string, next: readonly Next[]])[];
  /** By flags. A flag that takes no value is in no case. */
  readonly values: readonly Case[];
  /** The flags, by commands. */
  readonly flags: readonly Case[];
  /** By commands. */
  readonly operands: readonly Case[];
}

type Next = readonly [word: string, summary: string];

function tableOf(commands: readonly Command[]): Table {
  const nouns = [...new Set(commands.flatMap(({ name }) => /^\S+(?= )/.exec(name)?.[0] ?? []))];
  const plain = commands.filter(({ name }) => !name.includes(' '));
  const first = [
    ...plain.map(({ name, summary }): Next => [name, summary]),
    ...nouns.map((noun): Next => [noun, `commands for ${noun}`]),
  ];
  const verbsOf = (noun: string) =>
    commands
      .filter(({ name }) => name.startsWith(`${noun} `))
      .map(({ name, summary }): Next => [name.slice(noun.length + 1), summary]);
  return {
    nouns,
    steps: [['', first], ...nouns.map((noun) => [noun, verbsOf(noun)] as const)],
    values: valueCases(commands),
    flags: grouped(
      commands.map(({ name, flags }) => [name, Object.keys(flags).map((flag) => `--${flag}`)]),
    ),
    operands: grouped(
      commands.flatMap(({ name, operands }): (readonly [string, Completer])[] => {
        const known = operands.map((operand) => OPERANDS[operand.replace(/\?|\.\.\./, '')]);
        const completer = known.find((each) => each !== undefined);
        return completer === undefined ? [] : [[name, completer]];
      }),
    ),
  };
}

function valueCases(commands: readonly Command[]): Case[] {
  const completers = new Map<string, Completer>();
  for (const [name, flag] of commands.flatMap(({ flags }) => Object.entries(flags))) {
    if (flag.type === 'boolean') continue;
    completers.set(`--${name}`, merged(completerOf(name, flag), completers.get(`--${name}`)));
  }
  return grouped([...completers]);
}

/** A flag without a help of its own is explained as a setting of `serve`, and takes the same. */
function completerOf(name: string, flag: Flag): Completer {
  const isOwn = (flag.choices ?? flag.value) !== undefined;
  const { choices, value = '' } = isOwn ? flag : (SERVE_VALUES.get(name) ?? {});
  return choices ?? OPERANDS[value] ?? 'nothing';
}

/** A flag may take more in one command than in another. */
function merged(completer: Completer, before: Completer = 'nothing'): Completer {
  if (typeof completer === 'object' && typeof before === 'object') {
    return [...new Set([...before, ...completer])];
  }
  return before === 'nothing' ? completer : before;
}

/** Puts together what completes alike. */
function grouped(all: readonly (readonly [word: string, completer: Completer])[]): Case[] {
  const groups = new Map<string, readonly [readonly string[], Completer]>();
  for (const [word, completer] of all) {
    const [words] = groups.get(String(completer)) ?? [[]];
    groups.set(String(completer), [[...words, word], completer]);
  }
  return [...groups.values()];
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function quotedWords(words: readonly string[], between = ' '): string {
  return words.map(quoted).join(between);
}

/** The branches of a `case` in bash and zsh. */
function branches(cases: readonly Case[], write: (completer: Completer) => string): string {
  return cases
    .map(([words, completer]) => `    ${quotedWords(words, '|')}) ${write(completer)} ;;`)
    .join('\n');
}

function bashScript(commands: readonly Command[]): string {
  const { nouns, steps, values, flags, operands } = tableOf(commands);
  const write = (completer: Completer): string => {
    if (typeof completer === 'object') return `words=${quoted(completer.join(' '))}`;
    if (completer === 'nothing') return 'return';
    return `compopt -o ${completer === 'files' ? 'default' : 'dirnames'}; return`;
  };
  const next = steps.map(([after, words]): Case => [[after], words.map(([word]) => word)]);
  return `# Completes tokenwright in bash: source <(tokenwright completion bash)
_tokenwright() {
  local word=\${COMP_WORDS[COMP_CWORD]} flag=\${COMP_WORDS[COMP_CWORD - 1]}
  local command=\${COMP_WORDS[1]} words=''
  COMPREPLY=()
  # Readline takes the = of --flag=value for a word.
  if [[ $word == '=' ]]; then word=''
  elif [[ $flag == '=' ]]; then flag=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  ((COMP_CWORD > 1)) || command=''
  case $command in
    ${quotedWords(nouns, '|')}) ((COMP_CWORD < 3)) || command+=" \${COMP_WORDS[2]}" ;;
  esac
  case $flag in
${branches(values, write)}
  esac
  if [[ -z $words && $word == -* ]]; then
  case $command in
${branches(flags, write)}
  esac
  elif [[ -z $words ]]; then
  case $command in
${branches([...next, ...operands], write)}
  esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _tokenwright tokenwright`;
}

function zshScript(commands: readonly Command[]): string {
  const { nouns, steps, values, flags, operands } = tableOf(commands);
  const write = (completer: Completer): string => {
    if (typeof completer === 'object') return `compadd -- ${completer.join(' ')}; return`;
    if (completer === 'nothing') return 'return';
    return `_files${completer === 'files' ? '' : ' -/'}; return`;
  };
  const next = steps.map(
    ([after, words]) =>
      `    ${quoted(after)}) next=(${quotedWords(words.map((each) => each.join(':')))}) ;;`,
  );
  return `#compdef tokenwright
# Completes tokenwright in zsh, after compinit: source <(tokenwright completion zsh)
_tokenwright() {
  local flag=\${words[CURRENT - 1]} command=\${words[2]}
  local -a next
  if [[ $PREFIX == --*=* ]]; then flag=\${PREFIX%%=*}; compset -P '*='; fi
  ((CURRENT > 2)) || command=''
  case $command in
    ${quotedWords(nouns, '|')}) ((CURRENT < 4)) || command+=" \${words[3]}" ;;
  esac
  case $flag in
${branches(values, write)}
  esac
  if [[ $PREFIX == -* ]]; then
  case $command in
${branches(flags, write)}
  esac
  fi
  case $command in
${next.join('\n')}
${branches(operands, write)}
  esac
  ((\${#next})) && _describe command next
}
if [[ \${funcstack[1]} == _tokenwright ]]; then
  _tokenwright
else
  compdef _tokenwright tokenwright
fi`;
}

function fishScript(commands: readonly Command[]): string {
  const { nouns, steps, values, flags, operands } = tableOf(commands);
  const write = (completer: Completer): string => {
    if (typeof completer === 'object')
      return `printf '%s\\n' $start(string split ' ' -- ${quoted(completer.join(' '))})`;
    if (completer === 'nothing') return 'true';
    return `__fish_complete_${completer === 'files' ? 'path' : 'directories'} "$word"`;
  };
  const cases = (all: readonly Case[]) =>
    all
      .map(
        ([words, completer]) =>
          `        case ${quotedWords(words)}\n            ${write(completer)}\n            return`,
      )
      .join('\n');
  const next = steps.map(
    ([after, words]) =>
      `        case ${quoted(after)}\n            printf '%s\\t%s\\n' ${quotedWords(words.flat())}`,
  );
  return `# Completes tokenwright in fish: tokenwright completion fish | source
function __tokenwright_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l flag $words[-1]
    set -l command "$words[2]"
    set -l start ''
    if string match -q -- '--*=*' $word
        set flag (string replace -r '=.*' '' -- $word)
        set start "$flag="
    end
    if contains -- $command ${nouns.join(' ')}; and test (count $words) -gt 2
        set command "$words[2] $words[3]"
    end
    switch "$flag"
${cases(values)}
    end
    if string match -q -- '-*' $word
        switch "$command"
${cases(flags)}
        end
    end
    switch "$command"
${next.join('\n')}
${cases(operands)}
    end
end
complete -c tokenwright -f -a '(__tokenwright_complete)'`;
}
