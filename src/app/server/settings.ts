import {
  DEFAULT_DERIVED_PER_ROOT,
  DEFAULT_TOKENS_PER_ACCOUNT,
  MAX_DERIVED_PER_ROOT,
  MAX_ENDED_PER_ACCOUNT,
  MAX_LIFETIME_SECONDS,
  MAX_SCOPES,
  MAX_STALE_MS,
  MAX_TOKENS_PER_ACCOUNT,
  MIN_PASSWORD_LENGTH,
} from '../../bounds.ts';
import { type ForeignFormat, formats, isTokenError } from '../../index.ts';
import { usageError } from '../terminal/errors.ts';
import {
  ACCOUNTS,
  choice,
  FOLDER,
  HEADER,
  KEPT_DAYS,
  type Kind,
  LIFETIME,
  LIST,
  PLACE,
  SWITCH,
  TEXT,
  wholeNumber,
} from '../terminal/kinds.ts';
import { type SettingRow, settingRows } from '../terminal/layout.ts';
import { fileVariableOf, memberName, readConfig, secretIn, variableIn } from './setting-sources.ts';

type Maker = (rest: string) => ForeignFormat;

/** By the first word of an entry. `rest` is the text after its colon. */
const MAKERS: Readonly<Record<string, Maker>> = {
  sanctum: (prefix) => formats.sanctum({ prefix }),
  'better-auth': (rest) => formats.betterAuth(prefixAndLength(rest)),
  unkey: (prefix) => formats.unkey({ prefix }),
  'prefixed-api-key': (prefix) => formats.prefixedApiKey({ prefix }),
  sha256(rest) {
    const [, name = '', pattern = ''] = /^([a-z0-9-]{1,32}):(.+)$/.exec(rest) ?? [];
    if (pattern === '')
      throw usageError('sha256 takes a name and a pattern, as sha256:NAME:PATTERN');
    return formats.sha256({ name, pattern: patternOf(pattern) });
  },
};

/** Formats of values of other systems. */
export const FORMATS: Kind<readonly ForeignFormat[]> = {
  flag: { type: 'string', multiple: true },
  values:
    'sanctum[:PREFIX], better-auth[:PREFIX[:LENGTH]], unkey:PREFIX, prefixed-api-key:PREFIX or sha256:NAME:PATTERN',
  read(given, name) {
    const texts = Array.isArray(given) ? given.map(String) : entriesOf(String(given));
    const read = texts.map((text) => readFormat(text, name));
    const names = read.map((format) => format.name);
    const repeated = names.find((each, index) => names.indexOf(each) < index);
    if (repeated === undefined) return read;
    throw usageError(`${name}: there are two formats with the name ${repeated}`);
  },
};

/** Splits a variable at its commas, but not at those in a pattern of `sha256`. */
function entriesOf(text: string): readonly string[] {
  const entries: string[] = [];
  for (const part of text.split(',')) {
    const isNew = Object.hasOwn(MAKERS, part.replace(/:.*/s, ''));
    if (isNew || entries.length === 0) entries.push(part);
    else entries.push(`${entries.pop()},${part}`);
  }
  return entries;
}

function readFormat(text: string, flag: string): ForeignFormat {
  const [, name = '', rest = ''] = /^([a-z0-9-]+)(?::(.*))?$/s.exec(text) ?? [];
  const make = Object.hasOwn(MAKERS, name) ? MAKERS[name] : undefined;
  if (make === undefined) throw usageError(`${flag} must be ${FORMATS.values}`);
  try {
    return make(rest);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const message = isTokenError(error)
      ? error.message.replace(/^formats\.\w+/, name)
      : error.message;
    throw usageError(`${flag}: ${message}`);
  }
}

function prefixAndLength(rest: string) {
  const [prefix = '', length, ...more] = rest.split(':');
  if (more.length > 0) throw usageError('a prefix and a length are all that it takes');
  return { prefix, ...(length !== undefined && { length: Number(length) }) };
}

/** Matches a whole value, whether or not the pattern says so. */
function patternOf(source: string): RegExp {
  try {
    return new RegExp(`^(?:${source})$`);
  } catch {
    throw usageError('the pattern is not a regular expression');
  }
}

