// Prints the bundled packages as a CycloneDX document: `npm run sbom`.
//
// npm makes the document from a project with exactly these packages. From the whole repository it would
// list every tool, or nothing.
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

/** Removes what users do not get: the dependencies of bundled packages, unless they are bundled as well. */
export function trimmed<Document extends Sbom>(document: Document, bundled: Versions): Document {
  const kept = new Set(Object.entries(bundled).map(([name, version]) => `${name}@${version}`));
  return {
    ...document,
    components: document.components.filter((one) => kept.has(one['bom-ref'])),
    dependencies: document.dependencies
      .filter(({ ref }) => kept.has(ref) || ref.startsWith(`${packageJson.name}@`))
      .map((one) => ({ ...one, dependsOn: one.dependsOn.filter((ref) => kept.has(ref)) })),
  };
}

function makeSbom(): Sbom {
  const { name, version, description, license } = packageJson;
  const bundled = bundledIn(read('dist/THIRD-PARTY-NOTICES.md'));
  const folder = mkdtempSync(join(tmpdir(), 'sbom-'));
  const cwd = join(folder, name);
  mkdirSync(cwd);
  try {
    const manifest = { name, version, description, license, dependencies: bundled };
    writeFileSync(join(cwd, 'package.json'), JSON.stringify(manifest));
    const npm = (...words: string[]) => execFileSync('npm', words, { cwd, encoding: 'utf8' });
    npm('install', '--package-lock-only', '--ignore-scripts');
    const made = npm('sbom', '--package-lock-only', '--sbom-format', 'cyclonedx');
    return trimmed(JSON.parse(made), bundled);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (import.meta.main) console.log(JSON.stringify(makeSbom(), null, 2));
