import { ApiError } from '../../../http/client.ts';
import type { AdviseOptions } from '../../../index.ts';
import { LISTED_STATES } from '../../../token/record.ts';
import { usageError } from '../../terminal/errors.ts';
import { ADDRESS, choice, readFlag, SECONDS, wholeNumber } from '../../terminal/kinds.ts';
import { printable } from '../../terminal/layout.ts';
import type { TokenClient } from '../account/client.ts';
import { type ClientUse, checkWildcards, withClient } from '../account/connect.ts';
import {
  ACCOUNT_FLAGS,
  ACCOUNT_HELP,
  type AccountFlags,
  BEARER_FLAGS,
  BEARER_HELP,
  CATALOG_FLAGS,
  CLIENT_FLAGS,
  CLIENT_HELP,
  GRANT_HELP,
  PRESETS_FLAGS,
  PRESETS_HELP,
  REVEAL_FLAGS,
  REVEAL_HELP,
  ROUTE_FLAGS,
  ROUTE_HELP,
} from '../account/flags.ts';
import {
  ABSENT,
  CLIENT_FAULT,
  type Command,
  command,
  ID_HELP,
  type Outcome,
  TOKEN_JSON,
} from '../command.ts';
import { confirm } from '../confirm.ts';
import { ROOT_NAME_FLAG } from './request.ts';
import { DAYS, TOKEN_REVIEW } from './review.ts';
import { GRANT_FLAGS, grantOf, readGrant } from './token-grant.ts';
import {
  CHANGE_FLAGS,
  NAME_FLAG,
  NEW_TOKEN_FLAGS,
  newTokenOf,
  readChange,
  readIdOperand,
  readScopeFlags,
  readValueOperand,
  readWrittenNeed,
  TTL,
  VALUE_FLAG,
} from './token-input.ts';
import { withLimits } from './token-limits.ts';
import {
  adviceOutcome,
  describerOf,
  explanationOutcome,
  listedOutcome,
  madeOutcome,
  missingOutcome,
  notingExpansion,
  previewOutcome,
  revokedOutcome,
  shownOutcome,
  triedOutcome,
  usageOutcome,
  verificationOutcome,
} from './token-output.ts';
import { TOKEN_REQUEST } from './token-request.ts';

const INVALID = 'the value is not, or no longer, valid';

/** Makes a narrower token from a token. */
const TOKEN_DERIVE = command({
  name: 'token derive',
  summary: 'derives a narrower token from a value',
  about: `It prints the new value. The value of the parent is read from standard input, or from the variable TOKENWRIGHT_TOKEN. It is all
the credentials: neither an account nor a password is needed. With --url, the service must run with
--derivation.

The new token may do what --scope names and its parent may do, and ends with its parent at the latest. Limits
can only be added or lowered. Standard output has only its value. The details go to standard error.

${BEARER_HELP}
${REVEAL_HELP}`,
  flags: {
    ...BEARER_FLAGS,
    ...REVEAL_FLAGS,
    token: VALUE_FLAG,
    ...NEW_TOKEN_FLAGS,
    scope: { ...NEW_TOKEN_FLAGS.scope, isRequired: true },
  },
  json: TOKEN_JSON,
  exits: { 0: 'the token was made', 1: CLIENT_FAULT, 3: INVALID },
  example: {
    call: 'token derive --scope GET:shop.example/orders --name job --ttl 15m < value.txt',
    output: `tw_1k1x0PmR2…
id       x0PmR2sW8vK2mYt7RjW1cZ
value    tw_1k1x0PmR2…
name     job
state    active
parent   7f3kQwB2mN8xR4tY6uZ1aC
scopes   GET:shop.example/orders
created  2026-11-21T20:00:00Z
expires  2026-11-21T20:15:00Z
version  1`,
  },
  async run(_, flags) {
    const scopes = await readScopeFlags(flags.scope ?? [], 'scope');
    const token = newTokenOf(scopes, flags);
    const value = await readValueOperand(flags.token);
    const derive = async (client: TokenClient): Promise<Outcome> => {
      try {
        return madeOutcome(await client.derive(value, token));
      } catch (error) {
        if (!isFailure(error, 'invalid_token')) throw error;
        return { text: '', json: null, notes: INVALID, isNegative: true };
      }
    };
    return withClient(flags, derive, { isByValue: true });
  },
});

