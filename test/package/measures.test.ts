import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { FILES, SRC } from '../imports.ts';

const MAX_LINES = 50;

interface Measured {
  readonly name: string;
  readonly lines: number;
}

function functionsOf(file: string, text: string): readonly Measured[] {
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const lineOf = (position: number) => tree.getLineAndCharacterOfPosition(position).line;
  const functions: Measured[] = [];
  const visit = (node: ts.Node): void => {
    const start = lineOf(node.getStart());
    if (ts.isFunctionLike(node)) {
      functions.push({ name: `${file}:${start + 1}`, lines: lineOf(node.getEnd()) - start + 1 });
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return functions;
}

it(`no function has over ${MAX_LINES} lines`, () => {
  const functions = FILES.flatMap((file) =>
    functionsOf(file, readFileSync(join(SRC, file), 'utf8')),
  );

  expect(functions.length).toBeGreaterThan(1000);
  expect(functions.filter(({ lines }) => lines > MAX_LINES)).toEqual([]);
});

it('a function is measured from its first line to its last (the control)', () => {
  const text = 'class A {\n  b = 1;\n  c() {\n    return () => <p>\n    </p>;\n  }\n}\n';

  expect(functionsOf('a.tsx', text)).toEqual([
    { name: 'a.tsx:3', lines: 4 },
    { name: 'a.tsx:4', lines: 2 },
  ]);
});
