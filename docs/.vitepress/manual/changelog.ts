// The changelog as a page: the releases, before them what the next one will bring.
import { readFileSync } from 'node:fs';
import { opening } from './text.ts';

const root = new URL('../../../', import.meta.url);

/** Changes that wait for a release are in changesets; many people add them, so this page does not. */
export function changelogPage(): string {
  const text = readFileSync(new URL('CHANGELOG.md', root), 'utf8');
  const releases = text.split(/^(?=## )/m).slice(1);
  const none =
    'There is no release yet. What the first one brings is in `.changeset/first-release.md` of the repository.';
  return [
    opening('Changelog', 'The releases of tokenwright and what they changed.', 'docs:manual'),
    'The releases, newest first, and what they changed for users.',
    '',
    releases.length === 0 ? none : releases.join('\n').trim(),
    '',
  ].join('\n');
}
