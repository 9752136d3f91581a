import { TokenError } from '../../errors.ts';

/** The part of a Drizzle transaction that the store uses: `tx` of `db.transaction(async (tx) => …)`. */
export interface DrizzleTransaction {
  /** Runs an `SQLWrapper`. */
  execute(query: unknown): PromiseLike<unknown>;
  /** Only a transaction has it. */
  rollback(): never;
}

/** The part of a Kysely transaction that the store uses: `trx` of `db.transaction().execute(async (trx) => …)`. */
export interface KyselyTransaction {
  readonly isTransaction: true;
  /** Plugins may rename and parse what the store reads. */
  withoutPlugins(): KyselyTransaction;
  /** Runs a `CompiledQuery`. */
  executeQuery(query: unknown): Promise<KyselyResult>;
}

/** The answer to a {@link KyselyTransaction}. */
export interface KyselyResult {
  readonly rows: readonly unknown[];
  /** Only for a write. */
  readonly numAffectedRows?: bigint | undefined;
}

/** Runs a statement as it is in a transaction of Drizzle, with its values bound. */
export type Run<Result> = (text: string, values: readonly unknown[]) => PromiseLike<Result>;

/** @throws {TokenError} `invalid_options` if it is not a transaction */
export function runOnDrizzle(tx: DrizzleTransaction): Run<unknown> {
  requireTransaction(
    'fromDrizzle',
    typeof tx?.rollback === 'function',
    'db.transaction(async (tx) => …)',
  );
  // Drizzle asks its own template for the text in the same way. The template itself needs an import of
  // Drizzle, and has no form for a text whose placeholders are numbered already.
  return (text, values) =>
    tx.execute({ getSQL: () => ({ toQuery: () => ({ sql: text, params: [...values] }) }) });
}

/** @throws {TokenError} `invalid_options` if it is not a transaction */
export function runOnKysely(trx: KyselyTransaction): Run<KyselyResult> {
  const isTransaction = trx?.isTransaction === true;
  requireTransaction('fromKysely', isTransaction, 'db.transaction().execute(async (trx) => …)');
  const plain = trx.withoutPlugins();
  return (sql, parameters) =>
    plain.executeQuery({
      sql,
      parameters,
      query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
      queryId: { queryId: 'tokenwright' },
    });
}

/** On the database itself, each statement would commit alone. */
export function requireTransaction(helper: string, isTransaction: boolean, begin: string): void {
  if (isTransaction) return;
  throw new TokenError('invalid_options', `${helper} takes the transaction that ${begin} gives`);
}

/** The message for a connection that `in` does not take. Names the helper that the ORM of the host needs. */
export function connectionMessage(expected: string, given: unknown): string {
  const has = (member: string) =>
    typeof (given as Readonly<Record<string, unknown>> | undefined | null)?.[member] === 'function';
  const helper = HELPERS.find(([, member]) => has(member))?.[0];
  const message = `in() takes a connection with an open transaction: ${expected}`;
  return helper === undefined ? message : `${message}; did you mean in(${helper}(tx))?`;
}

/** The error for a pool, of which each statement may take another connection and commit alone. */
export function poolGiven(checkOut: string): TokenError {
  return new TokenError(
    'invalid_options',
    `in() takes one connection with an open transaction, and this is a pool: take a connection with ${checkOut}, and begin the transaction on it`,
  );
}

/** By a method that only a transaction of this ORM has. */
const HELPERS = [
  ['fromKysely', 'executeQuery'],
  ['fromPrisma', '$queryRawUnsafe'],
  ['fromPostgresJs', 'unsafe'],
  ['fromDrizzle', 'execute'],
] as const;
