import { describe, expect, it } from 'vitest';
import { COMMANDS, NOUNS } from '../../../src/app/cli/commands/index.ts';
import { helpOn, nounHelp, shortHelp, unknownCommand } from '../../../src/app/cli/help.ts';
import { FLAG_SYNONYMS, NOUN_SYNONYMS, VERB_SYNONYMS } from '../../../src/app/cli/synonyms.ts';
import { outcomeOf, run } from './support.ts';

const NAMES = COMMANDS.map(({ name }) => name);

/** What the error says to use instead. */
const usesOf = (message: string) =>
  [...message.matchAll(/tokenwright ([a-z -]+?)(?= or |$)/g)].map(([, call]) => call as string);

describe('tokenwright alone', () => {
  it('prints a short help on standard output, and ends with 0', async () => {
    const { code, stdout, stderr } = await run([]);

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe(`${shortHelp()}\n`);
    expect(stdout.split('\n').length).toBeLessThan(16);
    expect(stdout).toContain('\n  token issue ');
    expect(stdout).toContain('tokenwright --help lists all commands');
  });

  it.each([...NOUNS.keys()])('and a noun print the commands of it: %s', async (noun) => {
    const { code, stdout } = await run([noun]);
    const others = NAMES.filter((name) => !name.startsWith(`${noun} `));

    expect({ code, stdout }).toEqual({ code: 0, stdout: `${nounHelp(noun)}\n` });
    for (const name of NAMES.filter((each) => each.startsWith(`${noun} `))) {
      expect(stdout).toContain(`\n  ${name} `);
    }
    for (const name of others) expect(stdout).not.toContain(`\n  ${name} `);
  });
});

describe('help', () => {
  it.each([
    [
      ['help', 'token', 'issue'],
      ['token', 'issue', '--help'],
    ],
    [
      ['help', 'token'],
      ['token', '-h'],
    ],
    [['help'], ['--help']],
  ])('prints the same for %j as for %j', async (words, flagged) => {
    const { code, stdout } = await run(words);

    expect(code).toBe(0);
    expect(await run(flagged)).toMatchObject({ code: 0, stdout });
  });

  it('has one line for each command', () => {
    const lines = helpOn([]).split('\n');

    for (const { name, summary } of COMMANDS) {
      expect(lines.filter((line) => line.startsWith(`  ${name} `))).toEqual([
        `  ${name.padEnd(21)}  ${summary}`,
      ]);
    }
    expect(lines.length).toBeLessThan(60);
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
  });
});

describe('an unknown command', () => {
  it.each([
    ['tokn', 'there is no command tokn; did you mean token?'],
    ['sevre', 'there is no command sevre; did you mean serve?'],
    ['token lst', 'token has no command lst; did you mean list?'],
    ['keys rotat', 'keys has no command rotat; did you mean rotate?'],
    ['token canary', 'token has no such command: the commands are issue, list, get'],
    ['canary', 'there is no such command: the commands are serve, docs, completion, token'],
    ['token --json', 'token has no such command: the commands are issue'],
    ['login', 'there is no command login: nobody signs in once for all commands: give --url'],
    ['explain invalid_ttl', 'there is no command explain: use tokenwright docs CODE'],
    ['--port 9008', 'a command must come before the flags; did you mean tokenwright serve?'],
    ['--constructor', 'there is no such command'],
    ['constructor', 'there is no such command'],
    ['token constructor', 'token has no such command'],
  ])('gets a hint in one line: %s', async (line, message) => {
    const { code, stdout, stderr } = await run(line.split(' '));

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`tokenwright: ${message}`);
    expect(stderr.trim()).not.toContain('\n');
  });

  it.each(['hunter2', 'mylist12', 'correct-horse-battery', 'get!t0ken'])(
    'is not repeated if it may be a password: %s',
    (word) => {
      expect(unknownCommand([word]).message).not.toContain(word);
      expect(unknownCommand(['token', word]).message).not.toContain(word);
    },
  );

  it.each([
    ['migrate', ['store migrate']],
    ['doctor', ['store doctor']],
    ['purge', ['store purge']],
    ['reseal', ['store reseal']],
    ['backup', ['store backup']],
    ['copy', ['store copy']],
    ['review', ['token review']],
    ['import', ['token import']],
    ['rotate', ['token rotate', 'keys rotate']],
    ['scopes', ['catalog']],
    ['scopes explain', ['catalog explain']],
    ['scopes diff', ['catalog diff']],
    ['scopes canary', ['catalog']],
    ['tokens ls', ['token list']],
    ['ls', ['token list']],
    ['create', ['token issue']],
    ['start', ['serve']],
  ])('that was one, or is one elsewhere, is answered with its name: %s', (line, expected) => {
    const { message, exitCode } = unknownCommand(line.split(' '));

    expect(usesOf(message)).toEqual(expected);
    expect(exitCode).toBe(2);
  });

  const synonyms = Object.entries(VERB_SYNONYMS).flatMap(([noun, verbs]) =>
    Object.entries(verbs).map(([word, verb]) => [`${noun} ${word}`, `${noun} ${verb}`] as const),
  );

  it.each(synonyms)('%s is answered with %s, which exists', (line, expected) => {
    expect(NAMES).not.toContain(line);
    expect(usesOf(unknownCommand(line.split(' ')).message)).toEqual([expected]);
    expect(NAMES).toContain(expected.replace(/ --.*/, ''));
  });

  it.each([...NOUN_SYNONYMS])('%s is answered with %s, which exists', (word, noun) => {
    expect(usesOf(unknownCommand([word]).message)).toEqual([noun]);
    expect(NOUNS.has(noun) || NAMES.includes(noun)).toBe(true);
  });
});

describe('an unknown flag', () => {
  it.each([
    ['token list --format json', 'token list has no flag --format: use --json; see tokenwright'],
    ['token list --output=json', 'has no flag --output: use --json'],
    ['token list -o json', 'has no flag -o: use --json'],
    ['token issue --expires 90d', 'has no flag --expires: use --ttl or --expire'],
    ['token rotate --force', 'token rotate has no flag --force; see tokenwright token rotate'],
    ['token revoke --force', 'token revoke has no flag --force: use --yes'],
    ['token list --urll x', 'did you mean --url? See tokenwright token list --help'],
    ['token list --password x', 'has no flag --password: the password has no flag'],
    ['token list --canary', 'token list has no flag --canary; see tokenwright token list --help'],
  ])('gets a hint: %s', async (line, message) => {
    await expect(outcomeOf(line.split(' '))).rejects.toThrow(message);
    await expect(outcomeOf(line.split(' '))).rejects.toMatchObject({ exitCode: 2 });
  });

  it.each([...FLAG_SYNONYMS])('--%s stands for flags that a command has: %j', (_, flags) => {
    const known = COMMANDS.flatMap((each) => Object.keys(each.flags));

    for (const flag of flags) expect(known).toContain(flag);
  });
});

describe('--quiet', () => {
  it('leaves out the remarks, and nothing else', async () => {
    const list = ['catalog', 'diff', 'GET:a.example/x', 'GET:a.example/x', '--rights'];

    expect(await run(list)).toMatchObject({ code: 0, stderr: expect.stringContaining('same') });
    expect(await run([...list, '--quiet'])).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(await run(['token', 'get', '--quiet'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('<ID> is missing'),
    });
  });
});
