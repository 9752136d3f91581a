import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import { SecretLine } from '../../../src/app/cli/password.ts';
import { fixedAccounts, tokenHandler, toNodeListener } from '../../../src/http/index.ts';
import { generateKey, MemoryTokenStore, TokenService } from '../../../src/index.ts';
import { listen, run } from './support.ts';
import { HAS_TERMINALS, inTerminal } from './terminal.ts';

const PASSWORD = 'Correct-hörse 🐎';

/** The URL of a service with the account `ada`. */
async function served(): Promise<string> {
  const tokens = new TokenService({
    store: new MemoryTokenStore(),
    keys: [generateKey()],
    prefix: 'tw',
  });
  const authenticate = fixedAccounts([{ username: 'ada', password: PASSWORD }]);
  const port = await listen(createServer(toNodeListener(tokenHandler({ tokens, authenticate }))));
  return `http://127.0.0.1:${port}`;
}

const LIST = 'tokenwright token list --user ada';

describe.runIf(HAS_TERMINALS)('the question for a password', () => {
  it('takes one that is typed, and does not show it', async () => {
    const url = await served();
    const terminal = inTerminal(`${LIST}; echo "code $?"; stty -a`, { TOKENWRIGHT_URL: url });

    await terminal.shows('Password for ada: ');
    terminal.type(`${PASSWORD}x\u007f\r`);
    const output = await terminal.ended;

    expect(output).toContain(`0 tokens of ada at ${url}`);
    expect(output).toContain('code 0');
    expect(output).toMatch(/ icanon.* echo /s);
    expect(output).not.toContain('orrect');
  });

  it('takes one that is pasted, with the marks and the line break of the paste', async () => {
    const url = await served();
    const terminal = inTerminal(`${LIST}; echo "code $?"`, { TOKENWRIGHT_URL: url });

    await terminal.shows('Password for ada: ');
    terminal.type(`\u001b[200~${PASSWORD}\n\u001b[201~`);

    expect(await terminal.ended).toContain('code 0');
  });

  it.each([
    ['Ctrl-C', '\u0003', 130, ''],
    ['Enter alone', '\r', 2, 'the password is missing: set TOKENWRIGHT_PASSWORD'],
    ['Ctrl-D', '\u0004', 2, 'the password is missing'],
  ])('ends at %s, and gives the terminal back', async (_, keys, code, message) => {
    const terminal = inTerminal(`${LIST}; echo "code $?"; stty -a`, {
      TOKENWRIGHT_URL: 'http://127.0.0.1:1',
    });

    await terminal.shows('Password for ada: ');
    terminal.type(keys);
    const output = await terminal.ended;

    expect(output).toContain(`code ${code}`);
    expect(output).toContain(message);
    expect(output).toMatch(/ icanon.* echo /s);
  });

  it('gives the terminal back when a signal ends it', async () => {
    const line = `sh -c 'echo "pid $$."; exec "$NODE" "$MAIN" token list --user ada'; echo "code $?"; stty -a`;
    const terminal = inTerminal(line, { TOKENWRIGHT_URL: 'http://127.0.0.1:1' });

    const pid = /pid (\d+)\./.exec(await terminal.shows('Password for ada: '))?.[1];
    process.kill(Number(pid), 'SIGHUP');
    const output = await terminal.ended;

    expect(output).toContain('code 129');
    expect(output).toMatch(/ icanon.* echo /s);
  });

  it('is not asked if the errors go elsewhere, where nobody would see it', async () => {
    const terminal = inTerminal(`${LIST} 2>/dev/null; echo "code $?"`, {
      TOKENWRIGHT_URL: 'http://127.0.0.1:1',
    });

    expect(await terminal.ended).toContain('code 2');
  });
});

it.runIf(HAS_TERMINALS)('nobody is asked if the address is wrong', async () => {
  const terminal = inTerminal(`${LIST}; echo "code $?"`, { TOKENWRIGHT_URL: 'localhost:8787' });
  const output = await terminal.ended;

  expect(output).toContain('--url (TOKENWRIGHT_URL) must be like');
  expect(output).not.toContain('Password for');
});

it('without a terminal, the error names the variable and its form for a file', async () => {
  const { code, stderr } = await run(['token', 'list', '--url', 'http://127.0.0.1:1'], {
    TOKENWRIGHT_USER: 'ada',
  });

  expect(code).toBe(2);
  expect(stderr).toMatch(/set TOKENWRIGHT_PASSWORD, or TOKENWRIGHT_PASSWORD_FILE to the path/);
});

describe('SecretLine', () => {
  it.each<[name: string, keys: string[], text: string, isInterrupted: boolean]>([
    ['what is typed', ['a', 'b', '\r'], 'ab', false],
    ['the first line of a paste', ['ab\ncd\n'], 'ab', false],
    ['no marks of a paste', ['\u001b[200~ab\u001b[201~', '\r'], 'ab', false],
    ['marks in pieces', ['\u001b[20', '0~a', 'b\u001b[2', '01~\n'], 'ab', false],
    ['no arrow keys', ['a\u001b[D\u001bOCb\n'], 'ab', false],
    ['an erased character', ['aä\u007f\u007f\u007fb\n'], 'b', false],
    ['an erased emoji', ['a🐎\bb\n'], 'ab', false],
    ['an erased line', ['abc\u0015d\n'], 'd', false],
    ['no control characters', ['a\tb\u0000\n'], 'ab', false],
    ['an interruption', ['ab\u0003'], 'ab', true],
    ['no interruption after the end', ['ab\r\u0003'], 'ab', false],
    ['the end of the input', ['ab\u0004'], 'ab', false],
  ])('reads %s', (_, keys, text, isInterrupted) => {
    const line = new SecretLine();
    const ends = keys.map((each) => line.type(each));

    expect(line.text).toBe(text);
    expect(line.isInterrupted).toBe(isInterrupted);
    expect(ends).toEqual(keys.map((_, index) => index === keys.length - 1));
  });
});
