// The databases that docs/support.md says were tested, held against what ran in `npm run test:all`.
//
//   npm run test:lane -- databases           runs them all, and compares
//   npm run test:lane -- databases --write   and writes the tables
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { UNSUPPORTED, unsupported } from '../src/stores/shared/reasons.ts';
import { versionOf } from './server-programs.ts';
import { isInstalled } from './servers.ts';

const root = new URL('..', import.meta.url).pathname;
const DOCUMENT = join(root, 'docs/support.md');
const TESTED = /(?<=<!-- tested: begin -->\n).*(?=<!-- tested: end -->)/s;
const REPORTED = /(?<=<!-- reported: begin -->\n).*(?=<!-- reported: end -->)/s;
const REFUSED = /(?<=<!-- refused: begin -->\n).*(?=<!-- refused: end -->)/s;
/** Reports of `tokenwright store contract --json`, one a file. */
const REPORTS = join(root, 'docs/evidence/databases');
/** For how many minor versions of tokenwright a report counts. */
const REPORTED_MINORS = 2;

interface Row {
  readonly database: string;
  /** The server that has the version of the database. */
  readonly server: Parameters<typeof versionOf>[0] | 'sqlite';
  /** How many numbers of a version name a release line of it: 1 for PostgreSQL 15, 2 for MariaDB 10.11. */
  readonly parts: 1 | 2;
  /** The name by which the tests import it, if it is a package. */
  readonly driver: string;
  readonly ran: string;
  /** Finds its tests by the titles of their groups, joined by ` > `. */
  readonly titles: RegExp;
  /** What must be installed. */
  readonly needs?: Parameters<typeof isInstalled>[0];
}

const ALL = 'all tests of the store';
const CONTRACTS = 'contracts';
const postgres = { server: 'postgres', driver: 'pg', parts: 1 } as const;
const mariadb = { server: 'mariadb', driver: 'mysql2', parts: 2 } as const;

const ROWS: readonly Row[] = [
  ...['node:sqlite', 'better-sqlite3'].map((driver) => ({
    database: 'SQLite',
    server: 'sqlite' as const,
    parts: 1 as const,
    driver,
    ran: ALL,
    titles: driver === 'node:sqlite' ? /SQLite(?!.*better-sqlite3)/ : /SQLite.*better-sqlite3/,
  })),
  { ...postgres, database: 'PostgreSQL', ran: ALL, titles: /PostgreSQL/ },
  {
    ...postgres,
    database: 'PostgreSQL',
    server: 'postgresFromNpm',
    ran: ALL,
    titles: /PostgreSQL/,
  },
  {
    ...postgres,
    database: 'PGlite behind its socket server',
    server: 'pglite',
    parts: 2,
    ran: CONTRACTS,
    titles: /^PGlite /,
  },
  {
    ...postgres,
    database: 'PgBouncer in transaction mode',
    server: 'pgbouncer',
    parts: 2,
    ran: `${CONTRACTS}, \`watch\`, standby`,
    titles: /PgBouncer/,
  },
  {
    ...postgres,
    database: 'pgpool',
    server: 'pgpool',
    parts: 2,
    ran: `${CONTRACTS}, \`watch\`, standby`,
    titles: /^pgpool/,
  },
  { ...mariadb, database: 'MariaDB', ran: ALL, titles: /MariaDB|MySQL/ },
  {
    ...mariadb,
    database: 'MariaDB in a Galera cluster of three nodes',
    ran: `${CONTRACTS}, stale reads`,
    titles: /^Galera /,
    needs: 'galera',
  },
  ...redisRows('Redis', 'redis', [
    ['ioredis5', 'ioredis 5'],
    ['ioredis', 'ioredis'],
    ['redis5', 'node-redis 5'],
    ['redis', 'node-redis'],
    ['iovalkey', 'iovalkey'],
  ]),
  ...redisRows('Redis Cluster', 'redisCluster', [
    ['ioredis5', 'an ioredis 5 cluster'],
    ['ioredis', 'an ioredis cluster'],
    ['redis', 'a node-redis cluster'],
    ['iovalkey', 'an iovalkey cluster'],
  ]),
];

function redisRows(
  database: string,
  needs: 'redis' | 'redisCluster',
  drivers: readonly (readonly [driver: string, client: string])[],
): Row[] {
  return drivers.map(([driver, client]) => ({
    database,
    server: 'redis',
    parts: 2,
    driver,
    ran: CONTRACTS,
    titles: new RegExp(`^Redis store over ${client}(?: \\(further\\))?(?: >|$)`),
    needs,
  }));
}

/** The part of the JSON report of vitest that is read here. */
export interface TestReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly status: string;
    }[];
  }[];
}

interface Outcome {
  readonly row: Row;
  readonly version: string;
  readonly driver: string;
  readonly passed: number;
}

/** What ran on each database. The second report is that of `TEST_POSTGRES=npm`. */
export function outcomesOf(report: TestReport, reportFromNpm: TestReport): Outcome[] {
  const titles = passedTitles(report);
  const titlesFromNpm = passedTitles(reportFromNpm);
  return ROWS.map((row) => ({
    row,
    version: row.server === 'sqlite' ? versionOfSqlite(row.driver) : versionOf(row.server),
    driver: driverOf(row.driver),
    passed: (row.server === 'postgresFromNpm' ? titlesFromNpm : titles).filter((one) =>
      row.titles.test(one),
    ).length,
  }));
}

/** The groups of each test of a store that passed. */
function passedTitles({ testResults }: TestReport): string[] {
  return testResults
    .filter(({ name }) => name.includes('/test/stores/'))
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === 'passed')
    .map(({ ancestorTitles }) => ancestorTitles.filter(Boolean).join(' > '));
}

