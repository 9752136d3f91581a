// The build of the package replaces this file by one that holds the built assets as texts. The
// published console builds nothing at run time and reads no files, so that it runs where there are
// none.
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

/** A file of the page. */
export interface Asset {
  /** Its file name, with a hash of its content. */
  readonly name: string;
  readonly type: 'text/javascript' | 'text/css' | 'application/json';
  readonly text: string;
}

/**
 * The files of the page. Run from the sources, this builds them, which takes a tenth of a second.
 */
export function pageAssets(): readonly Asset[] {
  return buildPage().assets;
}

/** Builds the page; `inputs` are the paths of the files that it is made of. */
export function buildPage(): { readonly assets: readonly Asset[]; readonly inputs: string[] } {
  const folder = fileURLToPath(new URL('page/', import.meta.url));
  const { outputFiles, metafile } = buildSync({
    absWorkingDir: folder,
    entryPoints: { app: 'main.tsx', style: 'styles.css' },
    entryNames: '[name]-[hash]',
    outdir: folder,
    write: false,
    metafile: true,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    logLevel: 'error',
  });
  const assets = outputFiles.map(({ path, text }): Asset => {
    const type = path.endsWith('.css') ? 'text/css' : 'text/javascript';
    return { name: basename(path), type, text };
  });
  return {
    assets,
    inputs: Object.keys(metafile.inputs).map((path) =>
      fileURLToPath(new URL(path, `file://${folder}`)),
    ),
  };
}
