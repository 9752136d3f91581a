/** A parameter of a statement on a `MysqlConnection`. */
export type MysqlValue = string | number | Buffer | null;

/** A statement for a `MysqlConnection`, and the form of its rows. */
export interface MysqlStatement {
  sql: string;
  values: MysqlValue[];
  rowsAsArray: boolean;
  nestTables: boolean;
  typeCast: boolean | ((field: unknown, next: () => unknown) => unknown);
}

/**
 * The statement with its values as literals: numbers, NULL, and everything else in hexadecimal. No quoted text is
 * among them, so neither `sql_mode` nor a charset changes what they mean.
 */
export function withLiterals(statement: MysqlStatement): MysqlStatement {
  const [first = '', ...rest] = statement.sql.split('?');
  const { values } = statement;
  const sql = rest.map((text, index) => `${literalOf(values[index] ?? null)}${text}`);
  return { ...statement, sql: [first, ...sql].join(''), values: [] };
}

function literalOf(value: MysqlValue): string {
  if (value === null) return 'NULL';
  if (typeof value === 'number') return String(value);
  // A number in a text is a limit, which only a prepared statement may quote.
  if (typeof value === 'string' && /^\d+$/.test(value)) return value;
  return `X'${Buffer.from(value as string).toString('hex')}'`;
}
