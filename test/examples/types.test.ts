import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { generateClient, isPrismaMissing } from '../stores/prisma-host.ts';

const ROOT = join(import.meta.dirname, '../..');
const PRISMA = 'examples/prisma/transaction.ts';
const { postgres } = inject('servers');

beforeAll(() => {
  if (!isPrismaMissing) generateClient();
});

describe('the example for Prisma', () => {
  it.skipIf(isPrismaMissing || postgres === undefined)(
    'prints the output that its comments promise',
    () => {
      const printed = execFileSync(process.execPath, [join(ROOT, PRISMA)], {
        encoding: 'utf8',
        env: { ...process.env, DATABASE_URL: postgres },
      });
      const promised = readFileSync(join(ROOT, PRISMA), 'utf8').matchAll(
        /console\.log\(.*\); \/\/ (.*)/g,
      );

      expect(printed.trim().split('\n')).toEqual([...promised].map(([, line]) => line));
    },
  );
});

/** All declarations of several frameworks are checked, which takes a minute of a busy core. */
const TIME = { timeout: 600_000 };

/** What a project with all checks of the compiler reports of files, some of which exist in memory only. */
function complaintsOf(files: ReadonlyMap<string, string | undefined>): string[] {
  const options: ts.CompilerOptions = {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts', 'lib.esnext.disposable.d.ts', 'lib.dom.d.ts'],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    allowImportingTsExtensions: true,
    types: ['node'],
  };
  const host = ts.createCompilerHost(options);
  const { fileExists, getSourceFile } = host;
  host.fileExists = (name) => files.get(name) !== undefined || fileExists(name);
  host.getSourceFile = (name, version, ...rest) => {
    const text = files.get(name);
    if (text === undefined) return getSourceFile(name, version, ...rest);
    return ts.createSourceFile(name, text, version);
  };
  const program = ts.createProgram([...files.keys()], options, host);
  return ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => {
    const name = file?.fileName.slice(ROOT.length + 1);
    return `${name}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
  });
}

/** Of examples and of what they import, without the mistakes that the declarations of a framework may have. */
function oursOf(files: ReadonlyMap<string, string | undefined>): string[] {
  return complaintsOf(files).filter((complaint) =>
    /^(?:dist|examples)\/(?!(?:\w+\/)?node_modules)/.test(complaint),
  );
}

describe('the types of the helpers', () => {
  const examples = ['drizzle', 'kysely', 'postgres-js'].map(
    (name) => `examples/library/${name}.ts`,
  );
  const all = isPrismaMissing ? examples : [...examples, PRISMA];

  it(
    'accept the transactions of the examples, and refuse their databases, with all checks',
    TIME,
    () => {
      const wrong = all.map((file) => {
        const text = readFileSync(join(ROOT, file), 'utf8');
        const [, db] = /const (db|sql|prisma) =/.exec(text) ?? [];
        const changed = text.replace(/(?<=from\w+\()tr?x(?=\))/, String(db));
        return [join(ROOT, file.replace('.ts', '.wrong.ts')), changed] as const;
      });
      const right = all.map((file) => [join(ROOT, file), undefined] as const);

      const ours = oursOf(new Map([...right, ...wrong]));
      const refused = (file: string) =>
        expect.stringMatching(
          `^${file.replace('.ts', '.wrong.ts')}: Argument of type .* is not assignable`,
        );
      expect(ours.sort()).toEqual(all.map(refused).sort());
    },
  );
});

const TOKEN = `import express from 'express';
import fastify from 'fastify';
import type { Token } from 'tokenwright';
import { expressGuard, fastifyGuard } from 'tokenwright/http';
express().get('/orders/:id', (request) => {
  const account: string | undefined = request.token?.account;
  // @ts-expect-error: there may be no guard before this route
  const certain: string = request.token.account;
  // @ts-expect-error: a token never holds its value
  request.token?.value.length;
  return [account, certain];
});
fastify().get('/orders/:id', (request) => {
  const { account }: Token = request.getDecorator<Token>('token');
  return account;
});
void [expressGuard, fastifyGuard];
`;

describe('the type of request.token', () => {
  it('comes with the guard, beside the types of the frameworks, with all checks', TIME, () => {
    const examples = ['express', 'fastify', 'nest', 'koa', 'hono'].map(
      (name) => [join(ROOT, `examples/http/${name}.ts`), undefined] as const,
    );
    const asked = [join(ROOT, 'examples/http/token.ts'), TOKEN] as const;

    expect(oursOf(new Map([...examples, asked]))).toEqual([]);
  });
});
