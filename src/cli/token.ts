import { systemClock } from '../clock.ts';
import type { PatchInput } from '../input.ts';
import type { Scope, ScopeDiff } from '../scope/index.ts';
import type { Need } from '../service.ts';
import type { JsonObject } from '../token.ts';
import { type Account, type Finding, NotFound, type ShownToken } from './account.ts';
import {
  type Command,
  columns,
  command,
  count,
  type Outcome,
  printable,
  table,
  wrap,
} from './command.ts';
import { InputError, readScopes, standardInput } from './files.ts';
import {
  ACCOUNT_FLAGS,
  ACCOUNT_HELP,
  CATALOG_FLAGS,
  checkWildcards,
  GRANT_HELP,
  PLACE_FLAGS,
  type PlaceFlags,
  REVEAL_FLAGS,
  REVEAL_HELP,
  withAccount,
} from './places.ts';
import { diffLines, namedTarget, ROOT_NAME_FLAG } from './scopes.ts';
import { readNumber, readSeconds, readTime, readVariable, UsageError } from './settings.ts';

/** Where the tokens are that these commands are about. */
export const TOKEN_HELP = ACCOUNT_HELP;

const MAX_LISTED = 1_000_000;
const DEFAULT_LISTED = 10_000;

const FAULT_EXITS = `1  it cannot be done: the service or the store says why, or cannot be reached
2  the command line is wrong`;
const ABSENT_EXIT = '3  the account has no such token';

const TOKEN_JSON = `the token as the service answers with it: { id, token, scopes,
requested?, state, createdAt, expire, version, name?, metadata? }; times are
UNIX seconds, requested is known in a store`;

const SHOWN_JSON = `${TOKEN_JSON}; token is the id here, never
the value, as that of a service with --reveal once`;

const ID_HELP = `ID is the id of the token. In a store its value does as well; give - to read it from standard
input, since arguments show in process lists.`;

const SCOPE_FLAG = {
  type: 'string',
  multiple: true,
  value: 'LIST',
} as const;

const NAME_FLAG = { type: 'string', value: 'TEXT' } as const;
const IF_VERSION_FLAG = {
  type: 'string',
  value: 'N',
  help: 'only when the token still has this version',
} as const;
const TTL = 'seconds, or 30m, 12h, 90d';