const MAX_STORE_WAIT_SECONDS = 3600;

/** What settings are about, in the order of the help. */
export const SETTING_GROUPS = ['network', 'storage', 'access', 'limits', 'operations'] as const;

/** A setting of `serve`; some of them are settings of other commands, too. */
interface Setting {
  readonly group: (typeof SETTING_GROUPS)[number];
  /** With the name of its value. */
  readonly flag: `--${string}`;
  readonly variable: string;
  /** @default any text */
  readonly kind?: Kind<unknown>;
  readonly default?: unknown;
  /** Whether its value opens something, so that its variable can also name a file that holds it. */
  readonly isSecret?: true;
  /** `{values}` and `{default}` stand for those of this setting. */
  readonly help: string;
}

const SETTINGS = {
  config: {
    group: 'operations',
    flag: '--config FILE',
    variable: 'TOKENWRIGHT_CONFIG',
    help: 'a JSON object of these settings, by the names of their flags, such as {"port": 8787, "catalog": ["openapi.json"]}. Flags and variables win over it',
  },
  port: {
    group: 'network',
    flag: '--port NUMBER',
    variable: 'PORT',
    kind: wholeNumber(0, 65_535),
    default: 8787,
    help: 'the port to listen on; default {default}',
  },
  host: {
    group: 'network',
    flag: '--host NAME',
    variable: 'TOKENWRIGHT_HOST',
    default: '127.0.0.1',
    help: 'the name or address to listen on; default {default}',
  },
  data: {
    group: 'storage',
    flag: '--data FOLDER',
    variable: 'TOKENWRIGHT_DATA',
    kind: FOLDER,
    default: './data',
    help: 'the folder of keys and the SQLite file; default {default}',
  },
  store: {
    group: 'storage',
    flag: '--store URL',
    variable: 'TOKENWRIGHT_STORE',
    isSecret: true,
    help: 'a database for the tokens: postgres://, mysql://, mariadb://, redis://, rediss:// or redis+cluster://host,host. A PostgreSQL or MySQL URL may end in ?prepare=false, for a pooler that loses prepared statements. A Redis URL may end in ?replicas=1, the replicas that must confirm a write. sqlite:FILE is another SQLite file',
  },
  storeWait: {
    group: 'storage',
    flag: '--store-wait SECONDS',
    variable: 'TOKENWRIGHT_STORE_WAIT',
    kind: wholeNumber(0, MAX_STORE_WAIT_SECONDS),
    default: 30,
    help: 'how long to retry at the start while the database cannot be reached, {values}; default {default}',
  },
  tables: {
    group: 'storage',
    flag: '--tables NAME',
    variable: 'TOKENWRIGHT_TABLES',
    help: 'what the names of the tables begin with: NAME_tokens, NAME_usage, NAME_leases and NAME_requests; for Redis, the key prefix',
  },
  usage: {
    group: 'storage',
    flag: '--usage STATE',
    variable: 'TOKENWRIGHT_USAGE',
    kind: choice('on', 'off'),
    default: 'on',
    help: 'whether to record how often each token is used, and when last: {values}; default {default}. The counts are kept with the tokens; with SQLite, in usage.db of the same folder',
  },
  keys: {
    group: 'storage',
    flag: '--keys FILE',
    variable: 'TOKENWRIGHT_KEYS',
    help: 'use this key file instead of keys.json of the data, which is made on the first start. Services on one store need the same keys',
  },
  catalog: {
    group: 'access',
    flag: '--catalog FILE',
    variable: 'TOKENWRIGHT_CATALOG',
    kind: LIST,
    default: [],
    help: 'the scopes that exist: a JSON array of scopes, an OpenAPI document in JSON or YAML, or a folder of these; repeatable. Default: an example',
  },
  example: {
    group: 'access',
    flag: '--example STATE',
    variable: 'TOKENWRIGHT_EXAMPLE',
    kind: choice('on', 'off'),
    default: 'on',
    help: 'without --catalog: whether to answer calls of the example, such as GET /example/orders, to bearers of a token that allows them: {values}; default {default}',
  },
  granularity: {
    group: 'access',
    flag: '--granularity WHICH',
    variable: 'TOKENWRIGHT_GRANULARITY',
    kind: choice('operation', 'prefix'),
    default: 'operation',
    help: 'what each scope of an OpenAPI document covers: one operation, or, with prefix, all operations with the same path up to the first template. Default {default}',
  },
  presets: {
    group: 'access',
    flag: '--presets FILE',
    variable: 'TOKENWRIGHT_PRESETS',
    help: 'named scopes from which people choose in the console and with token issue --preset: a JSON array of { name, scopes, ttl?, limits? }, where ttl is like 30d. Tokens that were made with a preset do not change with it',
  },
  accounts: {
    group: 'access',
    flag: '--account USER:PASSWORD',
    variable: 'TOKENWRIGHT_ACCOUNTS',
    kind: ACCOUNTS,
    default: [],
    isSecret: true,
    help: `who may call the service; repeatable. A password has at least ${MIN_PASSWORD_LENGTH} characters. Flags show in process lists: prefer the variable`,
  },
  accountFile: {
    group: 'access',
    flag: '--account-file FILE',
    variable: 'TOKENWRIGHT_ACCOUNTS_FILE',
    help: 'a file with a line user:password for each account, or user:HASH with what hashPassword() made of the password; # begins a comment',
  },
  prefix: {
    group: 'access',
    flag: '--prefix TEXT',
    variable: 'TOKENWRIGHT_PREFIX',
    default: 'tw',
    help: 'the beginning of every value; default {default}',
  },
  foreign: {
    group: 'access',
    flag: '--foreign FORMAT',
    variable: 'TOKENWRIGHT_FOREIGN',
    kind: FORMATS,
    default: [],
    help: 'values of other systems that are accepted as well, for tokens that tokenwright token import has brought: {values}. Repeatable',
  },
  reveal: {
    group: 'access',
    flag: '--reveal WHEN',
    variable: 'TOKENWRIGHT_REVEAL',
    kind: choice('once', 'always'),
    default: 'always',
    help: 'whether values can be shown again: {values}; default {default}',
  },
  maxStaleMs: {
    group: 'limits',
    flag: '--max-stale-ms MS',
    variable: 'TOKENWRIGHT_MAX_STALE_MS',
    kind: wholeNumber(0, MAX_STALE_MS),
    default: 0,
    help: 'the maximum age of cached tokens in ms, {values}; default {default}: no cache',
  },
  introspection: {
    group: 'access',
    flag: '--introspection USER:PASSWORD',
    variable: 'TOKENWRIGHT_INTROSPECTION',
    kind: ACCOUNTS,
    default: [],
    isSecret: true,
    help: 'credentials for a resource server that calls /introspect (RFC 7662); repeatable. Prefer the variable',
  },
  revocation: {
    group: 'access',
    flag: '--revocation',
    variable: 'TOKENWRIGHT_REVOCATION',
    kind: SWITCH,
    default: false,
    help: 'let bearers revoke their token at /revoke (RFC 7009)',
  },
  derivation: {
    group: 'access',
    flag: '--derivation',
    variable: 'TOKENWRIGHT_DERIVATION',
    kind: SWITCH,
    default: false,
    help: 'let bearers derive narrower tokens from theirs at /token/derive',
  },
  issuer: {
    group: 'access',
    flag: '--issuer URL',
    variable: 'TOKENWRIGHT_ISSUER',
    help: 'the public URL by which clients of OAuth know the service, such as https://auth.example; it is published at /.well-known/oauth-authorization-server (RFC 8414)',
  },
  exchange: {
    group: 'access',
    flag: '--exchange',
    variable: 'TOKENWRIGHT_EXCHANGE',
    kind: SWITCH,
    default: false,
    help: 'let bearers exchange their token for a narrower one at /oauth/token (RFC 8693). Needs --issuer',
  },
  requests: {
    group: 'access',
    flag: '--requests WHO',
    variable: 'TOKENWRIGHT_REQUESTS',
    kind: choice('off', 'elevate', 'anyone'),
    default: 'off',
    help: 'who may ask for a token at /oauth/device, for people to approve in the console (RFC 8628): {values}. With elevate, only bearers, for more than their token holds. Needs --issuer and the console',
  },
  gateway: {
    group: 'network',
    flag: '--gateway KIND',
    variable: 'TOKENWRIGHT_GATEWAY',
    kind: choice('nginx', 'traefik', 'envoy'),
    help: 'let a gateway ask at /check whether to pass a request on: {values}. Needs --domain',
  },
  domains: {
    group: 'network',
    flag: '--domain HOST',
    variable: 'TOKENWRIGHT_DOMAIN',
    kind: LIST,
    default: [],
    help: 'with --gateway: the host in the scopes. Repeatable; then the gateway has to name the host',
  },
  docs: {
    group: 'operations',
    flag: '--docs',
    variable: 'TOKENWRIGHT_DOCS',
    kind: SWITCH,
    default: false,
    help: 'a reference page at /docs; needs the package swagger-ui-dist',
  },
  console: {
    group: 'access',
    flag: '--console STATE',
    variable: 'TOKENWRIGHT_CONSOLE',
    kind: choice('on', 'off'),
    default: 'on',
    help: 'a page at /console, on which people sign in and manage the tokens of their account: {values}; default {default}',
  },
  pathTokens: {
    group: 'access',
    flag: '--path-tokens WHICH',
    variable: 'TOKENWRIGHT_PATH_TOKENS',
    kind: choice('any', 'id-only'),
    default: 'any',
    help: 'how a path may name a token: any, or id-only, which refuses values there, since paths end up in logs',
  },
  trustProxy: {
    group: 'network',
    flag: '--trust-proxy BLOCK',
    variable: 'TOKENWRIGHT_TRUST_PROXY',
    kind: LIST,
    default: [],
    help: 'behind proxies: the address or CIDR block of one, such as 10.0.0.0/8; repeatable. What they append to X-Forwarded-For, or to the header of --client-header, says where a call comes from',
  },
  clientHeader: {
    group: 'network',
    flag: '--client-header NAME',
    variable: 'TOKENWRIGHT_CLIENT_HEADER',
    kind: HEADER,
    help: 'behind a proxy: the header in which it names the client, such as X-Real-IP. Without --trust-proxy, the header is trusted from any sender. Without both, all callers of a proxy count as one when passwords are wrong, and /check refuses tokens that are restricted to certain addresses',
  },
  maxTtl: {
    group: 'limits',
    flag: '--max-ttl TIME',
    variable: 'TOKENWRIGHT_MAX_TTL',
    kind: LIFETIME,
    default: MAX_LIFETIME_SECONDS,
    help: 'how long a token may live, such as 90d, 12h or a number of seconds: {values}. Tokens that exist keep their expiry. Default 365d',
  },
  defaultTtl: {
    group: 'limits',
    flag: '--default-ttl TIME',
    variable: 'TOKENWRIGHT_DEFAULT_TTL',
    kind: LIFETIME,
    help: 'how long a token lives if its caller does not say; default: the value of --max-ttl',
  },
  maxTokens: {
    group: 'limits',
    flag: '--max-tokens NUMBER',
    variable: 'TOKENWRIGHT_MAX_TOKENS',
    kind: wholeNumber(1, MAX_TOKENS_PER_ACCOUNT),
    default: DEFAULT_TOKENS_PER_ACCOUNT,
    help: 'how many active or suspended tokens an account may have, {values}; default {default}',
  },
  maxEnded: {
    group: 'limits',
    flag: '--max-ended NUMBER',
    variable: 'TOKENWRIGHT_MAX_ENDED',
    kind: wholeNumber(1, MAX_ENDED_PER_ACCOUNT),
    help: 'how many expired or revoked tokens of an account are kept, {values}; beyond it the oldest are removed early; default: ten times --max-tokens',
  },
  maxDerived: {
    group: 'limits',
    flag: '--max-derived NUMBER',
    variable: 'TOKENWRIGHT_MAX_DERIVED',
    kind: wholeNumber(1, MAX_DERIVED_PER_ROOT),
    default: DEFAULT_DERIVED_PER_ROOT,
    help: 'how many active or suspended tokens may be derived from one, {values}; default {default}',
  },
  maxScopes: {
    group: 'limits',
    flag: '--max-scopes NUMBER',
    variable: 'TOKENWRIGHT_MAX_SCOPES',
    kind: wholeNumber(1, MAX_SCOPES),
    default: MAX_SCOPES,
    help: 'how many scopes a token may have, {values}; default {default}',
  },
  purgeAfter: {
    group: 'storage',
    flag: '--purge-after DAYS',
    variable: 'TOKENWRIGHT_PURGE_AFTER',
    kind: KEPT_DAYS,
    default: 90,
    help: 'remove records of tokens that expired or were revoked so long ago, in the background: {values}; default {default}',
  },
  metrics: {
    group: 'operations',
    flag: '--metrics',
    variable: 'TOKENWRIGHT_METRICS',
    kind: SWITCH,
    default: false,
    help: 'metrics for Prometheus at /metrics, open to everybody; needs the package prom-client',
  },
  metricsPort: {
    group: 'operations',
    flag: '--metrics-port [HOST:]PORT',
    variable: 'TOKENWRIGHT_METRICS_PORT',
    kind: PLACE,
    help: 'serve the metrics on a separate port, so that callers cannot reach them. Without a host, on the one of --host',
  },
  log: {
    group: 'operations',
    flag: '--log FORM',
    variable: 'TOKENWRIGHT_LOG',
    kind: choice('text', 'json', 'off'),
    default: 'text',
    help: 'the format of the log: {values}. json writes one object per line to standard output, also for each request. off writes nothing after the start. Default {default}',
  },
  audit: {
    group: 'operations',
    flag: '--audit FILE',
    variable: 'TOKENWRIGHT_AUDIT',
    help: 'write sign-ins, shown values and changes to this file, one JSON object per line; - is standard output',
  },
  acceptLegacyBody: {
    group: 'operations',
    flag: '--accept-legacy-body',
    variable: 'TOKENWRIGHT_ACCEPT_LEGACY_BODY',
    kind: SWITCH,
    default: false,
    help: 'accept the request format of older clients',
  },
} as const satisfies Readonly<Record<string, Setting>>;

