import { brotliCompressSync } from 'node:zlib';
import { build } from 'esbuild';
import packageJson from '../../package.json' with { type: 'json' };

export interface Bundle {
  readonly text: string;
  /** Minified and compressed, without the packages that users install themselves. */
  readonly bytes: number;
  /** The packages and Node modules that are still imported, statically or dynamically. */
  readonly imports: readonly string[];
}

/** Bundles a program that imports the package from its build. */
export async function bundle(program: string): Promise<Bundle> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: program, resolveDir: import.meta.dirname },
    external: Object.keys(packageJson.peerDependencies),
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'node',
    target: 'es2022',
    write: false,
    metafile: true,
    logLevel: 'silent',
  });
  const text = outputFiles[0]?.text ?? '';
  const imports = Object.values(metafile.outputs).flatMap((output) => output.imports);
  return {
    text,
    bytes: brotliCompressSync(text).length,
    imports: [...new Set(imports.map(({ path }) => path))].sort(),
  };
}
