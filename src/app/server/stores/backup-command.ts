import type { Address, EngineName } from './url.ts';

/** Where tokens are, as the tools of a server take it. */
interface Place {
  /** The beginning of the URL, such as `rediss`. */
  readonly scheme: string;
  readonly host: string;
  readonly port: number | undefined;
  readonly database: string;
  /** What the names of the tables begin with. */
  readonly tables: string;
}

/**
 * The command of a shell that backs up all tables or keys of a database into a folder. It has neither user
 * nor password.
 */
export function backupCommand(
  { engine, url, hosts: [first], database }: Address,
  {
    tables = 'tokenwright',
    folder,
  }: { readonly tables?: string | undefined; readonly folder: string },
): string {
  const host = (first?.host ?? '').replaceAll(/^\[|\]$/g, '');
  const place = {
    scheme: url.slice(0, url.indexOf(':')),
    host,
    port: first?.port,
    database: decodeURIComponent(database),
    tables,
  };
  return `mkdir -p ${word(folder)} && ${COMMANDS[engine](place, folder)}`;
}

const COMMANDS: Readonly<Record<EngineName, (place: Place, folder: string) => string>> = {
  postgres: ({ host, port = 5432, database, tables }, folder) => {
    // Without quotes of its own, pg_dump reads names in lower case.
    const pattern =
      tables === tables.toLowerCase() ? `${tables}_*` : `"${tables.replace('.', '"."')}_"*`;
    const file = word(`${folder}/tokenwright.sql`);
    return `pg_dump --table=${word(pattern)} --file=${file} --host=${word(host)} --port=${port} ${word(database)}`;
  },
  mysql: ({ scheme, host, port = 3306, database, tables }, folder) => {
    // Recent packages of MariaDB have no program with the name of MySQL.
    const program = scheme === 'mariadb' ? 'mariadb-dump' : 'mysqldump';
    const [base, own = database] = tables.split('.').reverse();
    const names = PARTS.map((part) => word(`${base}_${part}`)).join(' ');
    const file = word(`${folder}/tokenwright.sql`);
    // Ids and digests are bytes. In hexadecimal, the file is plain text that no tool converts.
    return `${program} --single-transaction --hex-blob --result-file=${file} --host=${word(host)} --port=${port} ${word(own)} ${names}`;
  },
  redis: ({ scheme, host, port = 6379 }, folder) =>
    `redis-cli${scheme === 'rediss' ? ' --tls' : ''} -h ${word(host)} -p ${port} --rdb ${word(`${folder}/tokenwright.rdb`)}`,
  // It asks each primary.
  redisCluster: ({ host, port = 6379 }, folder) =>
    `redis-cli --cluster backup ${word(`${host}:${port}`)} ${word(folder)}`,
};

const PARTS = ['tokens', 'usage', 'leases', 'requests'];

function word(text: string): string {
  return /^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