export type SettingName = keyof typeof SETTINGS;

/** How the service runs. */
export type ServeSettings = {
  readonly [Name in SettingName]: ValueOf<(typeof SETTINGS)[Name]>;
};
type ValueOf<S extends Setting> =
  | (S extends { readonly kind: Kind<infer Value> } ? Value : string)
  | (S extends { readonly default: unknown } ? never : undefined);

/** The settings that commands on a store share with `serve`. */
export const SERVICE_SETTINGS = [
  'prefix',
  'foreign',
  'reveal',
  'maxTtl',
  'defaultTtl',
  'maxTokens',
  'maxEnded',
  'maxDerived',
  'maxScopes',
] as const;
export type ServiceSettings = Pick<ServeSettings, (typeof SERVICE_SETTINGS)[number]>;

/** The settings that select a store. */
export const STORE_SETTINGS = ['store', 'tables', 'data'] as const;
export type StoreSettings = Pick<ServeSettings, (typeof STORE_SETTINGS)[number]>;
export type Granularity = ServeSettings['granularity'];

/** All settings of `serve`, in the order of its help. */
export const SERVE_SETTINGS: readonly SettingName[] = SETTING_GROUPS.flatMap(settingsIn);

/** The settings of a group. */
export function settingsIn(group: Setting['group']): SettingName[] {
  const names = Object.keys(SETTINGS) as SettingName[];
  return names.filter((name) => SETTINGS[name].group === group);
}

