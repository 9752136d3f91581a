import type ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { diagnosticsOf } from './support.ts';

const HEAD = `import type { GuardOutcome } from './src/http/index.ts';
import type { Verdict } from './src/index.ts';
declare const outcome: GuardOutcome;
declare const verdict: Verdict;
`;

/** Like the tsconfig that Next.js generates, and like the one of this project. */
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

describe.each(SETTINGS)('the types of a guard outcome and a verdict, %s', (_, options) => {
  const messages = (text: string) =>
    diagnosticsOf({ 'outcome.ts': HEAD + text }, { ...options, skipLibCheck: true }).map(
      ({ message }) => message,
    );

  it('compile as the documentation uses them', () => {
    expect(messages(CANONICAL)).toEqual([]);
  });

  it('have no other members (the control)', () => {
    expect(messages('export const value = outcome.value;')).toEqual([
      expect.stringContaining("Property 'value' does not exist"),
    ]);
  });
});

describe('with strict', () => {
  it('the response of an outcome cannot be used before ok is checked', () => {
    const messages = diagnosticsOf(
      { 'outcome.ts': `${HEAD}export const response: Response = outcome.response;` },
      { types: ['node'], skipLibCheck: true },
    ).map(({ message }) => message);

    expect(messages).toEqual([expect.stringContaining("'undefined' is not assignable")]);
  });
});
