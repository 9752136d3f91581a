import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { checkSync } from 'recheck';
import ts from 'typescript';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { formats } from '../src/values/foreign.ts';

const root = new URL('..', import.meta.url).pathname;

interface Found {
  readonly position: string;
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
    // The operator chooses the pattern of --foreign. The patterns of formats are tested below.
    .filter(
      ({ position, source }) =>
        source !== undefined ||
        !/^src\/(?:app\/server\/settings|app\/cli\/commands\/explain|values\/redact)\.ts/.test(
          position,
        ),
    );

  it('are all found (the control)', () => {
    const text = 'const a = /x+/iu; const b = new RegExp("(a+)+$", "s"); RegExp(a + "b");';

    expect(found.length).toBeGreaterThan(20);
    expect(expressionsIn('sample.ts', text).map(({ source, flags }) => [source, flags])).toEqual([
      ['x+', 'iu'],
      ['(a+)+$', 's'],
      [undefined, ''],
    ]);
  });

  it.each(found)('take linear time: $position /$source/$flags', ({ source, flags }) => {
    expect(complexityOf(source, flags)).toMatch(/^(?:safe|linear)$/);
  });

  it.each([
    formats.sanctum({ prefix: 'a.b_' }),
    formats.betterAuth({ prefix: 'old_' }),
    formats.unkey({ prefix: 'unk' }),
    formats.prefixedApiKey({ prefix: 'mycompany' }),
  ])('take linear time for the format $name', ({ inText = '' }) => {
    expect(complexityOf(inText, 'g')).toMatch(/^(?:safe|linear)$/);
  });

  it.each([
    ['(a+)+$', 'exponential'],
    ['^[a-z]+[a-z0-9]+:$', 'polynomial'],
    ['\\s+$', 'polynomial'],
  ])('are detected if they are slow (the control): /%s/ is %s', (source, expected) => {
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

/** Literals, and calls of `RegExp`; `source` is undefined if the argument is not a literal. */
function expressionsIn(file: string, text: string): Found[] {
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: Found[] = [];
  const visit = (node: ts.Node): void => {
    const position = `${file}:${tree.getLineAndCharacterOfPosition(node.getStart()).line + 1}`;
    if (ts.isRegularExpressionLiteral(node)) {
      const end = node.text.lastIndexOf('/');
      found.push({ position, source: node.text.slice(1, end), flags: node.text.slice(end + 1) });
    } else if (
      (ts.isNewExpression(node) || ts.isCallExpression(node)) &&
      node.expression.getText() === 'RegExp'
    ) {
      const [source, flags] = (node.arguments ?? []).map(literalOf);
      found.push({ position, source: source as string, flags: flags ?? '' });
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

function literalOf(node: ts.Expression): string | undefined {
  return ts.isStringLiteralLike(node) ? node.text : undefined;
}
