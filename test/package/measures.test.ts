import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const SRC = join(import.meta.dirname, '../../src');

const MAX_LINES = 620;
const MAX_FUNCTION_LINES = 50;
const MAX_MEMBERS = 34;
/** The contract of stores is meant to be read as one text. */
const LONG_FILES = ['testing/contract.ts'];

interface Measured {
  readonly name: string;
  readonly size: number;
}

interface Measures {
  readonly lines: number;
  readonly functions: readonly Measured[];
  readonly classes: readonly Measured[];
}

function measuresOf(file: string, text: string): Measures {
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const lineOf = (position: number) => tree.getLineAndCharacterOfPosition(position).line;
  const functions: Measured[] = [];
  const classes: Measured[] = [];
  const visit = (node: ts.Node): void => {
    const start = lineOf(node.getStart());
    const name = `${file}:${start + 1}`;
    if (ts.isFunctionLike(node)) {
      functions.push({ name, size: lineOf(node.getEnd()) - start + 1 });
    }
    if (ts.isClassLike(node)) classes.push({ name, size: node.members.length });
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return { lines: text.split('\n').length - 1, functions, classes };
}

const largerThan = (measured: readonly Measured[], max: number) =>
  measured.filter(({ size }) => size > max).map(({ name, size }) => `${name} has ${size}`);

describe('the source', () => {
  const files = globSync('**/*.ts', { cwd: SRC });
  const measures = files.map((file) => measuresOf(file, readFileSync(join(SRC, file), 'utf8')));

  it(`has no file of over ${MAX_LINES} lines`, () => {
    const lines = files.map((name, i) => ({ name, size: measures[i]?.lines ?? 0 }));

    expect(lines.length).toBeGreaterThan(100);
    expect(
      largerThan(
        lines.filter(({ name }) => !LONG_FILES.includes(name)),
        MAX_LINES,
      ),
    ).toEqual([]);
  });

  it(`has no function of over ${MAX_FUNCTION_LINES} lines, and no class of over ${MAX_MEMBERS} members`, () => {
    const functions = measures.flatMap((measured) => measured.functions);
    const classes = measures.flatMap((measured) => measured.classes);

    expect(largerThan(functions, MAX_FUNCTION_LINES)).toEqual([]);
    expect(largerThan(classes, MAX_MEMBERS)).toEqual([]);
  });

  it('is measured correctly (the control)', () => {
    const text = 'class A {\n  b = 1;\n  c() {\n    return () => {\n    };\n  }\n}\n';

    expect(measuresOf('a.ts', text)).toEqual({
      lines: 7,
      functions: [
        { name: 'a.ts:3', size: 4 },
        { name: 'a.ts:4', size: 2 },
      ],
      classes: [{ name: 'a.ts:1', size: 2 }],
    });
  });
});
