import { type CliError, usageError } from '../../terminal/errors.ts';

export type EngineName = 'postgres' | 'mysql' | 'redis' | 'redisCluster';

/** The address of a database, as its URL names it. */
export interface Address {
  readonly engine: EngineName;
  /** Names the database for people, without user and password. */
  readonly name: string;
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly hosts: readonly { readonly host: string; readonly port?: number }[];
  readonly database: string;
  readonly parameters: URLSearchParams;
  /** Whether the server keeps prepared statements: `?prepare=false` is ours, and not in the {@link url}. */
  readonly prepare: boolean;
}

/** The rules for the URLs of an engine. */
interface UrlForm {
  readonly engine: EngineName;
  readonly title: string;
  readonly example: string;
  readonly database: RegExp;
  readonly hasManyHosts?: boolean;
  /** Whether its statements can be prepared. */
  readonly isSql?: boolean;
  /** The parameters that a URL may have; without them, the driver decides. */
  readonly parameters?: readonly string[];
}

const POSTGRES: UrlForm = {
  engine: 'postgres',
  title: 'PostgreSQL',
  example: 'postgres://user:password@host:5432/database',
  database: /./,
  isSql: true,
};

const MYSQL: UrlForm = {
  engine: 'mysql',
  title: 'MySQL',
  example: 'mysql://user:password@host:3306/database',
  database: /./,
  isSql: true,
};

const REDIS: UrlForm = {
  engine: 'redis',
  title: 'Redis',
  example: 'redis://user:password@host:6379/0',
  database: /^\d*$/,
  parameters: ['replicas', 'family'],
};

const FORMS: ReadonlyMap<string | undefined, UrlForm> = new Map([
  ['postgres', POSTGRES],
  ['postgresql', POSTGRES],
  ['mysql', MYSQL],
  ['mariadb', { ...MYSQL, title: 'MariaDB' }],
  ['redis', REDIS],
  ['rediss', REDIS],
  [
    'redis+cluster',
    {
      engine: 'redisCluster',
      title: 'Redis Cluster',
      example: 'redis+cluster://user:password@host:6379,host:6379',
      database: /^$/,
      hasManyHosts: true,
      parameters: ['replicas'],
    },
  ],
]);

const SETTING = '--store (TOKENWRIGHT_STORE)';
const STORE_URL_PARTS = /^[^:]+:\/\/(?:([^/?#]*)@)?([^/?#@]*)(?:\/([^/?#@]*))?(?:\?([^#@]*))?$/;
const HOST = /^(\[[\da-f:.]+\]|[^\s:[\]]+)(?::(\d{1,5}))?$/i;

/**
 * Parses the URL of a database. Refuses characters that could make one part pass for another, so
 * that no part of a password ends up in `name`.
 *
 * @throws {CliError} that never repeats the URL
 */
export function parseStoreUrl(url: string): Address {
  const form = formOf(url);
  const [, credentials = '', hostList, database = '', query] = STORE_URL_PARTS.exec(url) ?? [];
  if (hostList === undefined || !isDecodable(url)) {
    throw fault(
      form,
      'has a character such as / ? # % in its user or password that is not percent-encoded',
    );
  }
  const [user = '', ...password] = credentials.split(':');
  const { prepare, rest } = splitQuery(query, form);
  const names = `${hostList}${database === '' ? '' : `/${database}`}`;
  return {
    engine: form.engine,
    name: `${form.title} at ${names}`,
    url: rest === query ? url : `${url.slice(0, url.indexOf('?'))}${rest && `?${rest}`}`,
    user: decodeURIComponent(user),
    password: decodeURIComponent(password.join(':')),
    hosts: parseHosts(hostList, form),
    database: checkDatabase(database, form),
    parameters: parseParameters(rest, form),
    prepare,
  };
}

function formOf(url: string): UrlForm {
  const form = FORMS.get(/^([a-z+]+):\/\//.exec(url)?.[1]);
  if (form !== undefined) return form;
  const schemes = [...FORMS.keys()].map((scheme) => `${scheme}://`).join(', ');
  throw usageError(`${SETTING} must begin with one of ${schemes}, sqlite:; as ${POSTGRES.example}`);
}

function parseHosts(text: string, form: UrlForm): Address['hosts'] {
  if (text === '') throw fault(form, 'names no host');
  const hosts = text.split(',').map(parseHost);
  if (!hosts.every((host) => host !== undefined)) throw fault(form, 'names a host that cannot be');
  if (hosts.length > 1 && form.hasManyHosts !== true) throw fault(form, 'names several hosts');
  return hosts;
}

function parseHost(text: string): Address['hosts'][number] | undefined {
  const [, host, port] = HOST.exec(text) ?? [];
  if (host === undefined) return undefined;
  if (port === undefined) return { host };
  return Number(port) >= 1 && Number(port) <= 65_535 ? { host, port: Number(port) } : undefined;
}

function checkDatabase(database: string, form: UrlForm): string {
  if (form.database.test(database)) return database;
  throw fault(form, database === '' ? 'names no database' : 'names a database that cannot be');
}

/** Takes the parameter that is ours out of those for the driver. */
function splitQuery(
  query: string | undefined,
  form: UrlForm,
): { readonly prepare: boolean; readonly rest: string | undefined } {
  const asked = query?.split('&') ?? [];
  const [ours, ...more] = form.isSql ? asked.filter((part) => /^prepare(?:=|$)/.test(part)) : [];
  if (ours === undefined) return { prepare: true, rest: query };
  const value = /^prepare=(true|false)$/.exec(ours)?.[1];
  if (value === undefined || more.length > 0) {
    throw fault(form, 'has a prepare that is neither true nor false');
  }
  return { prepare: value === 'true', rest: asked.filter((part) => part !== ours).join('&') };
}

function parseParameters(query: string | undefined, form: UrlForm): URLSearchParams {
  const parameters = new URLSearchParams(query);
  const { parameters: known } = form;
  if (known === undefined || [...parameters.keys()].every((name) => known.includes(name))) {
    return parameters;
  }
  throw fault(form, `has a parameter other than ${known.join(' and ')}`);
}

function fault({ example }: UrlForm, text: string): CliError {
  return usageError(`${SETTING} ${text}; it must be like ${example}`);
}

function isDecodable(url: string): boolean {
  try {
    decodeURIComponent(url);
    return true;
  } catch {
    return false;
  }
}