/** The flags of `serve`, for `parseArgs`. */
export const SERVE_FLAGS: Readonly<Record<string, Kind<unknown>['flag']>> = Object.fromEntries(
  Object.values<Setting>(SETTINGS).map((each) => [flagOf(each), (each.kind ?? TEXT).flag]),
);

/** The values of the flags of `serve`: what each is called, such as `FILE`, and all that it can be. */
export const SERVE_VALUES: ReadonlyMap<string, Pick<Kind<unknown>, 'choices'> & { value: string }> =
  new Map(
    Object.values<Setting>(SETTINGS).map((each) => {
      const value = each.flag.replace(/^\S+ ?/, '');
      const choices = each.kind?.choices;
      return [flagOf(each), { value, ...(choices !== undefined && { choices }) }];
    }),
  );

interface OtherVariable {
  readonly help: string;
  readonly isSecret?: true;
}

/** What a file of settings can hold: all of them but the file itself. */
const CONFIG_KINDS: ReadonlyMap<string, Kind<unknown>> = new Map(
  Object.values<Setting>(SETTINGS)
    .filter((setting) => setting !== SETTINGS.config)
    .map((setting) => [flagOf(setting), setting.kind ?? TEXT]),
);

/** The variables of other commands that are not settings of `serve`, with their meaning. */
export const OTHER_VARIABLES = {
  TOKENWRIGHT_URL: { help: 'the address of a service, such as http://127.0.0.1:8787' },
  TOKENWRIGHT_USER: { help: 'the user who calls that service' },
  TOKENWRIGHT_PASSWORD: {
    help: 'the password of that user, which a terminal asks for; it has no flag, since flags show in process lists',
    isSecret: true,
  },
  TOKENWRIGHT_COPY_FROM: {
    help: 'the store that tokenwright store copy reads, as --from',
    isSecret: true,
  },
  TOKENWRIGHT_COPY_TO: {
    help: 'the store that tokenwright store copy writes, as --to',
    isSecret: true,
  },
  TOKENWRIGHT_TOKEN: {
    help: 'the value for token verify and token derive, read from standard input if unset',
    isSecret: true,
  },
} as const satisfies Readonly<Record<string, OtherVariable>>;