/** Explains what a token may do. */
const TOKEN_EXPLAIN = command({
  name: 'token explain',
  operands: ['ID', 'METHOD?', 'URL?'],
  summary: 'says whether a token allows a request, and why not',
  about: `Give METHOD and URL of a request, or --scope. If the token would be refused, you see its nearest scope,
which part of that does not match, and the smallest scope that would be enough. It needs no value, and
counts as no use. To check a value, use token verify.

${ID_HELP}

With a store, give the catalog as to serve:
${ROUTE_HELP}

${ACCOUNT_HELP}`,
  flags: {
    ...ACCOUNT_FLAGS,
    ...ROUTE_FLAGS,
    scope: {
      type: 'string',
      value: 'SCOPE',
      help: 'the scope in question, instead of METHOD and URL',
    },
    'root-name': ROOT_NAME_FLAG,
  },
  json: '{ allowed, reason?, grantedBy?, needed, summary?, nearest?: { scope, failed }, smallest?, known, suggestions }; known is whether the catalog knows it (true without a catalog), failed is method, domain or path',
  exits: { 0: 'allowed', 1: CLIENT_FAULT, 3: `refused, or ${ABSENT}` },
  example: {
    call: 'token explain 7f3kQwB2mN8xR4tY6uZ1aC DELETE https://shop.example/orders/7 --account ada',
    output: `refused  DELETE shop.example /orders/7
reason   insufficient_scope: no scope of the token covers it
nearest  GET:shop.example/orders, but its method does not match
enough   DELETE:shop.example/orders/7$`,
  },
  async run([operand = '', method, url], flags) {
    const need = readWrittenNeed(method, url, flags);
    const id = await readIdOperand(operand);
    return withToken(
      flags,
      (client) => client.explain(id, need),
      (explanation) => explanationOutcome(explanation, need),
      { catalogFor: 'routing' },
    );
  },
});

const ACTIVATE = choice('first-use');
const MATCH = choice('overlaps', 'covers', 'exact');
const STATE = choice(...LISTED_STATES);
const UNUSED = choice('never');
const SORT = choice('created', 'expire', 'name', 'lastUsed');
const LIMIT = wholeNumber(1, 1_000_000);

const VERSION = wholeNumber(1, 999_999_999_999_999);
const DEFAULT_LISTED = 10_000;

const SHOWN_JSON = `${TOKEN_JSON}. Here token is the id, never the value, as with --reveal once`;

const USED_JSON =
  'Where uses are recorded, it has also uses and lastUsed, which is null for a token that was never used';

const WORDS_HELP = `With a store, the catalog gives the words:
${ROUTE_HELP}`;

const EXAMPLE_ROWS = `id       7f3kQwB2mN8xR4tY6uZ1aC
value    tw_1k17f3kQw…
name     ci
state    active
scopes   GET:shop.example/orders
created  2026-11-21T20:00:00Z
expires  2027-02-19T20:00:00Z`;

const IF_VERSION_FLAG = {
  type: 'string',
  value: 'N',
  help: 'only if the token still has this version',
} as const;

