import { describe, expect, it } from 'vitest';
import { recorded, surfaces } from './api.ts';
import { ENTRIES, specifierOf } from './entries.ts';

const published = surfaces(new URL('../../dist', import.meta.url).pathname);

describe('the declarations', () => {
  // If a change is intended: npm run build && npm run api, and a changeset.
  it.each(ENTRIES.map((entry) => [specifierOf(entry), entry] as const))(
    'of %s match test/api',
    (_, entry) => {
      expect(published.get(entry)).toBe(recorded(entry));
    },
  );

  it('are read as published: with parameters, members and imports, but without docstrings', () => {
    const text = published.get('index');

    expect(text).toContain('export declare function isTokenError(value: unknown): ');
    expect(text).toContain(
      '  verify<const Asked extends string = never>(value: string, need: Need<AskedScope<Entry, Asked>>, options?: VerifyOptions): ',
    );
    expect(text).toContain("from 'tokenwright/scope';");
    expect(text).not.toContain('/**');
  });
});
