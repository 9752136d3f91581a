import { describe, expect, it } from 'vitest';
import { CODES } from '../../../codes.ts';
import { outcomeOf, run } from '../support.ts';

const ALL: readonly string[] = [...new Set(Object.values(CODES).flat())];

describe('explain', () => {
  it('prints the page of an error code without its website markup', async () => {
    const { code, stdout, stderr } = await run(['explain', 'invalid_ttl']);

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^invalid_ttl\n\n/);
    expect(stdout).toContain('\nCure\n');
    expect(stdout).not.toMatch(/^---|^#|```|\]\(|^description:/m);
  });

  it.each(ALL)('prints a page for %s, in lines that fit a terminal', async (code) => {
    const { text } = await outcomeOf(['explain', code]);
    // Messages and programs are printed verbatim, at any length.
    const lines = text.split('\n').filter((line) => !/^(?: {2}|"|- )/.test(line));

    expect(text.startsWith(`${code}\n`)).toBe(true);
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
  });

  it('prints the output that its help shows', async () => {
    const { text } = await outcomeOf(['explain', 'uri_too_long']);
    const { stdout } = await run(['explain', '--help']);
    const [title, , sentence = ''] = text.split('\n');

    expect(stdout).toContain(`$ tokenwright explain uri_too_long\n  ${title}\n\n  ${sentence}`);
  });

  it('lists all error codes and no other pages', async () => {
    const { json, text } = await outcomeOf(['explain']);

    expect(json.map(({ code }: { code: string }) => code)).toEqual([...ALL].sort());
    expect(json.every(({ about }: { about: string }) => about.length > 10)).toBe(true);
    for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  });

  it('returns the page as Markdown in JSON', async () => {
    const { json } = await outcomeOf(['explain', 'invalid_scope']);

    expect(json).toEqual({
      code: 'invalid_scope',
      text: expect.stringMatching(/^# invalid_scope\n/),
    });
  });

  it.each([
    ['invalid_tll', 'did you mean invalid_ttl?'],
    ['INVALID_TTL', 'did you mean invalid_ttl?'],
    ['index', 'this error code is not known. tokenwright explain lists all codes'],
    ['../guides/express', 'tokenwright explain lists all codes'],
    ['tw_1k1canary', 'tokenwright explain lists all codes'],
  ])('refuses %s without repeating it', async (word, message) => {
    const { code, stdout, stderr } = await run(['explain', word]);

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).not.toContain(word);
  });
});