/** The commands that look after the tokens of an account. */
export const TOKEN_COMMANDS: readonly Command[] = [
  command({
    name: 'token issue',
    operands: [],
    summary: 'makes a token, and prints its value alone on standard output',
    about: `Standard output holds the value and nothing else, so that TOKEN=$(tokenwright token issue …)
works; what the token is stands on standard error.

${ACCOUNT_HELP}

${GRANT_HELP}
${REVEAL_HELP}`,
    flags: {
      ...ACCOUNT_FLAGS,
      ...CATALOG_FLAGS,
      ...REVEAL_FLAGS,
      scope: {
        ...SCOPE_FLAG,
        isRequired: true,
        help: `what it may do: scopes with commas between, a JSON file, or - for
standard input; repeatable`,
      },
      ttl: { type: 'string', value: 'TIME', help: `how long it lives: ${TTL}` },
      name: { ...NAME_FLAG, help: 'for people' },
      metadata: { type: 'string', value: 'JSON', help: 'facts of your own: a JSON object' },
    },
    json: TOKEN_JSON,
    exits: `0  it was made\n${FAULT_EXITS}`,
    example: {
      call: 'token issue --account ada --scope GET:shop.example/orders --name ci',
      output: `tw_1k17f3kQw…
id       7f3kQwB2mN8xR4tY6uZ1aC
name     ci
state    active
scopes   GET:shop.example/orders
created  2026-11-21T20:00:00Z
expires  2027-02-19T20:00:00Z
version  1`,
    },
    async run(_, flags) {
      const scopes = await readScopeFlags(flags.scope ?? [], 'scope');
      checkWildcards(scopes, flags);
      const token = {
        scopes: scopes.map(String),
        ttlSeconds: flags.ttl === undefined ? undefined : readSeconds(flags.ttl, 'ttl'),
        name: flags.name,
        metadata: readMetadata(flags.metadata) ?? undefined,
      };
      return withAccount(flags, async (account) => madeOutcome(await account.issue(token)), {
        catalogFor: 'granting',
      });
    },
  }),
  command({
    name: 'token list',
    operands: [],
    summary: 'lists the active tokens of an account, newest first',
    about: `Listing grants nothing, so that it takes neither --catalog nor --patterns; --scope may have
wildcards all the same.

${ACCOUNT_HELP}`,
    flags: {
      ...ACCOUNT_FLAGS,
      scope: { type: 'string', value: 'SCOPE', help: 'only those that have to do with this scope' },
      match: {
        type: 'string',
        value: 'HOW',
        help: `how: overlaps, the token can touch something of it (the default); covers,
it may do all of it; exact, it holds this very scope`,
      },
      limit: {
        type: 'string',
        value: 'N',
        help: `at most so many; default ${DEFAULT_LISTED}. That there are more is told`,
      },
    },
    json: `{ tokens: [token], isWhole }; a token has { id, token, scopes,
requested?, state, createdAt, expire, version, name?, metadata? }, where times
are UNIX seconds and token is the id, never the value, as that of a service
with --reveal once`,
    exits: `0  they were listed, also when there are none\n${FAULT_EXITS}`,
    example: {
      call: "token list --account ada --scope 'GET:shop.example/*'",
      output: `ID                      EXPIRES               NAME  SCOPES
7f3kQwB2mN8xR4tY6uZ1aC  2027-02-19T20:00:00Z  ci    GET:shop.example/orders
1 token of ada in SQLite in data/tokens.db`,
    },
    async run(_, flags) {
      const filter = {
        scope: flags.scope,
        match: readMatch(flags.match),
        limit: readNumber(flags.limit, 'limit', MAX_LISTED) ?? DEFAULT_LISTED,
      };
      return withAccount(flags, async (account) => {
        const { tokens, isWhole } = await account.list(filter);
        const told = `${count(tokens.length, 'token')} of ${account.name}`;
        return {
          text: listOf(tokens),
          json: { tokens, isWhole },
          notes: isWhole ? told : `${told}; there are more: give a larger --limit`,
        };
      });
    },
  }),
  command({
    name: 'token get',
    operands: ['ID'],
    summary: 'shows one token, also an expired one, without its value',
    about: `${ID_HELP}\n\n${ACCOUNT_HELP}`,
    flags: ACCOUNT_FLAGS,
    json: SHOWN_JSON,
    exits: `0  it was shown\n${FAULT_EXITS}\n${ABSENT_EXIT}`,
    example: {
      call: 'token get 7f3kQwB2mN8xR4tY6uZ1aC --account ada',
      output: `id       7f3kQwB2mN8xR4tY6uZ1aC
name     ci
state    active
scopes   GET:shop.example/orders
created  2026-11-21T20:00:00Z
expires  2027-02-19T20:00:00Z
version  1`,
    },
    async run([operand = ''], flags) {
      const id = await readId(operand);
      return withAccount(flags, (account) => found(account, () => account.get(id), shownOutcome));
    },
  }),
  command({
    name: 'token modify',
    operands: ['ID'],
    summary: 'changes what is named of a token, and leaves the rest as it is',
    about: `Unlike PUT /token/ID, which replaces scopes and expiry together, this is PATCH: without --ttl
and --expire the expiry stays. The value stays, too; token rotate makes a new one.

${ID_HELP}

${ACCOUNT_HELP}

${GRANT_HELP}`,
    flags: {
      ...ACCOUNT_FLAGS,
      ...CATALOG_FLAGS,
      scope: { ...SCOPE_FLAG, help: 'these scopes instead of those held; repeatable' },
      'add-scope': { ...SCOPE_FLAG, help: 'these as well; repeatable' },
      'remove-scope': {
        ...SCOPE_FLAG,
        help: 'drop each held scope that one of these covers; repeatable',
      },
      ttl: { type: 'string', value: 'TIME', help: `expires so long from now: ${TTL}` },
      expire: {
        type: 'string',
        value: 'DATE',
        help: 'expires then: 2027-01-31, 2027-01-31T12:00:00Z or UNIX seconds',
      },
      name: { ...NAME_FLAG, help: "for people; '' removes it" },
      metadata: { type: 'string', value: 'JSON', help: 'facts of your own; null removes them' },
      'if-version': IF_VERSION_FLAG,
      'dry-run': {
        type: 'boolean',
        help: 'only tell what would come of it; in a store, not behind a service',
      },
    },
    json: `${TOKEN_JSON};
with --dry-run also diff: { added: [scope], removed: [scope] }`,
    exits: `0  it was changed, or could be\n${FAULT_EXITS}\n${ABSENT_EXIT}`,
    example: {
      call: `token modify 7f3kQwB2mN8xR4tY6uZ1aC --account ada \\
    --add-scope GET:shop.example/bills --dry-run`,
      output: `+ GET:shop.example/bills

id       7f3kQwB2mN8xR4tY6uZ1aC
name     ci
state    active
scopes   GET:shop.example/bills
         GET:shop.example/orders
created  2026-11-21T20:00:00Z
expires  2027-02-19T20:00:00Z
version  2
this is what would come of it; nothing was changed`,
    },
    async run([operand = ''], flags) {
      const change = await readChange(flags);
      const id = await readId(operand);
      const options = { ifVersion: readVersion(flags['if-version']) };
      const isGranting = change.scopes !== undefined || change.addScopes !== undefined;
      return withAccount(
        flags,
        (account) =>
          flags['dry-run'] === true
            ? found(account, () => account.tryPatch(id, change, options), triedOutcome)
            : found(account, () => account.patch(id, change, options), shownOutcome),
        isGranting ? { catalogFor: 'granting' } : {},
      );
    },
  }),
  command({
    name: 'token revoke',
    operands: ['ID?'],
    summary: 'refuses a token from now on, for good',
    about: `A service that serves from memory (--max-stale-ms) may take it for that long yet.

${ID_HELP}

${ACCOUNT_HELP}`,
    flags: {
      ...ACCOUNT_FLAGS,
      'if-version': IF_VERSION_FLAG,
      all: {
        type: 'boolean',
        help: 'all tokens of the account, instead of one; in a store, and only with --yes',
      },
      yes: { type: 'boolean', help: 'you mean it' },
    },
    json: '{ revoked }; how many were revoked by this',
    exits: `0  it is revoked\n${FAULT_EXITS}\n${ABSENT_EXIT}, or no longer`,
    example: {
      call: 'token revoke 7f3kQwB2mN8xR4tY6uZ1aC --account ada',
      output: 'revoked 1 token of ada in SQLite in data/tokens.db',
    },
    async run([operand], flags) {
      if ((operand === undefined) !== (flags.all === true)) {
        throw new UsageError(
          'either <ID> or --all is required; see tokenwright token revoke --help',
        );
      }
      if (operand === undefined) return revokeAll(flags);
      const id = await readId(operand);
      const options = { ifVersion: readVersion(flags['if-version']) };
      return withAccount(flags, (account) =>
        found(
          account,
          () => account.revoke(id, options),
          () => revokedOutcome(1, account),
        ),
      );
    },
  }),
  command({
    name: 'token rotate',
    operands: ['ID'],
    summary: 'gives a token a new value, printed alone on standard output',
    about: `The id, the scopes and the expiry stay. The old value is refused at once, or, with --grace,
after that time. What the token is stands on standard error.

${ID_HELP}

${ACCOUNT_HELP}
${REVEAL_HELP}`,
    flags: {
      ...ACCOUNT_FLAGS,
      ...REVEAL_FLAGS,
      grace: { type: 'string', value: 'TIME', help: `how long the old value lives on: ${TTL}` },
      'if-version': IF_VERSION_FLAG,
    },
    json: TOKEN_JSON,
    exits: `0  it has a new value\n${FAULT_EXITS}\n${ABSENT_EXIT}`,
    example: {
      call: 'token rotate 7f3kQwB2mN8xR4tY6uZ1aC --account ada --grace 1h',
      output: `tw_1k17f3kQw…
id       7f3kQwB2mN8xR4tY6uZ1aC
name     ci
state    active
scopes   GET:shop.example/orders
created  2026-11-21T20:00:00Z
expires  2027-02-19T20:00:00Z
version  2`,
    },
    async run([operand = ''], flags) {
      const id = await readId(operand);
      const graceSeconds =
        flags.grace === undefined ? undefined : readSeconds(flags.grace, 'grace');
      const options = { graceSeconds, ifVersion: readVersion(flags['if-version']) };
      return withAccount(flags, (account) =>
        found(account, () => account.rotate(id, options), madeOutcome),
      );
    },
  }),
  command({
    name: 'token verify',
    operands: ['METHOD?', 'URL?'],
    summary: 'tells whether a value allows a request, or a scope',
    about: `The value is read from standard input, or from the variable TOKENWRIGHT_TOKEN. Of the URL the
host is the domain, without its port, and what follows is the target as it is sent.

In a store this needs no account, and the keys of keys verifier are enough. A service is asked
by introspection: it must run with --introspection, and the credentials are those.

${ACCOUNT_HELP.slice(0, ACCOUNT_HELP.lastIndexOf('\n'))}`,
    flags: {
      ...PLACE_FLAGS,
      scope: { type: 'string', value: 'SCOPE', help: 'what is needed, instead of METHOD and URL' },
      token: {
        type: 'string',
        value: 'VALUE',
        help: `the value, or - for standard input. Flags show in process lists:
prefer standard input or the variable`,
      },
      'root-name': ROOT_NAME_FLAG,
    },
    json: `{ ok, grantedBy?, token?: { id, account, expire }, reason?, needed? };
needed is the scope that would have been enough`,
    exits: `0  allowed\n${FAULT_EXITS}\n3  refused`,
    example: {
      call: 'token verify GET https://shop.example/bills < value.txt',
      output: `refused  GET shop.example /bills
reason   insufficient_scope: no scope of the token covers it
enough   GET:shop.example/bills`,
    },
    async run([method, url], flags) {
      const need = readNeed(method, url, flags);
      const value = await readValue(flags.token);
      return withAccount(
        flags,
        async (account) => findingOutcome(await account.verify(value, need), need),
        { isNeeded: false, catalogFor: 'naming' },
      );
    },
  }),
];

