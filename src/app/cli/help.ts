import packageJson from '../../../package.json' with { type: 'json' };
import { misspelledName, nearestName } from '../../scope/nearest.ts';
import { SERVE_FLAGS } from '../server/settings.ts';
import { type CliError, usageError } from '../terminal/errors.ts';
import { helpRows, paragraphs } from '../terminal/layout.ts';
import type { Command } from './command.ts';
import { COMMANDS, NOUNS, type Noun, PLAIN_COMMANDS } from './commands/index.ts';
import { adviceOn, NOUN_SYNONYMS, VERB_SYNONYMS } from './synonyms.ts';

/** The commands that most people need first. */
const COMMON: readonly string[] = [
  'serve',
  'token issue',
  'token list',
  'token revoke',
  'catalog from-openapi',
  'store doctor',
];

const TITLE = `tokenwright ${packageJson.version}: scoped access tokens for your own backend`;

/** What `tokenwright` alone prints. */
export function shortHelp(): string {
  const common = COMMANDS.filter(({ name }) => COMMON.includes(name));
  return `${TITLE}

Most common commands
${summaries(common)}

tokenwright --help lists all commands, and tokenwright <command> --help explains
one, such as tokenwright token issue --help.`;
}

/**
 * The help on a command, on a noun, or on everything.
 *
 * @throws {CliError} if there is no such command
 */
export function helpOn(words: readonly string[]): string {
  const known = commandOf(words);
  if (known !== undefined) return known.help;
  const [name, ...others] = words.filter((word) => !word.startsWith('-'));
  if (name === undefined) return fullHelp();
  const noun = others.length === 0 ? NOUNS.get(name) : undefined;
  if (noun === undefined) throw unknownCommand(words);
  return `${nounHelp(name)}\n\n${paragraphs(noun.about)}`;
}

/**
 * What a noun alone prints: its commands.
 *
 * @param name one of {@link NOUNS}
 */
export function nounHelp(name: string): string {
  const { title, commands } = NOUNS.get(name) as Noun;
  const more = `tokenwright ${name} <command> --help explains one: its flags, what it prints with --json, its exit codes and an example.`;
  return `${title}\n${summaries(commands)}\n\n${paragraphs(more)}`;
}

function fullHelp(): string {
  const nouns = [...NOUNS.values()].map(
    ({ title, commands }) => `${title}\n${summaries(commands)}`,
  );
  const [serve, ...others] = PLAIN_COMMANDS;
  return `${TITLE}

Usage
  tokenwright <command> [flags]

The service
${summaries([serve as Command])}

${nouns.join('\n\n')}

Help
${summaries(others)}
  <command> --help       its flags, exit codes and an example; or help <command>
  --version              the version`;
}

function summaries(commands: readonly Command[]): string {
  return helpRows(
    commands.map(({ name, summary }) => ({ label: name, text: summary })),
    21,
  );
}

/** The command that a command line begins with. */
export function commandOf(words: readonly string[]): Command | undefined {
  return COMMANDS.find(({ name }) => name.split(' ').every((word, i) => word === words[i]));
}

/** Repeats a word only if it is close to a name in our tables: it may be a password. */
export function unknownCommand([first = '', second]: readonly string[]): CliError {
  if (NOUNS.has(first)) return unknownVerb(first, second);
  const advice = adviceOn(first);
  if (advice !== undefined) return usageError(`${has()} ${first}: ${advice}`);
  if (Object.hasOwn(SERVE_FLAGS, first.replace(/^--|=.*/g, ''))) {
    return usageError(
      'a command must come before the flags; did you mean tokenwright serve? See tokenwright --help',
    );
  }
  const meant = meantBy(first, second);
  if (meant.length > 0) {
    const calls = meant.map((name) => `tokenwright ${name}`);
    return usageError(`${has()} ${first}: use ${calls.join(' or ')}`);
  }
  const names = [...PLAIN_COMMANDS.map(({ name }) => name), ...NOUNS.keys()];
  return notFound(undefined, first, names);
}

function unknownVerb(noun: string, word = ''): CliError {
  const same = verbOf(noun, word);
  if (same !== undefined) {
    return usageError(`${has(noun)} ${word}: use tokenwright ${noun} ${same}`);
  }
  return notFound(noun, word, verbsOf(noun));
}

/** @param names what there is instead */
function notFound(noun: string | undefined, word: string, names: readonly string[]): CliError {
  const misspelled = misspelledName(word, names);
  if (misspelled !== undefined) {
    return usageError(`${has(noun)} ${word}; did you mean ${misspelled}?`);
  }
  const near = nearestName(word, names);
  const hint =
    near === undefined ? `: the commands are ${names.join(', ')}` : `; did you mean ${near}?`;
  return usageError(`${has(noun, 'no such command')}${hint}`);
}

function has(noun?: string, what = 'no command'): string {
  return noun === undefined ? `there is ${what}` : `${noun} has ${what}`;
}

/** The commands that a word stands for which is not a noun: `migrate`, `ls` or `scopes`. */
function meantBy(word: string, next = ''): readonly string[] {
  const noun = NOUN_SYNONYMS.get(word);
  if (noun !== undefined) return [[noun, verbOf(noun, next) ?? ''].join(' ').trim()];
  const all = [...NOUNS.keys()];
  const exact = all.filter((each) => verbsOf(each).includes(word));
  const meant = exact.length > 0 ? exact : all.filter((each) => verbOf(each, word)).slice(0, 1);
  return meant.map((each) => `${each} ${verbOf(each, word)}`);
}

/** A verb of a noun, under its name or a synonym. */
function verbOf(noun: string, word: string): string | undefined {
  const synonyms = VERB_SYNONYMS[noun] ?? {};
  if (verbsOf(noun).includes(word)) return word;
  return Object.hasOwn(synonyms, word) ? synonyms[word] : undefined;
}

function verbsOf(noun: string): readonly string[] {
  return (NOUNS.get(noun)?.commands ?? []).map(({ name }) => name.slice(noun.length + 1));
}