/** The commands that manage the tokens of an account. */
export const TOKEN_COMMANDS: readonly Command[] = [
  command({
    name: 'token issue',
    summary: 'issues a token and prints its value',
    about: `Standard output has only the value, so that TOKEN=$(tokenwright token issue …) works. The details
of the token go to standard error.

What the token may do is said by --scope, by --permission, by both together, or by --preset. All become
scopes, which the token keeps: a permission or a preset that changes later changes no token.

${ACCOUNT_HELP}

${GRANT_HELP}
${PRESETS_HELP}
${REVEAL_HELP}`,
    flags: {
      ...ACCOUNT_FLAGS,
      ...CATALOG_FLAGS,
      ...PRESETS_FLAGS,
      ...REVEAL_FLAGS,
      ...NEW_TOKEN_FLAGS,
      ...GRANT_FLAGS,
    },
    json: TOKEN_JSON,
    exits: { 0: 'the token was issued', 1: CLIENT_FAULT },
    example: {
      call: 'token issue --account ada --scope GET:shop.example/orders --name ci --ttl 90d',
      output: `tw_1k17f3kQw…
${EXAMPLE_ROWS}
version  1`,
    },
    async run(_, flags) {
      const scopes = await readScopeFlags(flags.scope ?? [], 'scope');
      const asked = readGrant(flags);
      checkWildcards(scopes, flags);
      const written = newTokenOf(scopes, flags);
      const issue = async (client: TokenClient) => {
        const token = await grantOf(client, written, { asked, flags });
        return notingExpansion(token.scopes, madeOutcome)(await client.issue(token));
      };
      const usesPresets = flags.preset !== undefined;
      return withClient(flags, issue, { catalogFor: 'granting', usesPresets });
    },
  }),
  command({
    name: 'token list',
    summary: 'lists tokens of an account',
    about: `Listing grants nothing, so there is no --patterns. --scope may still contain wildcards. If the catalog has
permissions that a token holds, the list names them instead of its scopes. On a terminal, times are shown as distances from now. A pipe, a file and --json get them exactly.

${ACCOUNT_HELP}

${WORDS_HELP}`,
    flags: {
      ...ACCOUNT_FLAGS,
      ...ROUTE_FLAGS,
      scope: { type: 'string', value: 'SCOPE', help: 'only tokens whose scopes match this one' },
      match: {
        type: 'string',
        value: 'HOW',
        choices: MATCH.choices,
        help: 'how --scope matches: overlaps (the default), the token allows a part of it; covers, the token allows all of it; exact, the token holds exactly this scope',
      },
      state: {
        type: 'string',
        value: 'STATE',
        choices: STATE.choices,
        help: `only tokens in this state: ${STATE.values}; live are those that are active or suspended; default active. A revoked token is listed until it is purged`,
      },
      name: {
        ...NAME_FLAG,
        help: 'only tokens whose name contains this text, in upper or lower case',
      },
      parent: {
        type: 'string',
        value: 'ID',
        help: 'only tokens that were derived from the token with this id, directly',
      },
      domain: {
        type: 'string',
        value: 'HOST',
        help: 'only tokens with a scope on this host, also one with a wildcard',
      },
      unused: {
        type: 'string',
        value: 'never',
        choices: UNUSED.choices,
        help: 'only tokens of which no use was recorded',
      },
      'created-by': {
        type: 'string',
        value: 'NAME',
        help: 'only tokens that this person made: exactly this text',
      },
      sort: {
        type: 'string',
        value: 'ORDER',
        choices: SORT.choices,
        help: `${SORT.values}; default created, newest first. expire lists what expires soonest first, and lastUsed what was used most recently. name and lastUsed take at most 10 000 tokens`,
      },
      limit: {
        type: 'string',
        value: 'N',
        help: `at most this many tokens; default ${DEFAULT_LISTED}. Standard error says if there are more`,
      },
      all: { type: 'boolean', help: 'all tokens, however many there are' },
    },
    json: '{ tokens: [token], isWhole }; a token has { id, token, scopes, state, createdAt, expire, version, masked, pending?, parent?, name?, metadata?, limits?, createdBy?, purpose?, actor? }, where times are UNIX seconds and token is the id, never the value, as with --reveal once. Where uses are recorded, it has also uses and lastUsed, null if there were none. isWhole is false if there are more',
    exits: { 0: 'the tokens were listed; there may be none', 1: CLIENT_FAULT },
    example: {
      call: "token list --account ada --scope 'GET:shop.example/*'",
      output: `ID                      EXPIRES               NAME  SCOPES
7f3kQwB2mN8xR4tY6uZ1aC  2027-02-19T20:00:00Z  ci    GET:shop.example/orders
1 token of ada in SQLite in data/tokens.db`,
    },
    async run(_, flags) {
      // An empty text filters nothing over HTTP; here a variable of the shell may be unset.
      for (const name of ['scope', 'name', 'parent', 'domain', 'created-by'] as const) {
        if (flags[name] === '')
          throw usageError(`--${name} is empty: leave it out, or give a text`);
      }
      const filter = {
        scope: flags.scope,
        match: readFlag(MATCH, 'match', flags.match),
        state: readFlag(STATE, 'state', flags.state),
        name: flags.name,
        parent: flags.parent,
        domain: flags.domain,
        unused: readFlag(UNUSED, 'unused', flags.unused),
        createdBy: flags['created-by'],
        sort: readFlag(SORT, 'sort', flags.sort),
        limit: readLimit(flags),
      };
      const list = async (client: TokenClient) => {
        const listing = await client.list(filter);
        return listedOutcome(listing, client, await describerOf(client, flags));
      };
      return withClient(flags, list, { showsUse: true, ...wordsFor(flags) });
    },
  }),
  command({
    name: 'token get',
    operands: ['ID'],
    summary: 'shows one token without its value',
    about: `It shows an expired token, too. If the catalog has permissions, a line says what the token may do in
their words.

${ID_HELP}

${ACCOUNT_HELP}

${WORDS_HELP}`,
    flags: {
      ...ACCOUNT_FLAGS,
      ...ROUTE_FLAGS,
      state: {
        type: 'string',
        value: 'STATE',
        choices: STATE.choices,
        help: `only if the token is in this state: ${STATE.values}; default any but revoked`,
      },
    },
    json: `${SHOWN_JSON}. ${USED_JSON}`,
    exits: { 0: 'the token was shown', 1: CLIENT_FAULT, 3: ABSENT },
    example: {
      call: 'token get 7f3kQwB2mN8xR4tY6uZ1aC --account ada',
      output: `${EXAMPLE_ROWS}
version  1`,
    },
    async run([operand = ''], flags) {
      const id = await readIdOperand(operand);
      const options = { state: readFlag(STATE, 'state', flags.state) };
      const get = async (client: TokenClient) => {
        const token = await client.get(id, options);
        return shownOutcome(token, await describerOf(client, flags));
      };
      return withToken(flags, get, (outcome) => outcome, { showsUse: true, ...wordsFor(flags) });
    },
  }),
  command({
    name: 'token usage',
    operands: ['ID'],
    summary: 'shows how often a token is used, and by which scopes',
    about: `serve counts the checks that it makes itself, such as those of --gateway. Another process counts its
own if it records usage in the same place. What a process has counted in the last ten seconds may be
missing. An answer of /introspect is counted as a use by the scope other. Checks of token verify on a
store are not counted.

${ID_HELP}

${ACCOUNT_HELP}`,
    flags: ACCOUNT_FLAGS,
    json: '{ uses, refusals, lastUsed, scopes: [{ scope, uses, lastUsed }] }; lastUsed is in UNIX seconds, or null. A scope named other has the uses whose scope is not known',
    exits: { 0: 'the use was shown', 1: CLIENT_FAULT, 3: ABSENT },
    example: {
      call: 'token usage 7f3kQwB2mN8xR4tY6uZ1aC --account ada',
      output: `uses       2
refusals   0
last used  2026-11-22T09:30:00Z

USES  LAST USED             SCOPE
2     2026-11-22T09:30:00Z  GET:shop.example/orders`,
    },
    async run([operand = ''], flags) {
      const id = await readIdOperand(operand);
      return withToken(flags, (client) => client.usage(id), usageOutcome, { showsUse: true });
    },
  }),
  command({
    name: 'token advise',
    operands: ['ID'],
    summary: 'finds the scopes that a token does not use',
    about: `It gives no advice while the counts do not go back that far: for a new token, after a change of its
scopes, or soon after recording began. A scope counts as unused if it is used in a process that does
not record; see token usage.

${ID_HELP}

${ACCOUNT_HELP}`,
    flags: {
      ...ACCOUNT_FLAGS,
      'unused-for-days': {
        type: 'string',
        value: 'DAYS',
        help: `how long a scope was not used: ${DAYS.values}; default 30`,
      },
      apply: {
        type: 'boolean',
        help: 'remove the unused scopes, unless the token changes meanwhile; a token that has used none is left as it is',
      },
    },
    json: '{ unused: [scope], kept: [scope], since }; since is in UNIX seconds, from when the counts say something about these scopes. With --apply also removed: [scope]',
    exits: { 0: 'the advice was given, and with --apply carried out', 1: CLIENT_FAULT, 3: ABSENT },
    example: {
      call: 'token advise 7f3kQwB2mN8xR4tY6uZ1aC --account ada --unused-for-days 90',
      output: `unused  none
kept    GET:shop.example/orders
since   2026-11-21T20:00:00Z
nothing to remove, as far as is known since 2026-11-21T20:00:00Z`,
    },
    async run([operand = ''], { 'unused-for-days': days, apply, ...flags }) {
      const id = await readIdOperand(operand);
      const options = { unusedForDays: readFlag(DAYS, 'unused-for-days', days) };
      const call = async (client: TokenClient) =>
        apply === true
          ? applyAdvice(client, id, options)
          : adviceOutcome(await client.advise(id, options));
      return withToken(flags, call, (outcome) => outcome, { showsUse: true });
    },
  }),
  TOKEN_EXPLAIN,
  TOKEN_REVIEW,
  command({
    name: 'token modify',
    operands: ['ID'],
    summary: 'changes the fields of a token that you give',
    about: `This is PATCH /token/ID, not PUT: fields that you do not give stay as they are. Without --ttl and
--expire, the expiry stays. The value stays, too. To replace it, use token rotate. Of --address, --uses
and --rate, '' removes the limit.

${ID_HELP}

${ACCOUNT_HELP}

${GRANT_HELP}`,
    flags: {
      ...ACCOUNT_FLAGS,
      ...CATALOG_FLAGS,
      ...CHANGE_FLAGS,
      'if-version': IF_VERSION_FLAG,
      'dry-run': {
        type: 'boolean',
        help: 'show the result without making the change',
      },
    },
    json: `${TOKEN_JSON}; with --dry-run also diff: { added: [scope], removed: [scope] }`,
    exits: { 0: 'the token was changed; with --dry-run, it could be', 1: CLIENT_FAULT, 3: ABSENT },
    example: {
      call: `token modify 7f3kQwB2mN8xR4tY6uZ1aC --account ada \\
    --add-scope GET:shop.example/bills --dry-run`,
      output: `+ GET:shop.example/bills

id       7f3kQwB2mN8xR4tY6uZ1aC
value    tw_1k17f3kQw…
name     ci
state    active
scopes   GET:shop.example/bills
         GET:shop.example/orders
created  2026-11-21T20:00:00Z
expires  2027-02-19T20:00:00Z
version  2
dry run: nothing was changed`,
    },
    async run([operand = ''], flags) {
      const change = await readChange(flags);
      const id = await readIdOperand(operand);
      const options = { ifVersion: readFlag(VERSION, 'if-version', flags['if-version']) };
      const isGranting = change.scopes !== undefined || change.addScopes !== undefined;
      const use = isGranting ? ({ catalogFor: 'granting' } as const) : {};
      const patchIn = (client: TokenClient) => withLimits(client, [id, change, options], flags);
      const asked = [...(change.scopes ?? []), ...(change.addScopes ?? [])];
      const describe = notingExpansion(asked, (token) => shownOutcome(token));
      return flags['dry-run'] === true
        ? withToken(flags, async (c) => c.tryPatch(...(await patchIn(c))), triedOutcome, use)
        : withToken(flags, async (c) => c.patch(...(await patchIn(c))), describe, use);
    },
  }),
  suspension({
    name: 'token suspend',
    summary: 'refuses a token until it is resumed',
    about:
      'Nothing else about the token changes, so it may expire meanwhile. A service that caches tokens\n(--max-stale-ms) may still accept it for that long.',
    done: 'the token is suspended',
    suspended: true,
  }),
  suspension({
    name: 'token resume',
    summary: 'accepts a suspended token again',
    about: 'A token that has expired or was revoked meanwhile stays so.',
    done: 'the token is no longer suspended',
    suspended: false,
  }),
  command({
    name: 'token revoke',
    operands: ['ID?'],
    summary: 'revokes one token, or many of an account',
    about: `A service that caches tokens (--max-stale-ms) may still accept the token for that long.

${ID_HELP}

${ACCOUNT_HELP}`,
    flags: {
      ...ACCOUNT_FLAGS,
      'if-version': IF_VERSION_FLAG,
      all: {
        type: 'boolean',
        help: 'all tokens of the account instead of one; asks first, and not with --url',
      },
      descendants: {
        type: 'boolean',
        help: 'also what was derived from the token, which cannot be used any more either way and is not counted',
      },
      'created-by': {
        type: 'string',
        value: 'NAME',
        help: 'all tokens of the account that this person made, exactly this text; asks first, and not with --url. Prevent first that the person makes more',
      },
      'dry-run': { type: 'boolean', help: 'revoke nothing, and list what would end' },
      yes: {
        type: 'boolean',
        help: 'confirm --all and --created-by; without a terminal it is required',
      },
    },
    json: '{ revoked }, the number of tokens that were revoked. With --dry-run { count, ending, tokens }: how many would be revoked, how many others would end with them, and the first 100 ids',
    exits: { 0: 'revoked', 1: CLIENT_FAULT, 3: `${ABSENT}, or it was already revoked` },
    example: {
      call: 'token revoke 7f3kQwB2mN8xR4tY6uZ1aC --account ada',
      output: 'revoked 1 token of ada in SQLite in data/tokens.db',
    },
    async run([operand], flags) {
      const isOfMany = flags.all === true || flags['created-by'] !== undefined;
      if ((operand === undefined) !== isOfMany) {
        throw usageError(
          'either <ID>, --all or --created-by is required; see tokenwright token revoke --help',
        );
      }
      if (operand === undefined) return revokeAll(flags);
      if (flags['dry-run'] === true) throw usageError('--dry-run needs --all or --created-by');
      const id = await readIdOperand(operand);
      const ifVersion = readFlag(VERSION, 'if-version', flags['if-version']);
      const options = { ifVersion, ...(flags.descendants === true && { descendants: true }) };
      const call = (client: TokenClient) => client.revoke(id, options);
      return withToken(flags, call, (_, client) => revokedOutcome(1, client));
    },
  }),
  command({
    name: 'token rotate',
    operands: ['ID'],
    summary: 'gives a token a new value and prints it',
    about: `The id, the scopes and the expiry stay. The old value is refused immediately, or after the time
of --grace. Standard output has only the new value. The details of the token go to standard error.

With --activate first-use, both values work until a service accepts the new one for the first time. Then
the time of --grace begins for the old one. If you lose the new value before that, rotate again: nobody is
locked out. --cancel drops a new value that has not been used, and prints the token without a value.

After a leak, use --end-derived. Anybody who had the value may have derived tokens from it, which outlive it.

${ID_HELP}

${ACCOUNT_HELP}
${REVEAL_HELP}`,
    flags: {
      ...ACCOUNT_FLAGS,
      ...REVEAL_FLAGS,
      activate: {
        type: 'string',
        value: 'WHEN',
        choices: ACTIVATE.choices,
        help: 'first-use: the old value works until the new one is used; default immediately',
      },
      grace: {
        type: 'string',
        value: 'TIME',
        help: `how long the old value keeps working after that: ${TTL}`,
      },
      cancel: { type: 'boolean', help: 'drop the new value that waits for its first use' },
      'end-derived': {
        type: 'boolean',
        help: 'also revoke all tokens that were derived from this one',
      },
      'if-version': IF_VERSION_FLAG,
    },
    json: `${TOKEN_JSON}; with --cancel, token is the id`,
    exits: {
      0: 'the token has a new value; with --cancel, none is pending',
      1: CLIENT_FAULT,
      3: ABSENT,
    },
    example: {
      call: 'token rotate 7f3kQwB2mN8xR4tY6uZ1aC --account ada --grace 1h',
      output: `tw_1k17f3kQw…
${EXAMPLE_ROWS}
version  2`,
    },
    async run([operand = ''], flags) {
      const activate = readFlag(ACTIVATE, 'activate', flags.activate);
      const graceSeconds = readFlag(SECONDS, 'grace', flags.grace);
      const ifVersion = readFlag(VERSION, 'if-version', flags['if-version']);
      const isMaking = activate !== undefined || graceSeconds !== undefined;
      if (flags.cancel === true && isMaking) {
        throw usageError('--cancel makes no new value: leave --activate and --grace out');
      }
      const endsDerived = flags['end-derived'] === true;
      if (endsDerived && (isMaking || flags.cancel === true)) {
        throw usageError(
          '--end-derived is for a value that is refused immediately: leave --activate, --grace and --cancel out',
        );
      }
      const id = await readIdOperand(operand);
      return flags.cancel === true
        ? withToken(
            flags,
            (client) => client.cancelRotation(id, { ifVersion }),
            (token) => shownOutcome(token),
          )
        : withToken(
            flags,
            (client) =>
              client.rotate(id, {
                activate,
                graceSeconds,
                ifVersion,
                ...(endsDerived && { endDerived: true }),
              }),
            madeOutcome,
          );
    },
  }),
  command({
    name: 'token verify',
    operands: ['METHOD?', 'URL?'],
    summary: 'checks whether a value allows a request or a scope',
    about: `The value is read from standard input, or from the variable TOKENWRIGHT_TOKEN. The host of URL,
without its port, is the domain. The rest is the target as it is sent.

With a store, no account is needed, and the keys printed by keys verifier are enough. With --url, the
service must run with --introspection, and --user and the password are the ones of --introspection.

With a store, give the catalog of your service: {} in a scope does not match a
segment that an entry of the catalog names.
${ROUTE_HELP}

${CLIENT_HELP}`,
    flags: {
      ...CLIENT_FLAGS,
      ...ROUTE_FLAGS,
      scope: {
        type: 'string',
        value: 'SCOPE',
        help: 'the scope to check, instead of METHOD and URL',
      },
      token: VALUE_FLAG,
      'root-name': ROOT_NAME_FLAG,
      address: {
        type: 'string',
        value: 'IP',
        help: 'where the request comes from, for a token that is restricted to certain addresses',
      },
    },
    json: '{ ok, grantedBy?, token?: { id, account, expire }, reason?, detail?, needed? }; needed is the smallest scope that would be enough. With a store, detail says why a value is malformed',
    exits: { 0: 'allowed', 1: CLIENT_FAULT, 3: 'refused' },
    example: {
      call: 'token verify GET https://shop.example/bills < value.txt',
      output: `refused  GET shop.example /bills
reason   insufficient_scope: no scope of the token covers it
enough   GET:shop.example/bills$`,
    },
    async run([method, url], flags) {
      const need = readWrittenNeed(method, url, flags);
      const address = flags.address && ADDRESS.read(flags.address, '--address');
      const value = await readValueOperand(flags.token);
      return withClient(
        flags,
        async (client) => verificationOutcome(await client.verify(value, need, address), need),
        { isNeeded: false, catalogFor: 'scope' in need ? 'naming' : 'routing' },
      );
    },
  }),
  TOKEN_DERIVE,
  TOKEN_REQUEST,
];