async function readScopeFlags(lists: readonly string[], flag: string): Promise<Scope[]> {
  const scopes: Scope[] = [];
  for (const list of lists) scopes.push(...(await readScopes(list, `--${flag}`)));
  return scopes;
}

interface ChangeFlags extends PlaceFlags {
  readonly scope?: string[];
  readonly 'add-scope'?: string[];
  readonly 'remove-scope'?: string[];
  readonly ttl?: string;
  readonly expire?: string;
  readonly name?: string;
  readonly metadata?: string;
}

async function readChange(flags: ChangeFlags): Promise<PatchInput> {
  const { ttl, expire, name } = flags;
  if (ttl !== undefined && expire !== undefined) {
    throw new UsageError('--ttl and --expire say the same: give one of them');
  }
  const read = async (flag: 'scope' | 'add-scope' | 'remove-scope') =>
    flags[flag] && (await readScopeFlags(flags[flag], flag));
  const scopes = await read('scope');
  const added = await read('add-scope');
  checkWildcards([...(scopes ?? []), ...(added ?? [])], flags);
  const change: PatchInput = {
    scopes: scopes?.map(String),
    addScopes: added?.map(String),
    removeScopes: (await read('remove-scope'))?.map(String),
    expiresAt: expiryOf(ttl, expire),
    name: name === '' ? null : name,
    metadata: readMetadata(flags.metadata),
  };
  if (Object.values(change).some((member) => member !== undefined)) return change;
  throw new UsageError('nothing is to be changed; see tokenwright token modify --help');
}

