import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { bundle } from './bundle.ts';
import { ENTRIES, specifierOf } from './entries.ts';

/** A code that only zod has. */
const OF_ZOD = 'unrecognized_keys';

describe('a bundler', () => {
  it.each(ENTRIES.map(specifierOf))('drops all of %s if nothing is used', async (entry) => {
    const unused = [
      `import '${entry}';`,
      `import {} from '${entry}';`,
      `import * as all from '${entry}';`,
    ];
    for (const program of unused) expect((await bundle(program)).text).toBe('');

    expect((await bundle(`export * from '${entry}';`)).bytes).toBeGreaterThan(1000);
  });

  // The third item is a message that only the omitted part contains.
  it.each([['parseScope', 'ScopeCatalog', 'an entry of a catalog']])(
    'bundles from tokenwright/scope %s without %s',
    async (name, other, text) => {
      const alone = await bundle(`export { ${name} } from 'tokenwright/scope';`);
      const both = await bundle(`export { ${name}, ${other} } from 'tokenwright/scope';`);

      expect(alone.text).not.toContain(text);
      expect(both.text).toContain(text);
      expect(alone.bytes).toBeLessThan(both.bytes / 2);
    },
  );

  it.each([
    'isTokenError',
    'TokenError',
    'systemClock',
    'redact',
    'generateKey',
    'MemoryTokenStore',
  ])('bundles %s without zod', async (name) => {
    const alone = await bundle(`export { ${name} } from 'tokenwright';`);
    const service = await bundle(`export { ${name}, TokenService } from 'tokenwright';`);

    expect(alone.text).not.toContain(OF_ZOD);
    expect(service.text).toContain(OF_ZOD);
  });

  it.each<[string, readonly string[]]>([
    ['tokenwright', []],
    ['tokenwright/scope', []],
    ['tokenwright/openapi', ['@apidevtools/swagger-parser']],
    ['tokenwright/http', []],
    ['tokenwright/console', []],
    ['tokenwright/sqlite', []],
    ['tokenwright/postgres', []],
    ['tokenwright/mysql', []],
    ['tokenwright/redis', []],
    ['tokenwright/testing', []],
  ])('keeps in %s only the imports of the packages %j', async (entry, packages) => {
    const { imports } = await bundle(`export * from '${entry}';`);

    expect(imports.filter((name) => !name.startsWith('node:'))).toEqual(packages);
  });
});

/** The global changes that importing a module makes, measured in a process of its own. */
function effectsOf(specifier: string): unknown {
  const program = `
    const look = () => ({
      globals: Reflect.ownKeys(globalThis).map(String),
      listeners: process.eventNames().map((name) => [String(name), process.listenerCount(name)]),
      env: Object.keys(process.env),
      // Opens the streams that node:assert would open.
      running: [process.stdout, process.stderr] && process.getActiveResourcesInfo().sort(),
      prototypes: [Object, Array, String, Function, Promise, Map, Error].map(
        ({ prototype }) => Reflect.ownKeys(prototype).length,
      ),
    });
    await import('data:text/javascript,');
    const before = look();
    await import(${JSON.stringify(specifier)});
    const after = look();
    const changed = Object.keys(before).filter(
      (key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]),
    );
    const globals = after.globals.filter((name) => !before.globals.includes(name));
    process.stdout.write(JSON.stringify({ changed, globals }));
  `;
  const options = { cwd: import.meta.dirname, encoding: 'utf8' } as const;
  return JSON.parse(
    execFileSync(process.execPath, ['--input-type=module', '-e', program], options),
  );
}

// Bundlers trust sideEffects: false in package.json without checking it.
describe('an import', () => {
  it.each(ENTRIES.map(specifierOf))('of %s has no side effects of its own', async (entry) => {
    const { text } = await bundle(`export * from '${entry}';`);
    const none = { changed: [], globals: [] };

    expect(effectsOf(entry)).toEqual(text.includes(OF_ZOD) ? effectsOf('zod/mini') : none);
  });

  it('with side effects is detected (the control)', () => {
    const program = 'process.on("exit", () => {}); globalThis.left = 1;';

    expect(effectsOf(`data:text/javascript,${program}`)).toEqual({
      changed: ['globals', 'listeners'],
      globals: ['left'],
    });
  });
});
