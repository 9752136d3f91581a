import { describe, expect, it } from 'vitest';
import { obstacles } from './release.ts';

const READY = {
  version: '1.2.0',
  homepage: 'https://localhost/',
  repository: { type: 'git', url: 'git+https://localhost/tokenwright.git' },
};
const { homepage: _, ...HOMELESS } = READY;
const { repository: __, ...ROOTLESS } = READY;

describe('npm run release', () => {
  it('proceeds if nothing is missing', () => {
    expect(obstacles(READY, [])).toEqual([]);
  });

  it.each([
    ['a homepage on a reserved name', { ...READY, homepage: 'https://tokenwright.example' }, []],
    [
      'a homepage on a reserved name, with a path',
      { ...READY, homepage: 'https://tokenwright.example/docs/' },
      [],
    ],
    ['no homepage', HOMELESS, []],
    ['no repository', ROOTLESS, []],
    ['a pending changeset', READY, ['stores.md']],
    ['the version 0.0.0', { ...READY, version: '0.0.0' }, []],
  ])('refuses %s', (_, manifest, changesets) => {
    expect(obstacles(manifest, changesets)).toHaveLength(1);
  });
});
