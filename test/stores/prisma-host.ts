// Prisma, with the client that it generates for the schema of the example.
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fromPrisma, type PostgresConnection } from '../../src/stores/postgres/index.ts';
import { begun, type Orm } from './orm-hosts.ts';

const folder = new URL('../../examples/prisma/', import.meta.url).pathname;
const generated = join(folder, 'generated');
const schema = join(folder, 'schema.prisma');

/** Only some commands install Prisma, which is large. In CI it has to be there. */
export const isPrismaMissing =
  process.env['CI'] !== 'true' && !existsSync(join(folder, 'node_modules/prisma'));

/** Generates the client of the example. Files that do so concurrently do not meet half of it. */
export function generateClient(): void {
  if (existsSync(generated) && statSync(generated).mtimeMs > statSync(schema).mtimeMs) return;
  rmSync(generated, { recursive: true, force: true });
  const apart = mkdtempSync(`${generated}-`);
  try {
    const file = join(apart, 'schema.prisma');
    writeFileSync(file, readFileSync(schema));
    const prisma = join(folder, 'node_modules/prisma/build/index.js');
    execFileSync(process.execPath, [prisma, 'generate', '--schema', file], {
      cwd: folder,
      stdio: 'pipe',
      // A program for migrations, which it would download and does not need here.
      env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath },
    });
    renameSync(join(apart, 'generated'), generated);
  } catch (error) {
    if (!existsSync(generated)) throw error;
  } finally {
    rmSync(apart, { recursive: true, force: true });
  }
}

interface Transaction {
  $queryRawUnsafe(query: string, ...values: unknown[]): PromiseLike<unknown>;
}

/** The part of the generated client that the tests use. */
interface Client extends Transaction {
  $transaction(work: (tx: Transaction) => Promise<void>, options: object): Promise<unknown>;
  $connect(): Promise<void>;
  $disconnect(): Promise<void>;
}

export async function prismaOn(url: string): Promise<Orm<PostgresConnection>> {
  generateClient();
  const { PrismaClient } = await import(join(generated, 'client.ts'));
  const { PrismaPg } = await import(join(folder, 'node_modules/@prisma/adapter-pg/dist/index.mjs'));
  const prisma: Client = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });
  return {
    helper: 'fromPrisma',
    begin: () => begun((work) => prisma.$transaction(work, { timeout: 60_000 }), fromPrisma),
    // @ts-expect-error: not a transaction
    misuse: () => fromPrisma(prisma),
    end: () => prisma.$disconnect(),
  };
}