/** A catalog that only names things is not read for programs. */
function wordsFor({ json = false }: { readonly json?: boolean }): ClientUse {
  return json ? {} : { catalogFor: 'naming' };
}

function readLimit({ limit, all }: { readonly limit?: string; readonly all?: boolean }): number {
  if (all !== true) return readFlag(LIMIT, 'limit', limit) ?? DEFAULT_LISTED;
  if (limit === undefined) return Number.POSITIVE_INFINITY;
  throw usageError('--all and --limit exclude each other');
}

interface Suspension {
  readonly name: string;
  readonly summary: string;
  readonly about: string;
  readonly done: string;
  readonly suspended: boolean;
}

/** Makes a command that suspends or resumes a token. */
function suspension({ name, summary, about, done, suspended }: Suspension): Command {
  return command({
    name,
    operands: ['ID'],
    summary,
    about: `${about}\n\n${ID_HELP}\n\n${ACCOUNT_HELP}`,
    flags: { ...ACCOUNT_FLAGS, 'if-version': IF_VERSION_FLAG },
    json: SHOWN_JSON,
    exits: { 0: done, 1: CLIENT_FAULT, 3: ABSENT },
    example: {
      call: `${name} 7f3kQwB2mN8xR4tY6uZ1aC --account ada`,
      output: suspended
        ? `${EXAMPLE_ROWS.replace('active', 'suspended')}\nversion  3`
        : `${EXAMPLE_ROWS}\nversion  4`,
    },
    async run([operand = ''], flags) {
      const id = await readIdOperand(operand);
      const options = { ifVersion: readFlag(VERSION, 'if-version', flags['if-version']) };
      return withToken(
        flags,
        (client) => client.patch(id, { suspended }, options),
        (token) => shownOutcome(token),
      );
    },
  });
}

