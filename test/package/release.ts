// Checks what blocks a release, before anything is built: `npm run release`.
import { readdirSync } from 'node:fs';
import packageJson from '../../package.json' with { type: 'json' };

export interface Manifest {
  readonly version: string;
  readonly homepage?: string;
  readonly repository?: unknown;
}

/** One line for each thing that is missing; none when it can be published. */
export function obstacles(manifest: Manifest, changesets: readonly string[]): string[] {
  const host = manifest.homepage === undefined ? '' : new URL(manifest.homepage).hostname;
  return [
    ...(host === '' || host.endsWith('.example')
      ? ['homepage in package.json must be an address that readers can open']
      : []),
    ...(manifest.repository === undefined
      ? ['repository in package.json is missing; npm needs it to prove where the package was built']
      : []),
    ...(changesets.length > 0 ? ['changesets are waiting: run npx changeset version, commit'] : []),
    ...(manifest.version === '0.0.0' ? ['the version is still 0.0.0'] : []),
  ];
}

if (import.meta.main) {
  const folder = new URL('../../.changeset/', import.meta.url);
  const changesets = readdirSync(folder).filter((name) => /^(?!README).*\.md$/.test(name));
  const found = obstacles(packageJson, changesets);
  for (const obstacle of found) console.error(`no release: ${obstacle}`);
  process.exitCode = found.length === 0 ? 0 : 1;
}