function expiryOf(ttl: string | undefined, expire: string | undefined): Date | undefined {
  if (expire !== undefined) return readTime(expire, 'expire');
  if (ttl === undefined) return undefined;
  return new Date(systemClock.now().getTime() + readSeconds(ttl, 'ttl') * 1000);
}

function readMetadata(text: string | undefined): JsonObject | null | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && !Array.isArray(value)) return value as JsonObject | null;
  } catch {
    // As any other text that is no object.
  }
  throw new UsageError('--metadata must be a JSON object, as {"team":"web"}');
}

function readMatch(text: string | undefined): 'overlaps' | 'covers' | 'exact' | undefined {
  if (text === undefined || text === 'overlaps' || text === 'covers' || text === 'exact') {
    return text;
  }
  throw new UsageError('--match must be overlaps, covers or exact');
}

function readVersion(text: string | undefined): number | undefined {
  return readNumber(text, 'if-version', 999_999_999_999_999);
}

async function readId(operand: string): Promise<string> {
  if (operand !== '-') return operand;
  const id = (await standardInput()).trim();
  if (id !== '') return id;
  throw new InputError('standard input holds no id');
}

async function readValue(flag: string | undefined): Promise<string> {
  const given = flag === '-' ? undefined : (flag ?? readVariable('TOKENWRIGHT_TOKEN'));
  if (given !== undefined) return given;
  if (process.stdin.isTTY) {
    throw new UsageError('a value is required: on standard input, or in TOKENWRIGHT_TOKEN');
  }
  const value = (await standardInput()).trim();
  if (value !== '') return value;
  throw new InputError('standard input holds no value');
}

