// Prints what the package holds and needs at run time as a CycloneDX document: `npm run sbom`.
//
// npm makes it of a project that has just that. Of the whole repository it would list either every tool
// or, with --omit dev, not even zod, which some tool needs as well; and never what is bundled.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import packageJson from '../../package.json' with { type: 'json' };

const root = new URL('../..', import.meta.url).pathname;
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

type Versions = Readonly<Record<string, string>>;

/** As much of a CycloneDX document as is looked at. */
interface Sbom {
  readonly components: readonly { readonly 'bom-ref': string }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/** What is bundled, as its notices name it. */
export function bundledIn(notices: string): Versions {
  const titles = notices.matchAll(/^## (\S+) (\d\S*) \(/gm);
  return Object.fromEntries([...titles].map(([, name, version]) => [name, version]));
}

/**
 * Leaves out what is not in the package: what is bundled is there without what it asks for itself,
 * unless that is bundled as well.
 *
 * @param needed by users, with all that this asks for
 */
export function trimmed<Document extends Sbom>(
  document: Document,
  needed: Versions,
  bundled: Versions,
): Document {
  const edges = new Map(document.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
  const kept = new Set(refsOf(needed));
  // A set goes through what is added meanwhile, too.
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
