import type ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { complaintsAbout } from './support.ts';

const HEAD = `import type { GuardOutcome } from './src/http/index.ts';
import type { Verdict } from './src/index.ts';
declare const outcome: GuardOutcome;
declare const verdict: Verdict;
`;

/** The tsconfig that Next.js writes by itself, and the one of this project. */
const SETTINGS: readonly (readonly [string, ts.CompilerOptions])[] = [
  ['without strict', { strict: false, exactOptionalPropertyTypes: false, types: ['node'] }],
  ['with strict', { types: ['node'] }],
];

const CANONICAL = `export function answer(): Response | string {
  if (!outcome.ok) return outcome.response;
  return outcome.token.account;
}
export const reason: string = verdict.ok ? verdict.token.id : verdict.reason;
export const needed: string | undefined = verdict.ok ? undefined : verdict.needed;
`;

describe.each(SETTINGS)('the outcome of a guard, and a verdict, %s', (_, options) => {
  const messages = (text: string) =>
    complaintsAbout({ 'outcome.ts': HEAD + text }, { ...options, skipLibCheck: true }).map(
      ({ message }) => message,
    );

  it('may be used as the pages show it', () => {
    expect(messages(CANONICAL)).toEqual([]);
  });

  it('have no other members (the control)', () => {
    expect(messages('export const value = outcome.value;')).toEqual([
      expect.stringContaining("Property 'value' does not exist"),
    ]);
  });
});

describe('with strict', () => {
  it('a response is not there before ok was asked for', () => {
    const messages = complaintsAbout(
      { 'outcome.ts': `${HEAD}export const response: Response = outcome.response;` },
      { types: ['node'], skipLibCheck: true },
    ).map(({ message }) => message);

    expect(messages).toEqual([expect.stringContaining("'undefined' is not assignable")]);
  });
});
