import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { checkSync } from 'recheck';
import ts from 'typescript';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { formats } from '../src/values/foreign.ts';

const root = new URL('..', import.meta.url).pathname;

interface Found {
  readonly place: string;
  readonly source: string;
  readonly flags: string;
}

describe('the regular expressions of the source', () => {
  beforeAll(() => {
    vi.stubEnv('RECHECK_SYNC_BACKEND', 'pure');
    return () => vi.unstubAllEnvs();
  });

  const found = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => expressionsOf(join(root, 'src', file)))
    // The pattern of --foreign is the operator's own. Those of formats have a test of their own.
    .filter(
      ({ place, source }) =>
        source !== undefined || !/^src\/(?:cli\/foreign-formats|values\/redact)\.ts/.test(place),
    );

  it('are found', () => {
    const text = 'const a = /x+/iu; const b = new RegExp("(a+)+$", "s"); RegExp(a + "b");';

    expect(found.length).toBeGreaterThan(20);
    expect(expressionsIn('sample.ts', text).map(({ source, flags }) => [source, flags])).toEqual([
      ['x+', 'iu'],
      ['(a+)+$', 's'],
      [undefined, ''],
    ]);
  });

  it.each(found)('take linear time: $place /$source/$flags', ({ source, flags }) => {
    expect(complexityOf(source, flags)).toMatch(/^(?:safe|linear)$/);
  });

  it.each([
    formats.sanctum({ prefix: 'a.b_' }),
    formats.betterAuth({ prefix: 'old_' }),
    formats.keypal({ prefix: 'sk_' }),
    formats.unkey({ prefix: 'unk' }),
    formats.prefixedApiKey({ prefix: 'mycompany' }),
  ])('take linear time in a text: $name', ({ inText = '' }) => {
    expect(complexityOf(inText, 'g')).toMatch(/^(?:safe|linear)$/);
  });

  it.each([
    ['(a+)+$', 'exponential'],
    ['^[a-z]+[a-z0-9]+:$', 'polynomial'],
    ['\\s+$', 'polynomial'],
  ])('would be noticed: /%s/ is %s', (source, expected) => {
    expect(complexityOf(source, '')).toBe(expected);
  });
});

function complexityOf(source: string, flags: string): string {
  const result = checkSync(source, flags, { timeout: 20_000 });
  return result.status === 'unknown' ? result.status : result.complexity.type;
}

function expressionsOf(file: string): Found[] {
  return expressionsIn(relative(root, file), readFileSync(file, 'utf8'));
}

/** Literals, and `RegExp` with what it is given; `source` is undefined where that is no literal. */
function expressionsIn(file: string, text: string): Found[] {
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: Found[] = [];
  const visit = (node: ts.Node): void => {
    const place = `${file}:${tree.getLineAndCharacterOfPosition(node.getStart()).line + 1}`;
    if (ts.isRegularExpressionLiteral(node)) {
      const end = node.text.lastIndexOf('/');
      found.push({ place, source: node.text.slice(1, end), flags: node.text.slice(end + 1) });
    } else if (
      (ts.isNewExpression(node) || ts.isCallExpression(node)) &&
      node.expression.getText() === 'RegExp'
    ) {
      const [source, flags] = (node.arguments ?? []).map(literalOf);
      found.push({ place, source: source as string, flags: flags ?? '' });
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

function literalOf(node: ts.Expression): string | undefined {
  return ts.isStringLiteralLike(node) ? node.text : undefined;
}