const SECRETS = Object.values<Setting>(SETTINGS).filter(({ isSecret }) => isSecret === true);

/** The variables that hold a secret, and that can name a file which holds it instead. */
const SECRET_VARIABLES: ReadonlySet<string> = new Set([
  // The file of accounts has many lines and is read again on SIGHUP, so it is a setting of its own.
  ...SECRETS.filter((setting) => setting !== SETTINGS.accounts).map(({ variable }) => variable),
  ...Object.entries<OtherVariable>(OTHER_VARIABLES).flatMap(([name, { isSecret }]) =>
    isSecret === true ? [name] : [],
  ),
]);

/** All variables that some command reads. */
export const VARIABLES: readonly string[] = [
  ...Object.values(SETTINGS).map(({ variable }) => variable),
  ...Object.keys(OTHER_VARIABLES),
  ...[...SECRET_VARIABLES].map(fileVariableOf),
];

/** Reads a variable that is not a setting of its command. An empty one counts as absent. */
export function readVariable(name: keyof typeof OTHER_VARIABLES): string | undefined {
  return givenBy(name, process.env);
}

/**
 * The files that the secrets of the settings are read from, for a warning if others can read them.
 *
 * @param config the file of settings
 */
export function secretFiles(
  config: string | undefined,
  environment: NodeJS.ProcessEnv = process.env,
): string[] {
  const members = config === undefined ? {} : readConfig(config, CONFIG_KINDS);
  const isConfigSecret = SECRETS.some((setting) => members[flagOf(setting)] !== undefined);
  const files = SECRETS.filter(({ variable }) => SECRET_VARIABLES.has(variable)).flatMap(
    ({ variable }) => variableIn(environment, fileVariableOf(variable)) ?? [],
  );
  return [...files, ...(config !== undefined && isConfigSecret ? [config] : [])];
}

