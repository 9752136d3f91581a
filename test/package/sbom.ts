// Prints the bundled packages and the run-time dependencies as a CycloneDX document: `npm run sbom`.
//
// npm makes the document from a project with exactly these packages. From the whole repository it would
// list either every tool or, with --omit dev, not even zod, because some tool needs it as well; and it
// would never list the bundled packages.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import packageJson from '../../package.json' with { type: 'json' };

const root = new URL('../..', import.meta.url).pathname;
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

type Versions = Readonly<Record<string, string>>;

/** The parts of a CycloneDX document that are read here. */
interface Sbom {
  readonly components: readonly { readonly 'bom-ref': string }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/** The bundled packages, as the notices name them. */
export function bundledIn(notices: string): Versions {
  const titles = notices.matchAll(/^## (\S+) (\d\S*) \(/gm);
  return Object.fromEntries([...titles].map(([, name, version]) => [name, version]));
}

/**
 * Removes packages that users do not get: the dependencies of a bundled package, unless they are
 * bundled as well.
 *
 * @param needed packages that users install, with all their dependencies
 */
export function trimmed<Document extends Sbom>(
  document: Document,
  needed: Versions,
  bundled: Versions,
): Document {
  const edges = new Map(document.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
  const kept = new Set(refsOf(needed));
  // Iterating over a set also visits members that are added meanwhile.
  for (const ref of kept) for (const next of edges.get(ref) ?? []) kept.add(next);
  for (const ref of refsOf(bundled)) kept.add(ref);
  return {
    ...document,
    components: document.components.filter((one) => kept.has(one['bom-ref'])),
    dependencies: document.dependencies
      .filter(({ ref }) => kept.has(ref) || ref.startsWith(`${packageJson.name}@`))
      .map((one) => ({ ...one, dependsOn: one.dependsOn.filter((ref) => kept.has(ref)) })),
  };
}

function refsOf(versions: Versions): string[] {
  return Object.entries(versions).map(([name, version]) => `${name}@${version}`);
}

function makeSbom(): Sbom {
  const { name, version, description, license } = packageJson;
  const { packages } = JSON.parse(read('package-lock.json'));
  const needed = Object.fromEntries(
    Object.keys(packageJson.dependencies).map((one) => [
      one,
      packages[`node_modules/${one}`].version,
    ]),
  );
  const bundled = bundledIn(read('dist/THIRD-PARTY-NOTICES.md'));
  const folder = mkdtempSync(join(tmpdir(), 'sbom-'));
  const cwd = join(folder, name);
  mkdirSync(cwd);
  try {
    const dependencies = { ...needed, ...bundled };
    const manifest = { name, version, description, license, dependencies };
    writeFileSync(join(cwd, 'package.json'), JSON.stringify(manifest));
    const npm = (...words: string[]) => execFileSync('npm', words, { cwd, encoding: 'utf8' });
    npm('install', '--package-lock-only', '--ignore-scripts');
    const made = npm('sbom', '--package-lock-only', '--sbom-format', 'cyclonedx');
    return trimmed(JSON.parse(made), needed, bundled);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (import.meta.main) console.log(JSON.stringify(makeSbom(), null, 2));
