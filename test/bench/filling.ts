// Tables that are filled by their database, with rows as the stores write them, and tokens among them.
import { DatabaseSync } from 'node:sqlite';
import type { Pool } from 'pg';
import type { IssuedToken, TokenService } from '../../src/index.ts';
import type { Column } from '../../src/stores/shared/rows.ts';
import { anyOf, type Run, wholeApi } from './measure.ts';

export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
export const TOKEN_SCOPES = METHODS.map((method) => `${method}:shop.example/orders`);
export const NEED = 'GET:shop.example/orders/7';
/** One of a thousand, as an expression of `i`. */
export const ACCOUNT = "'account' || (i % 1000)";
/** More than one account has by default. */
export const quotas = { tokensPerAccount: 1_000_000 };
const REQUESTED = '["*:shop.example/orders"]';
const FILLED_FROM = 1_795_000_000_000;
const FILLED_UNTIL = 4_102_444_800_000;

/** So many rows at once: other databases are filled meanwhile, by turns of the event loop. */
const BATCH = 5000;

/** The columns that each token has. */
export const FILLED = (
  [
    'id',
    'account',
    'prefix',
    'kid',
    'digest',
    'scopes',
    'requested',
    'created_at',
    'expires_at',
    'version',
  ] satisfies Column[]
).join(', ');

/** `count` rows from number `first` on; `account` is an expression of `i`. */
export async function fillSqlite(
  handle: DatabaseSync,
  account: string,
  { first, count }: { readonly first: number; readonly count: number },
): Promise<void> {
  handle.exec('BEGIN');
  for (let from = first; from < first + count; from += BATCH) {
    const to = Math.min(from + BATCH, first + count);
    handle.exec(`
      INSERT INTO tokens (${FILLED})
      WITH RECURSIVE n(i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${to})
      SELECT substr(hex(randomblob(11)), 1, 22), ${account}, 'acme', 'k1', randomblob(32),
        '${JSON.stringify(TOKEN_SCOPES)}', '${REQUESTED}', ${FILLED_FROM} + i, ${FILLED_UNTIL} + i, 1
      FROM n`);
    await new Promise((resolve) => setImmediate(resolve));
  }
  handle.exec('COMMIT');
}

/** A connection that fills: without the disk, and without reading pages twice. */
export function openToFill(path: string): DatabaseSync {
  const handle = new DatabaseSync(path);
  handle.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -4000000');
  return handle;
}

/** `count` rows from number `first` on; `account` is an expression of `i`. */
export async function fillPostgres(
  pool: Pool,
  table: string,
  account: string,
  { first, count }: { readonly first: number; readonly count: number },
): Promise<void> {
  await pool.query(
    `INSERT INTO ${table} (${FILLED})
     SELECT substr(md5('${table}' || i), 1, 22), ${account}, 'acme', 'k1',
       sha256(i::text::bytea), $1, $2, ${FILLED_FROM} + i, ${FILLED_UNTIL} + i, 1
     FROM generate_series($3::bigint, $3::bigint + $4::bigint - 1) AS i`,
    [JSON.stringify(TOKEN_SCOPES), REQUESTED, first, count],
  );
}

export async function issueMany(
  tokens: TokenService,
  account: string,
  count: number,
): Promise<IssuedToken[]> {
  const issued: IssuedToken[] = [];
  while (issued.length < count) {
    const length = Math.min(1000, count - issued.length);
    const issuing = Array.from({ length }, () => tokens.issue({ account, scopes: TOKEN_SCOPES }));
    issued.push(...(await Promise.all(issuing)));
  }
  return issued;
}

/** Throws when it is refused: what is measured has to be what is meant. */
export function verifying(
  tokens: TokenService,
  next: () => Pick<IssuedToken, 'value'>,
  scope: string,
): Run {
  return async () => {
    if (!(await tokens.verify(next().value, { scope })).ok) throw new Error('refused');
  };
}

/** Tokens with lists that take turns, so many of each. */
export const LISTED = 1000;

/** The scopes of each token, by its number. */
export const LISTS: Readonly<Record<string, (copy: number) => string[]>> = {
  '5 scopes': () => wholeApi().slice(0, 5),
  '1 189 scopes, all lists equal': () => wholeApi(),
  '1 189 scopes, all lists different': wholeApi,
};

/** Verifies tokens with such lists. What was never read is not what is measured. */
export async function verifyingLists(
  tokens: TokenService,
  scopesOf: (copy: number) => string[],
): Promise<Run> {
  const questions: { value: string; scope: string }[] = [];
  for (let copy = 0; copy < LISTED; copy++) {
    const scopes = scopesOf(copy);
    const { value } = await tokens.issue({ account: 'verify', scopes });
    questions.push({ value, scope: scopes[3] as string });
  }
  const next = anyOf(questions);
  const verify = async () => {
    const { value, scope } = next();
    if (!(await tokens.verify(value, { scope })).ok) throw new Error('refused');
  };
  for (let i = 0; i < 3 * LISTED; i++) await verify();
  return verify;
}
