import { describe, expect, it } from 'vitest';
import { bundle } from './bundle.ts';
import { ENTRIES, specifierOf } from './entries.ts';

describe('a bundler', () => {
  it.each(ENTRIES.map(specifierOf))('leaves nothing of %s where nothing is used', async (entry) => {
    const unused = [
      `import '${entry}';`,
      `import {} from '${entry}';`,
      `import * as all from '${entry}';`,
    ];
    for (const program of unused) expect((await bundle(program)).text).toBe('');

    expect((await bundle(`export * from '${entry}';`)).bytes).toBeGreaterThan(1000);
  });

  // The name, and what a message of the left out part says.
  it.each([['parseScope', 'ScopeCatalog', 'a catalog holds scopes']])(
    'takes of tokenwright/scope %s without %s',
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
  ])('takes %s without zod', async (name) => {
    const alone = await bundle(`export { ${name} } from 'tokenwright';`);
    const service = await bundle(`export { ${name}, TokenService } from 'tokenwright';`);

    expect(alone.imports).not.toContain('zod');
    expect(service.imports).toContain('zod');
  });

  it.each<[string, readonly string[]]>([
    ['tokenwright', ['zod']],
    ['tokenwright/scope', []],
    ['tokenwright/openapi', ['@apidevtools/swagger-parser']],
    ['tokenwright/http', ['zod']],
    ['tokenwright/sqlite', []],
    ['tokenwright/postgres', []],
    ['tokenwright/mysql', []],
    ['tokenwright/redis', []],
    ['tokenwright/testing', []],
  ])('finds that %s imports of other packages %j', async (entry, packages) => {
    const { imports } = await bundle(`export * from '${entry}';`);

    expect(imports.filter((name) => !name.startsWith('node:'))).toEqual(packages);
  });
});