function readNeed(
  method: string | undefined,
  url: string | undefined,
  flags: { readonly scope?: string; readonly 'root-name'?: string },
): Need {
  const { scope } = flags;
  if (
    (scope === undefined) !== (url !== undefined) ||
    (scope !== undefined) === (method !== undefined)
  ) {
    throw new UsageError(
      'either <METHOD> and <URL> or --scope is required; see tokenwright token verify --help',
    );
  }
  if (scope !== undefined) return { scope };
  const [, domain, target = '/'] =
    /^https?:\/\/([^/?#@:]+)(?::\d{1,5})?([/?].*)?$/.exec(url ?? '') ?? [];
  if (domain === undefined) {
    throw new UsageError('<URL> must be like https://shop.example/orders/7');
  }
  const sent = target.startsWith('?') ? `/${target}` : target;
  return {
    method: method ?? '',
    domain: domain.toLowerCase(),
    target: namedTarget(sent, flags['root-name']),
  };
}

async function revokeAll(
  flags: PlaceFlags & {
    readonly yes?: boolean;
    readonly 'if-version'?: string;
  },
): Promise<Outcome> {
  if (flags['if-version'] !== undefined) throw new UsageError('--if-version is for one token');
  return withAccount(flags, async (account) => {
    if (flags.yes !== true) {
      throw new UsageError(`this would revoke all tokens of ${account.name}: add --yes to do it`);
    }
    return revokedOutcome(await account.revokeAll(), account);
  });
}

/** What a verb that names a token comes to; that there is no such token is an answer too. */
async function found<Result>(
  { name }: Account,
  ask: () => Promise<Result>,
  describe: (result: Result) => Outcome,
): Promise<Outcome> {
  try {
    return describe(await ask());
  } catch (error) {
    if (!(error instanceof NotFound)) throw error;
    return { text: '', json: null, notes: `there is no such token of ${name}`, isNegative: true };
  }
}

function madeOutcome(token: ShownToken): Outcome {
  return { text: token.token, json: token, notes: columns(rowsOf(token)) };
}

function shownOutcome(token: ShownToken): Outcome {
  return { text: columns(rowsOf(token)), json: token };
}

function triedOutcome(token: ShownToken & { readonly diff: ScopeDiff }): Outcome {
  const diff = diffLines(token.diff) || 'no difference: it may do the same';
  return {
    text: `${diff}\n\n${columns(rowsOf(token))}`,
    json: token,
    notes: 'this is what would come of it; nothing was changed',
  };
}

function revokedOutcome(revoked: number, { name }: Account): Outcome {
  return { text: `revoked ${count(revoked, 'token')} of ${name}`, json: { revoked } };
}

function rowsOf(token: ShownToken): (readonly [label: string, text: string])[] {
  const { id, name, state, scopes, requested = scopes, metadata } = token;
  const isExpanded = requested.join() !== scopes.join();
  const list = (label: string, lines: readonly string[]) =>
    lines.map((line, i) => [i === 0 ? label : '', printable(line)] as const);
  return [
    ['id', printable(id)],
    ...(name === undefined ? [] : [['name', printable(name)] as const]),
    ['state', printable(state)],
    ...list('scopes', scopes),
    ...(isExpanded ? list('asked for', requested) : []),
    ...(metadata === undefined ? [] : list('metadata', wrap(JSON.stringify(metadata)))),
    ['created', isoTime(token.createdAt)],
    ['expires', isoTime(token.expire)],
    ['version', String(token.version)],
  ];
}

/** What may be long stands last. */
function listOf(tokens: readonly ShownToken[]): string {
  if (tokens.length === 0) return '';
  const hasNames = tokens.some(({ name }) => name !== undefined);
  const rows = tokens.map(({ id, expire, name = '', scopes }) => {
    const more = scopes.length > 1 ? ` and ${scopes.length - 1} more` : '';
    const named = hasNames ? [shorten(printable(name))] : [];
    return [printable(id), isoTime(expire), ...named, printable(`${scopes[0]}${more}`)];
  });
  return table(['ID', 'EXPIRES', ...(hasNames ? ['NAME'] : []), 'SCOPES'], rows);
}

const NAME_WIDTH = 20;

function shorten(name: string): string {
  return name.length > NAME_WIDTH ? `${name.slice(0, NAME_WIDTH - 1)}…` : name;
}

function isoTime(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString().replace('.000', '');
}

const REASONS: Readonly<Record<string, string>> = {
  malformed: 'it is no value of this service, or its key or prefix is not known here',
  unknown: 'no token has this value; it may have been rotated, or purged',
  revoked: 'the token was revoked',
  expired: 'the token has expired',
  inactive: 'the value is unknown, revoked or expired',
  insufficient_scope: 'no scope of the token covers it',
};

function findingOutcome(finding: Finding, need: Need): Outcome {
  const asked = 'scope' in need ? String(need.scope) : describeRequest(need);
  if (finding.ok) {
    const { id, account, expire } = finding.token;
    const rows = [
      ['allowed', asked],
      ['by', finding.grantedBy],
      ['token', id],
      ['account', account],
      ['expires', expire === undefined ? undefined : isoTime(expire)],
    ] as const;
    return {
      text: columns(
        rows.flatMap(([name, text]) => (text ? [[name, printable(text)] as const] : [])),
      ),
      json: finding,
    };
  }
  const { reason, needed } = finding;
  const words = REASONS[reason] ?? 'the request can be read in two ways';
  return {
    text: columns([
      ['refused', printable(asked)],
      ['reason', `${reason}: ${words}`],
      ...(needed === undefined ? [] : [['enough', needed] as const]),
    ]),
    json: finding,
    isNegative: true,
  };
}

/** Without the query, which decides nothing and may hold a secret. */
function describeRequest({ method, domain, target }: Exclude<Need, { scope: unknown }>): string {
  return `${method} ${domain} ${target.split('?', 1)[0]}`;
}
