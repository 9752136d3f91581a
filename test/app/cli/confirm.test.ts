import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { confirm } from '../../../src/app/cli/confirm.ts';

const WHAT = 'this would revoke all tokens of ada';

/** Asks on a terminal, where a person types `answer`. */
async function ask(answer: string, { input = true, output = true, yes = false } = {}) {
  const typed = Object.assign(new PassThrough(), { isTTY: input });
  const texts: string[] = [];
  const shown = { isTTY: output, write: (text: string) => void texts.push(text) };
  typed.end(answer);
  const outcome = await confirm(WHAT, { yes }, { input: typed, output: shown }).then(
    () => 'confirmed',
    (error: { message: string; exitCode: number }) => [error.exitCode, error.message],
  );
  return { asked: texts.join(''), outcome };
}

describe('confirm', () => {
  it.each([
    ['y\n', 'confirmed'],
    ['yes\n', 'confirmed'],
    [' YES \r\n', 'confirmed'],
    ['\n', [1, 'nothing was changed']],
    ['n\n', [1, 'nothing was changed']],
    ['yesterday\n', [1, 'nothing was changed']],
    ['n\ny\n', [1, 'nothing was changed']],
    ['', [1, 'nothing was changed']],
  ])('asks on a terminal: %j is %j', async (answer, expected) => {
    expect(await ask(answer)).toEqual({ asked: `${WHAT}. Continue? [y/N] `, outcome: expected });
  });

  it('asks nothing if --yes was given', async () => {
    expect(await ask('n\n', { yes: true })).toEqual({ asked: '', outcome: 'confirmed' });
  });

  it.each([
    { input: false, output: true },
    { input: true, output: false },
  ])('needs --yes if nobody can be asked: %j', async (terminal) => {
    expect(await ask('y\n', terminal)).toEqual({
      asked: '',
      outcome: [2, `${WHAT}: add --yes to confirm`],
    });
  });
});