function givenBy(variable: string, environment: NodeJS.ProcessEnv): string | undefined {
  const read = SECRET_VARIABLES.has(variable) ? secretIn : variableIn;
  return read(environment, variable);
}

/**
 * Reads settings from flags, else from their variables, else from the file of `--config`, else takes
 * their defaults.
 *
 * @throws {CliError} naming the setting and what it should be
 */
export function readSettings<Name extends SettingName>(
  names: readonly Name[],
  flags: object,
  environment: NodeJS.ProcessEnv = process.env,
): Pick<ServeSettings, Name> {
  const sources = sourcesOf({ ...flags }, environment);
  const values = names.map((name) => [name, readSetting(SETTINGS[name], sources)]);
  return Object.fromEntries(values) as Pick<ServeSettings, Name>;
}

/**
 * The options of a service, as `serve` and the commands on its store set them.
 *
 * @throws {CliError} when the default lifetime is longer than the longest one
 */
export function serviceOptions(settings: ServiceSettings) {
  const { prefix, foreign, reveal, maxTtl, defaultTtl = maxTtl } = settings;
  const { maxTokens, maxEnded, maxDerived, maxScopes } = settings;
  if (defaultTtl > maxTtl) {
    throw usageError(
      '--default-ttl (TOKENWRIGHT_DEFAULT_TTL) must not be more than --max-ttl (TOKENWRIGHT_MAX_TTL)',
    );
  }
  return {
    prefix,
    foreign,
    reveal,
    lifetime: { defaultSeconds: defaultTtl, maxSeconds: maxTtl },
    quotas: {
      tokensPerAccount: maxTokens,
      endedPerAccount: maxEnded,
      derivedPerRoot: maxDerived,
      scopesPerToken: maxScopes,
    },
  };
}