/** The version of the SQLite that a driver brings. */
function versionOfSqlite(driver: string): string {
  const Database: typeof DatabaseSync =
    driver === 'node:sqlite' ? DatabaseSync : createRequire(import.meta.url)(driver);
  const database = new Database(':memory:');
  const { version } = database.prepare('SELECT sqlite_version() AS version').get() ?? {};
  database.close();
  return String(version);
}

/** A driver with its version: `` `pg` 8.23.1 ``. */
function driverOf(name: string): string {
  if (name.startsWith('node:')) return `\`${name}\``;
  const files = ['node_modules', 'test/node_modules'].map((folder) =>
    join(root, folder, name, 'package.json'),
  );
  const manifest = JSON.parse(readFileSync(files.find(existsSync) ?? '', 'utf8'));
  return `\`${manifest.name}\` ${manifest.version}`;
}

/** Whether it did not run because its server is not installed. */
function isMissing({ row: { server, needs }, passed }: Outcome): boolean {
  return passed === 0 && server !== 'sqlite' && !isInstalled(needs ?? server);
}

/** Says what docs/support.md lists and did not run (-), and what ran and is not listed (+). */
export function differencesOf(
  outcomes: readonly Outcome[],
  document = readFileSync(DOCUMENT, 'utf8'),
): string[] {
  const listed = (TESTED.exec(document)?.[0] ?? '')
    .split('\n')
    .filter((line) => /^\| (?!---|database)/.test(line));
  const excused = outcomes.filter(isMissing).map(({ row }) => row.database);
  const promised = listed.map(keyOfLine);
  const ran = outcomes
    .filter(({ passed }) => passed > 0)
    .map((outcome) => keyOfLine(lineOf(outcome)));
  const isExcused = (key: string) => excused.some((database) => key.startsWith(`${database} |`));
  return [
    ...promised.filter((key) => !ran.includes(key) && !isExcused(key)).map((key) => `- ${key}`),
    ...ran.filter((key) => !promised.includes(key)).map((key) => `+ ${key}`),
  ];
}

function lineOf({ row: { database, ran }, version, driver, passed }: Outcome): string {
  return `| ${database} | ${version} | ${driver} | ${ran} | ${passed} |`;
}

/** What must be the same in a line of the table: the count and minor versions may differ. */
function keyOfLine(line: string): string {
  const [, database = '', version = '', driver = '', ran] = line.split(/ ?\| ?/);
  const parts = ROWS.find((row) => row.database === database)?.parts ?? 1;
  const release = version.split('.').slice(0, parts).join('.');
  return [database, release, driver.replace(/ (0\.\d+|\d+).*$/, ' $1'), ran].join(' | ');
}

function testedTable(outcomes: readonly Outcome[]): string {
  const ran = outcomes.filter(({ passed }) => passed > 0);
  return tableOf(['database', 'version', 'driver', 'what ran', 'tests'], ran.map(lineOf));
}

/** The part of a `ContractReport` that the table shows. */
interface Report {
  readonly tokenwright: string;
  readonly engine: string;
  readonly driver: string;
  readonly at: string;
  readonly of: number;
  readonly passed: number;
  readonly failed: readonly unknown[];
}

/** The reports of users that were made with this minor version of tokenwright or the one before. */
function reportedTable(): string {
  const current = minorOf(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version);
  const reports = (existsSync(REPORTS) ? readdirSync(REPORTS) : [])
    .filter((name) => name.endsWith('.json'))
    .map((name): [string, Report] => [name, JSON.parse(readFileSync(join(REPORTS, name), 'utf8'))]);
  for (const [name, { of, passed, failed }] of reports) {
    if (of === 0 || passed !== of || failed.length > 0) throw new Error(`${name} is not faultless`);
  }
  const lines = reports
    .map(([, report]) => report)
    .filter(({ tokenwright }) => isRecent(minorOf(tokenwright), current))
    .map(({ engine, driver, passed, tokenwright, at }) =>
      ['', engine, driver, passed, tokenwright, at.slice(0, 10), ''].join(' | ').trim(),
    );
  if (lines.length === 0) return 'None yet.\n';
  return tableOf(['database', 'driver', 'cases', 'tokenwright', 'on'], lines);
}

/** The databases that `migrate` refuses, each with the message of its error. */
function refusedTable(): string {
  const lines = UNSUPPORTED.map((database) => `| ${database} | ${unsupported(database).message} |`);
  return tableOf(['database', 'message'], lines);
}

/** Whether the table of refused databases says what `migrate` says. */
export function isRefusedTableTrue(document = readFileSync(DOCUMENT, 'utf8')): boolean {
  return REFUSED.exec(document)?.[0] === refusedTable();
}

function minorOf(version: string): readonly [major: number, minor: number] {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return [major, minor];
}

/** How far back the minor versions of another major version go is not known here, so none of them counts. */
function isRecent(
  [major, minor]: ReturnType<typeof minorOf>,
  [currentMajor, currentMinor]: ReturnType<typeof minorOf>,
): boolean {
  return major === currentMajor && currentMinor - minor < REPORTED_MINORS;
}

function tableOf(names: readonly string[], lines: readonly string[]): string {
  const head = `| ${names.join(' | ')} |`;
  return [head, `|${' --- |'.repeat(names.length)}`, ...lines, ''].join('\n');
}

/** Writes the three tables, that of what was tested from these outcomes. */
export function writeTables(outcomes: readonly Outcome[]): void {
  const document = readFileSync(DOCUMENT, 'utf8');
  const written = document
    .replace(TESTED, () => testedTable(outcomes))
    .replace(REPORTED, reportedTable)
    .replace(REFUSED, refusedTable);
  writeFileSync(DOCUMENT, written);
}