interface RevokeAllFlags extends AccountFlags {
  readonly yes?: boolean;
  readonly 'if-version'?: string;
  readonly 'created-by'?: string;
  readonly 'dry-run'?: boolean;
}

async function revokeAll(flags: RevokeAllFlags): Promise<Outcome> {
  if (flags['if-version'] !== undefined)
    throw usageError('--if-version needs <ID>: it is for one token');
  const { 'created-by': createdBy, 'dry-run': isPreview } = flags;
  const what =
    createdBy === undefined ? 'all tokens' : `all tokens that ${printable(createdBy)} made`;
  return withClient(flags, async (client) => {
    if (isPreview === true)
      return previewOutcome(await client.previewRevocation(createdBy), client);
    const revoked = await client.revokeAll(createdBy, () =>
      confirm(`this would revoke ${what} of ${client.name}`, flags),
    );
    return revokedOutcome(revoked, client);
  });
}

/** Removes the unused scopes, unless the token has no others. */
async function applyAdvice(
  client: TokenClient,
  id: string,
  options: AdviseOptions,
): Promise<Outcome> {
  // Read before the advice, so that the patch fails if the token changes between the two.
  const { version } = await client.get(id, {});
  const advice = await client.advise(id, options);
  const { unused, kept } = advice;
  if (unused.length === 0 || kept.length === 0) return adviceOutcome(advice, []);
  await client.patch(id, { removeScopes: unused }, { ifVersion: version });
  return adviceOutcome(advice, unused);
}

/** Calls the client about one token. A missing token is a negative answer. */
async function withToken<Result>(
  flags: AccountFlags,
  call: (client: TokenClient) => Promise<Result>,
  describe: (result: Result, client: TokenClient) => Outcome,
  use: ClientUse = {},
): Promise<Outcome> {
  const describeCall = async (client: TokenClient) => {
    try {
      return describe(await call(client), client);
    } catch (error) {
      if (isFailure(error, 'not_found')) return missingOutcome(client);
      throw error;
    }
  };
  return withClient(flags, describeCall, use);
}

function isFailure(error: unknown, code: 'invalid_token' | 'not_found'): boolean {
  return error instanceof ApiError && error.code === code;
}
