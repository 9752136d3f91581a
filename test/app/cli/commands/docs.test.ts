import { describe, expect, it } from 'vitest';
import { CODES } from '../../../codes.ts';
import { outcomeOf, run } from '../support.ts';

const ERRORS: readonly string[] = [...new Set(Object.values(CODES).flat())];

describe('docs', () => {
  it.each([
    ['express', '# Express\n'],
    ['guides/express', '# Express\n'],
    ['errors', '# Errors\n'],
    ['token', '# Token\n'],
  ])('prints the page %s as it is written', async (page, start) => {
    const { code, stdout, stderr } = await run(['docs', page]);

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.startsWith(start)).toBe(true);
  });

  it('lists all pages by name and title, in lines that fit a terminal', async () => {
    const { json, text } = await outcomeOf(['docs']);

    expect(json).toContainEqual({ page: 'guides/choose-a-store', title: 'Choose a store' });
    expect(json.length).toBeGreaterThan(30);
    expect(json.filter(({ title }: { title: string }) => title === '')).toEqual([]);
    for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  });

  it('returns a page as Markdown in JSON', async () => {
    const { json } = await outcomeOf(['docs', 'express']);

    expect(json).toEqual({ page: 'guides/express', text: expect.stringMatching(/^# Express\n/) });
  });

  it.each(ERRORS)('prints the section about the error code %s as a page', async (code) => {
    const { text, json } = await outcomeOf(['docs', code]);

    expect(text.startsWith(`# ${code}\n\n`)).toBe(true);
    expect(text).not.toMatch(/^#* .*\{#/m);
    expect(json).toEqual({ page: code, text });
  });

  it('has no page that is named like an error code', async () => {
    const { json } = await outcomeOf(['docs']);
    const names = json.map(({ page }: { page: string }) => page.replace(/.*\//, ''));

    expect(names.filter((name: string) => ERRORS.includes(name))).toEqual([]);
  });

  it.each([
    ['invalid_tll', 'did you mean invalid_ttl?'],
    ['expres', 'did you mean express?'],
    ['../../package.json', 'there is no such page or error code. tokenwright docs lists all pages'],
    ['reference/index', 'tokenwright docs lists all pages'],
    ['tw_1k1canary', 'tokenwright docs lists all pages'],
  ])('refuses %s without repeating it', async (word, message) => {
    const { code, stdout, stderr } = await run(['docs', word]);

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr.replace('express', '')).not.toContain(word);
  });
});
