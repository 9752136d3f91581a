import {
  type DrizzleTransaction,
  type KyselyTransaction,
  requireTransaction,
  runOnDrizzle,
  runOnKysely,
} from '../shared/orm.ts';
import type { PostgresConnection } from './transaction.ts';

/** The part of a transaction of postgres.js that the store uses: `tx` of `sql.begin(async (tx) => …)`. */
export interface PostgresJsTransaction {
  unsafe(query: string, parameters: never[]): PromiseLike<readonly unknown[]>;
  /** Only a transaction has it. */
  savepoint(work: never): unknown;
}

/** The part of a Prisma transaction that the store uses: `tx` of `prisma.$transaction(async (tx) => …)`. */
export interface PrismaTransaction {
  $queryRawUnsafe(query: string, ...values: unknown[]): PromiseLike<unknown>;
  /** Only the client outside of a transaction has it. */
  readonly $connect?: undefined;
}

/**
 * A connection for `in` from a transaction of Drizzle on PostgreSQL: of `drizzle-orm/node-postgres` or
 * `drizzle-orm/postgres-js`.
 *
 * @throws {TokenError} `invalid_options` if it is not a transaction
 * @example
 * await db.transaction(async (tx) => {
 *   await tx.insert(users).values({ name: 'ada' });
 *   await tokens.in(fromDrizzle(tx)).issue({ account: 'ada', scopes });
 * });
 */
export function fromDrizzle(tx: DrizzleTransaction): PostgresConnection {
  const run = runOnDrizzle(tx);
  return connectionOf(async (text, values) => {
    const answer = await run(text, values);
    // An array from postgres.js, and an object with rows from all other drivers.
    return Array.isArray(answer) ? answer : (answer as { readonly rows: readonly unknown[] }).rows;
  });
}

/**
 * A connection for `in` from a transaction of Kysely on PostgreSQL. The plugins of Kysely do not see what the
 * store reads.
 *
 * @throws {TokenError} `invalid_options` if it is not a transaction
 * @example
 * await db.transaction().execute(async (trx) => {
 *   await trx.insertInto('users').values({ name: 'ada' }).execute();
 *   await tokens.in(fromKysely(trx)).issue({ account: 'ada', scopes });
 * });
 */
export function fromKysely(trx: KyselyTransaction): PostgresConnection {
  const run = runOnKysely(trx);
  return connectionOf(async (text, values) => (await run(text, values)).rows);
}

/**
 * A connection for `in` from a transaction of postgres.js.
 *
 * @throws {TokenError} `invalid_options` if it is not a transaction
 * @example
 * await sql.begin(async (tx) => {
 *   await tx`INSERT INTO users VALUES ('ada')`;
 *   await tokens.in(fromPostgresJs(tx)).issue({ account: 'ada', scopes });
 * });
 */
export function fromPostgresJs(tx: PostgresJsTransaction): PostgresConnection {
  requireTransaction(
    'fromPostgresJs',
    typeof tx?.savepoint === 'function',
    'sql.begin(async (tx) => …)',
  );
  return connectionOf((text, values) => tx.unsafe(text, [...values] as never[]));
}

/**
 * A connection for `in` from an interactive transaction of Prisma 7 on PostgreSQL, with `@prisma/adapter-pg`.
 *
 * @throws {TokenError} `invalid_options` if it is not a transaction
 * @example
 * await prisma.$transaction(async (tx) => {
 *   await tx.user.create({ data: { name: 'ada' } });
 *   await tokens.in(fromPrisma(tx)).issue({ account: 'ada', scopes });
 * });
 */
export function fromPrisma(tx: PrismaTransaction): PostgresConnection {
  const isTransaction =
    typeof tx?.$queryRawUnsafe === 'function' && typeof tx.$connect !== 'function';
  requireTransaction('fromPrisma', isTransaction, 'prisma.$transaction(async (tx) => …)');
  return connectionOf(
    async (text, values) => (await tx.$queryRawUnsafe(text, ...values)) as readonly unknown[],
  );
}

/** Passes the text and the values of each statement on, and gives back the error of the driver. */
function connectionOf(
  run: (text: string, values: readonly unknown[]) => PromiseLike<readonly unknown[]>,
): PostgresConnection {
  return {
    async query({ text, values = [] }) {
      try {
        return { rows: await run(text, values) };
      } catch (error) {
        throw driverError(error);
      }
    },
  };
}

/** Drizzle has the error of the driver as the cause, and Prisma only a copy of its code. */
function driverError(error: unknown): unknown {
  const { cause, meta } = (error ?? {}) as {
    readonly cause?: unknown;
    readonly meta?: {
      readonly driverAdapterError?: { readonly cause?: { readonly originalCode?: unknown } };
    };
  };
  const code = meta?.driverAdapterError?.cause?.originalCode;
  if (typeof code === 'string') return Object.assign(new Error(), codeOf(code));
  return cause instanceof Error ? cause : error;
}

/** Only a refusal of the server has a severity, and no other code has five digits and capitals. */
function codeOf(code: string): object {
  return /^[0-9A-Z]{5}$/.test(code) ? { code, severity: 'ERROR' } : { code };
}