/** Where settings come from. */
interface Sources {
  readonly flags: Readonly<Record<string, unknown>>;
  readonly environment: NodeJS.ProcessEnv;
  /** The file of settings, if there is one. */
  readonly config: { readonly path: string; readonly members: Readonly<Record<string, unknown>> };
}

function sourcesOf(flags: Sources['flags'], environment: NodeJS.ProcessEnv): Sources {
  const path = flags['config'] ?? variableIn(environment, SETTINGS.config.variable);
  if (path === undefined) return { flags, environment, config: { path: '', members: {} } };
  const members = readConfig(String(path), CONFIG_KINDS);
  return { flags, environment, config: { path: String(path), members } };
}

function readSetting(setting: Setting, { flags, environment, config }: Sources): unknown {
  const { variable, kind = TEXT } = setting;
  const flag = flagOf(setting);
  const given = flags[flag] ?? givenBy(variable, environment);
  if (given !== undefined) {
    return kind.read(given, kind === SWITCH ? variable : `--${flag} (${variable})`);
  }
  const member = config.members[flag];
  return member === undefined ? setting.default : kind.read(member, memberName(flag, config.path));
}

function flagOf({ flag }: Setting): string {
  return flag.slice(2).replace(/ .*/, '');
}

/** Describes all settings and their variables, group by group. */
export function settingsHelp(): string {
  return SETTING_GROUPS.map((group) => {
    const title = `${group[0]?.toUpperCase()}${group.slice(1)}`;
    return `${title}\n${settingRows(settingsIn(group).map((name) => settingRow(name)))}`;
  }).join('\n\n');
}

/** Describes a setting, in the words of `serve` or in `text`. */
export function settingRow(name: SettingName, text?: string): SettingRow {
  const { flag, variable, form, help } = settingFacts(name, text);
  return { label: flag, text: help, variable: variable + form };
}

/**
 * The facts of a setting, for help and documentation; `form` is how its variable is written, and `file` the
 * variable that names a file instead.
 */
export function settingFacts(name: SettingName, text?: string) {
  const { flag, variable, kind = TEXT, help, isSecret, ...setting }: Setting = SETTINGS[name];
  const isNone = Array.isArray(setting.default) || setting.default === undefined;
  const { written = String } = kind;
  return {
    flag,
    variable,
    file: isSecret === true ? fileVariableOf(variable) : undefined,
    form: variableForm(kind),
    standard: isNone ? undefined : written(setting.default),
    help: (text ?? help)
      .replace('{values}', kind.values ?? '')
      .replace('{default}', isNone ? '' : written(setting.default)),
  };
}

function variableForm({ flag }: Kind<unknown>): string {
  if (flag.type === 'boolean') return '=true';
  return flag.multiple === true ? ', with commas' : '';
}
