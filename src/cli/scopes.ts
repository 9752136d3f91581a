import { isSegment } from '../scope/grammar.ts';
import {
  type RequestReason,
  ScopeCatalog,
  type ScopeDiff,
  type ScopeExplanation,
  type ScopeRequest,
  ScopeSet,
} from '../scope/index.ts';
import { type Command, columns, command, count, type Outcome, printable } from './command.ts';
import { asInput, readCatalog, readScopes } from './files.ts';
import { UsageError } from './settings.ts';

/** What a LIST is, for the help of the group. */
export const LIST_HELP = `A LIST is
  a,b     scopes separated by commas
  a.json  a JSON file that holds an array of scopes
  -       standard input: a JSON array, or one scope in a line; what follows a #
          is a comment`;

const CATALOG_FLAG = {
  type: 'string',
  multiple: true,
  value: 'FILE',
  help: `the scopes that exist: a JSON array of scopes, an OpenAPI document in JSON
or YAML, or a folder of these; repeatable`,
} as const;

/** As the guard takes it. */
export const ROOT_NAME_FLAG = {
  type: 'string',
  value: 'NAME',
  help: 'what stands for the path / in a scope, as rootName of the guard; default none',
} as const;

const INPUT_EXITS = '1  the input cannot be read or is wrong\n2  the command line is wrong';

/** The commands that look at lists of scopes. */
export const SCOPES_COMMANDS: readonly Command[] = [
  command({
    name: 'scopes explain',
    operands: ['LIST', 'METHOD', 'DOMAIN', 'TARGET'],
    summary: 'tells why a list of scopes allows a request, or refuses it',
    about: `${LIST_HELP}

TARGET is the request target as it is sent, /orders/7?x=1. Allowed: the scope that allows it.
Refused: the scope that comes nearest and the part of it that does not fit, and the smallest
scope that would have been enough. With a catalog also whether that knows the request, as what,
and what is most like it.`,
    flags: { catalog: CATALOG_FLAG, 'root-name': ROOT_NAME_FLAG },
    json: `{ allowed, by?, reason?, needed?, smallest?, nearest?: { scope, failed },
known?, suggestions? }; needed is what the catalog calls it, known
whether it does (true without a catalog), failed one of method, domain
and path, reason a code as not_covered`,
    exits: `0  allowed\n${INPUT_EXITS}\n3  refused`,
    example: {
      call: "scopes explain 'GET:shop.example/orders' DELETE shop.example /orders/7",
      output: `refused  DELETE shop.example /orders/7
reason   not_covered: no scope of the list covers it
nearest  GET:shop.example/orders, but its method does not fit
enough   DELETE:shop.example/orders/7`,
    },
    async run([list = '', method = '', domain = '', target = ''], flags) {
      const paths = flags.catalog ?? [];
      const catalog = paths.length === 0 ? undefined : await readCatalog(paths);
      const request = { method, domain, target: namedTarget(target, flags['root-name']) };
      return explainRequest(ScopeSet.from(await readScopes(list, 'LIST')), request, catalog);
    },
  }),
  command({
    name: 'scopes expand',
    operands: ['LIST'],
    summary: 'lists the concrete scopes that a catalog makes of a list with wildcards',
    about: `${LIST_HELP}

This is what a token would get that is asked for with the list. A concrete scope that lies below
an entry of the catalog is granted as asked, and marked as narrowed. A scope that meets nothing
in the catalog is an error that names what is most like it.`,
    flags: { catalog: { ...CATALOG_FLAG, isRequired: true } },
    json: '{ granted: [scope], narrowed: [scope] }; narrowed are some of granted',
    exits: `0  all can be granted\n${INPUT_EXITS}`,
    example: {
      call: "scopes expand '*:shop.example/bills,GET:shop.example/orders/7' --catalog catalog.json",
      output: `GET:shop.example/bills
GET:shop.example/orders/7  # narrowed: below GET:shop.example/orders
POST:shop.example/bills`,
    },
    async run([list = ''], flags) {
      const catalog = await readCatalog(flags.catalog ?? []);
      return expandList(ScopeSet.from(await readScopes(list, 'LIST')), catalog);
    },
  }),
  command({
    name: 'scopes diff',
    operands: ['BEFORE', 'AFTER'],
    summary: 'tells what a change of a list of scopes gives (+) and takes (-)',
    about: `BEFORE and AFTER are each a LIST. ${LIST_HELP}

What counts is what is allowed, not how it is written: a scope that another one of its list
covers makes no difference.`,
    flags: {
      'exit-code': {
        type: 'boolean',
        help: 'exit with 3 when they differ, as git diff does with 1',
      },
    },
    json: '{ added: [scope], removed: [scope] }',
    exits: `0  always; with --exit-code only when both allow the same\n${INPUT_EXITS}
3  they differ, with --exit-code`,
    example: {
      call: "scopes diff '*:shop.example/orders' 'GET:shop.example/orders,GET:a.example/bills'",
      output: '+ GET:a.example/bills\n- *:shop.example/orders',
    },
    async run([before = '', after = ''], flags) {
      if (before === '-' && after === '-') {
        throw new UsageError('only one of <BEFORE> and <AFTER> can be standard input');
      }
      const from = await readScopes(before, 'BEFORE');
      const to = await readScopes(after, 'AFTER');
      const diff = ScopeSet.from(from).diff(to);
      const text = diffLines(diff);
      return {
        text,
        json: diff,
        ...(text === '' && { notes: 'no difference: both lists allow the same' }),
        isNegative: flags['exit-code'] === true && text !== '',
      };
    },
  }),
  command({
    name: 'scopes minimize',
    operands: ['LIST'],
    summary: 'writes the same rights in the fewest scopes',
    about: `${LIST_HELP}

Drops each scope that another one covers, and sorts the rest: two lists that allow the same
have the same smallest form.`,
    flags: {},
    json: '[scope]',
    exits: `0  always\n${INPUT_EXITS}`,
    example: {
      call: "scopes minimize 'GET:shop.example/orders/7,*:shop.example/orders'",
      output: '*:shop.example/orders',
    },
    async run([list = '']) {
      const scopes = ScopeSet.from(await readScopes(list, 'LIST'))
        .minimize()
        .toArray();
      return { text: scopes.join('\n'), json: scopes };
    },
  }),
];

