import { createContext, runInContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { type BuildOptions, build } from 'esbuild';
import { describe, expect, it } from 'vitest';

const root = new URL('../..', import.meta.url).pathname;
const MAX_BYTES = 12.25 * 1024;

async function bundle(options: BuildOptions) {
  const result = await build({
    absWorkingDir: root,
    entryPoints: ['src/scope/index.ts'],
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    target: 'es2022',
    platform: 'neutral',
    logLevel: 'silent',
    ...options,
  });
  return {
    text: result.outputFiles?.[0]?.text ?? '',
    inputs: Object.keys(result.metafile?.inputs ?? {}),
    imports: Object.values(result.metafile?.outputs ?? {}).flatMap((output) => output.imports),
  };
}

describe('tokenwright/scope', () => {
  it('bundles only its own files, without any import', async () => {
    const { inputs, imports } = await bundle({ format: 'esm' });

    expect(inputs.filter((file) => !/^src\/scope\/[a-z-]+\.ts$/.test(file))).toEqual([]);
    expect(imports).toEqual([]);
  });

  it('weighs less than 12.25 KiB, minified and compressed', async () => {
    const { text } = await bundle({ format: 'esm' });

    expect(gzipSync(text, { level: 9 }).length).toBeLessThan(MAX_BYTES);
    expect(text.length).toBeGreaterThan(MAX_BYTES);
  });

  it('runs in an environment with nothing but ECMAScript', async () => {
    const { text } = await bundle({ format: 'iife', globalName: 'scope' });
    const context = createContext({});
    const run = (code: string): unknown => JSON.parse(String(runInContext(code, context)));
    runInContext(text, context);

    expect(
      run(`JSON.stringify([typeof process, typeof Buffer, typeof TextEncoder, typeof URL,
        typeof setTimeout, typeof require, typeof queueMicrotask, typeof structuredClone])`),
    ).toEqual(Array(8).fill('undefined'));
    expect(
      run(`JSON.stringify((() => {
        const held = scope.ScopeSet.from(['GET:*.shop.example/orders', '*:shop.example/*']);
        const request = { method: 'GET', domain: 'eu.shop.example', target: '/orders/%c3%a8?x' };
        const catalog = scope.defineCatalog(['GET:shop.example/orders', 'POST:shop.example/token']);
        const codes = [];
        for (const text of ['get:shop.example/orders', 7]) {
          try { scope.parseScope(text); } catch (error) {
            codes.push([error instanceof scope.ScopeError, error.code, error.suggestion]);
          }
        }
        return {
          codes,
          allowed: held.allows(request),
          refused: held.explain({ ...request, method: 'PUT' }, catalog).nearest.failed,
          granted: catalog.expand(['GET:*.example/*']).granted,
          lint: catalog.lint().map(({ code }) => code),
          shared: held.intersection(['GET:*/orders/open']).toArray(),
        };
      })())`),
    ).toEqual({
      codes: [
        [true, 'method_invalid', 'GET:shop.example/orders'],
        [true, 'not_a_string', null],
      ],
      allowed: { allowed: true, by: 'GET:*.shop.example/orders' },
      refused: 'domain',
      granted: ['GET:shop.example/orders'],
      lint: ['token_service'],
      shared: ['GET:*.shop.example/orders/open', 'GET:shop.example/orders/open'],
    });
  });
});
