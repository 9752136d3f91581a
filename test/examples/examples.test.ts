import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, inject, it } from 'vitest';

const folder = new URL('../../examples/', import.meta.url);
const examples = readdirSync(folder).filter((name) => name.endsWith('.ts'));
const read = (name: string) => readFileSync(new URL(name, folder), 'utf8');

describe('the examples', () => {
  const { postgres } = inject('servers');

  const isRunnable = (name: string) =>
    postgres !== undefined || !read(name).includes('DATABASE_URL');

  it.each(examples.filter(isRunnable))('%s prints what its comments say', (name) => {
    const printed = execFileSync(process.execPath, [new URL(name, folder).pathname], {
      encoding: 'utf8',
      env: { ...process.env, DATABASE_URL: postgres },
    });

    expect(printed.trim().split('\n')).toEqual(promisedBy(read(name)));
  });

  it.each(examples)('%s says in its first line what it teaches', (name) => {
    expect(read(name)).toMatch(/^\/\/ [A-Z].{20,}\.\n/);
  });

  it('notices a program that prints something else', () => {
    expect(promisedBy("console.log('a'); // b\n")).toEqual(['b']);
  });
});

describe('the README', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const programs = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code);

  it('begins with the quick start, word for word', () => {
    expect(programs[0]).toBe(read('quickstart.ts'));
  });

  it('holds no program that does not run here', () => {
    const known = examples.map(read);
    expect(programs.filter((code) => !known.includes(code ?? ''))).toEqual([]);
  });
});

/** What the comments behind `console.log` calls promise, in order. */
function promisedBy(code: string): string[] {
  return [...code.matchAll(/console\.log\(.*\); \/\/ (.*)/g)].map(([, promise]) => promise ?? '');
}