/**
 * A target as the guard reads it that has a name for the root, which no scope has a path for.
 *
 * @throws {UsageError} when it is not one segment of a path
 */
export function namedTarget(target: string, rootName: string | undefined): string {
  if (rootName === undefined) return target;
  if (!isSegment(rootName)) {
    throw new UsageError('--root-name must be one segment of a path, as root');
  }
  const isRoot = target === '/' || target.startsWith('/?');
  return isRoot ? `/${rootName}${target.slice(1)}` : target;
}

/** What is given and taken, a scope in a line. */
export function diffLines({ added, removed }: ScopeDiff): string {
  return [...added.map((scope) => `+ ${scope}`), ...removed.map((scope) => `- ${scope}`)].join(
    '\n',
  );
}

function explainRequest(
  held: ScopeSet,
  request: ScopeRequest,
  catalog: ScopeCatalog | undefined,
): Outcome {
  const explanation = held.explain(request, catalog);
  const rows = explanation.allowed
    ? [['by', explanation.by.toString()] as const]
    : [['reason', reasonOf(explanation)] as const, ...missRows(explanation)];
  const title = explanation.allowed ? 'allowed' : 'refused';
  const isKnowable = catalog !== undefined && 'known' in explanation;
  return {
    text: columns([
      [title, describeRequest(request)],
      ...rows,
      ...(isKnowable ? catalogRows(explanation) : []),
    ]),
    json: explanation,
    isNegative: !explanation.allowed,
  };
}

type Row = readonly [label: string, text: string];
type Refused = Extract<ScopeExplanation, { readonly allowed: false }>;

/** Without the query, which decides nothing and may hold a secret. */
function describeRequest({ method, domain, target }: ScopeRequest): string {
  const [path = ''] = target.split('?');
  return printable(`${method} ${domain} ${path}`);
}

function reasonOf({ reason }: Refused): string {
  const inWords =
    reason === 'not_covered' ? 'no scope of the list covers it' : REQUEST_REASONS[reason];
  return `${reason}: ${inWords}`;
}

function missRows(explanation: Refused): Row[] {
  if (explanation.reason !== 'not_covered') return [];
  const { nearest, smallest } = explanation;
  const miss =
    nearest === undefined
      ? 'nothing: the list is empty'
      : `${nearest.scope}, but its ${nearest.failed} does not fit`;
  return [
    ['nearest', miss],
    ['enough', smallest.toString()],
  ];
}

function catalogRows(explanation: Extract<ScopeExplanation, { readonly known: boolean }>): Row[] {
  const { known, needed } = explanation;
  if (known) return [['catalog', `knows it as ${needed}`]];
  const suggestions = explanation.allowed ? [] : explanation.suggestions;
  if (suggestions.length === 0) return [['catalog', 'does not know it']];
  return [
    ['catalog', 'does not know it; did you mean'],
    ...suggestions.map((scope): Row => ['', `  ${scope}`]),
  ];
}

async function expandList(requested: ScopeSet, catalog: ScopeCatalog): Promise<Outcome> {
  const expansion = await asInput(() => catalog.expand(requested.toArray()));
  const entries = ScopeSet.from(ScopeCatalog.from(catalog));
  const narrowed = new Set(expansion.narrowed);
  const width = Math.max(...expansion.narrowed.map((scope) => scope.length), 0);
  const lines = expansion.granted.map((scope) =>
    narrowed.has(scope)
      ? `${scope.padEnd(width)}  # narrowed: below ${entries.coverOf(scope)}`
      : scope,
  );
  const { length } = expansion.granted;
  const notes = `${count(requested.size, 'scope')} asked for, ${length} granted${narrowed.size === 0 ? '' : `, ${narrowed.size} of them narrowed`}`;
  return { text: lines.join('\n'), json: expansion, notes };
}

/** Why a request is refused whatever the scopes are. */
const REQUEST_REASONS: Readonly<Record<RequestReason, string>> = {
  method_invalid: 'a method is a name in upper case, as GET',
  domain_invalid: 'a domain is one plain host name, as shop.example, without port and wildcard',
  path_too_long: 'a target has at most 8192 characters',
  path_not_absolute: 'a target begins with a slash, as /orders/7',
  path_fragment: 'a target holds no "#"',
  path_backslash: 'a backslash is a slash to some servers',
  path_illegal_character: 'the path holds a character that must be percent-encoded',
  path_bad_encoding: 'the path holds a broken percent-encoding, or one that is not UTF-8',
  path_empty_segment: 'the path holds an empty segment, which some servers drop',
  path_encoded_slash: 'an encoded slash is a slash to some servers',
  path_encoded_control: 'the path holds an encoded control character',
  path_parameter: 'some servers drop what follows a ";"',
  path_dot_segment: 'the path holds a segment of dots, which some servers resolve',
  path_double_encoding: 'the path is encoded twice, and some servers decode it twice',
};
