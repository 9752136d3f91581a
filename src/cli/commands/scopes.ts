import {
  covers,
  type NearMiss,
  type Scope,
  ScopeCatalog,
  type ScopeExplanation,
  type ScopeRequest,
  ScopeSet,
} from '../../scope/index.ts';
import { readCatalog } from '../catalog-files.ts';
import { type Command, command, type Outcome } from '../command.ts';
import { usageError } from '../errors.ts';
import { asInput, readScopes } from '../inputs.ts';
import { columns, count, diffLines } from '../layout.ts';
import { GRANULARITY_FLAG, INPUT_FAULT } from './catalog.ts';
import { describeRequest, namedTarget, REQUEST_REASONS, ROOT_NAME_FLAG } from './request.ts';

/** Explains LIST. */
export const LIST_HELP = `A LIST is
  a,b     scopes separated by commas, in single quotes for the shell
  a.json  a JSON file that holds an array of scopes
  -       standard input: a JSON array, or one scope in a line; what follows a #
          is a comment

In a path {} is any one segment, and a $ at the end allows nothing below it:
  GET:shop.example/orders          /orders, and all below it
  GET:shop.example/orders$         /orders alone
  GET:shop.example/orders/{}$      /orders/7, and none of its items
  GET:shop.example/orders/7        one order, and all below it`;

const CATALOG_FLAG = {
  type: 'string',
  multiple: true,
  value: 'FILE',
  help: 'the scopes that exist: a JSON array of scopes, an OpenAPI document in JSON or YAML, or a folder of these; repeatable',
} as const;

/** The commands that inspect lists of scopes. */
export const SCOPES_COMMANDS: readonly Command[] = [
  command({
    name: 'scopes explain',
    operands: ['LIST', 'METHOD', 'DOMAIN', 'TARGET'],
    summary: 'says why a list of scopes allows or refuses a request',
    about: `${LIST_HELP}

TARGET is the request target as it is sent, /orders/7?x=1. Allowed: the scope that allows it.
Refused: the scope that comes nearest and the part of it that does not fit, and the smallest
scope that would have been enough.

With a catalog, the request is read as a service with that catalog reads it. It belongs to one
entry, and a {} of a scope does not stand for what that entry names: if /orders/export is an entry
beside /orders/{}, it needs a scope of its own. You also see whether the catalog knows the request,
as what, and what is most like it.`,
    flags: { catalog: CATALOG_FLAG, granularity: GRANULARITY_FLAG, 'root-name': ROOT_NAME_FLAG },
    json: '{ allowed, by?, reason?, needed?, smallest?, nearest?: { scope, failed }, known?, suggestions? }; needed is what the catalog calls it, known whether it does (true without a catalog), failed one of method, domain and path, reason a code as not_covered',
    exits: { 0: 'allowed', 1: INPUT_FAULT, 3: 'refused' },
    example: {
      call: "scopes explain 'GET:shop.example/orders' DELETE shop.example /orders/7",
      output: `refused  DELETE shop.example /orders/7
reason   not_covered: no scope of the list covers it
nearest  GET:shop.example/orders, but its method does not fit
enough   DELETE:shop.example/orders/7$`,
    },
    async run([list = '', method = '', domain = '', target = ''], flags) {
      const paths = flags.catalog ?? [];
      const catalog = paths.length === 0 ? undefined : await readCatalog(paths, flags);
      const request = { method, domain, target: namedTarget(target, flags['root-name']) };
      return explainRequest(ScopeSet.from(await readScopes(list, 'LIST')), request, catalog);
    },
  }),
  command({
    name: 'scopes expand',
    operands: ['LIST'],
    summary: 'expands wildcards to the concrete scopes of a catalog',
    about: `${LIST_HELP}

This is what a token would get that is asked for with the list: each entry of the catalog that
the list allows, or the part of it that the list allows. So the path of one resource gives each
endpoint of it. A scope without wildcards that is a part of an entry is granted as asked, and marked
as narrowed. A scope that meets nothing in the catalog is an error that names what is most like it.`,
    flags: { catalog: { ...CATALOG_FLAG, isRequired: true }, granularity: GRANULARITY_FLAG },
    json: '{ granted: [scope], narrowed: [scope] }; narrowed are some of granted',
    exits: { 0: 'all can be granted', 1: INPUT_FAULT },
    example: {
      call: "scopes expand '*:shop.example/bills,GET:shop.example/orders/7' --catalog catalog.json",
      output: `GET:shop.example/bills$
GET:shop.example/orders/7$
GET:shop.example/orders/7/items$
POST:shop.example/bills$`,
    },
    async run([list = ''], flags) {
      const catalog = await readCatalog(flags.catalog ?? [], flags);
      return expandList(ScopeSet.from(await readScopes(list, 'LIST')), catalog);
    },
  }),
  command({
    name: 'scopes diff',
    operands: ['BEFORE', 'AFTER'],
    summary: 'shows which rights a change of scopes gives (+) and takes (-)',
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
    exits: {
      0: 'always; with --exit-code only when both allow the same',
      1: INPUT_FAULT,
      3: 'they differ, with --exit-code',
    },
    example: {
      call: "scopes diff 'GET:shop.example/orders' 'GET:shop.example/orders$,GET:a.example/bills'",
      output: '+ GET:a.example/bills\n- GET:shop.example/orders',
    },
    async run([before = '', after = ''], flags) {
      if (before === '-' && after === '-') {
        throw usageError('only one of <BEFORE> and <AFTER> can be standard input');
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
    exits: { 0: 'always', 1: INPUT_FAULT },
    example: {
      call: "scopes minimize 'GET:shop.example/orders/7$,*:shop.example/orders/{}$'",
      output: '*:shop.example/orders/{}$',
    },
    async run([list = '']) {
      const scopes = ScopeSet.from(await readScopes(list, 'LIST'))
        .minimize()
        .toArray();
      return { text: scopes.join('\n'), json: scopes };
    },
  }),
];

function explainRequest(
  held: ScopeSet,
  request: ScopeRequest,
  catalog: ScopeCatalog | undefined,
): Outcome {
  const reading = catalog?.readRequest(request);
  const explanation = held.explain(reading?.ok ? reading.request : request, catalog);
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
      : `${nearest.scope}, but ${missOf(nearest, smallest)}`;
  return [
    ['nearest', miss],
    ['enough', smallest.toString()],
  ];
}

function missOf({ scope, failed }: NearMiss, smallest: Scope): string {
  return covers(scope, smallest)
    ? 'its {} does not stand for what the catalog names'
    : `its ${failed} does not fit`;
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
      ? `${scope.padEnd(width)}  # narrowed: part of ${entries.coverOf(scope)}`
      : scope,
  );
  const { length } = expansion.granted;
  const notes = `${count(requested.size, 'scope')} asked for, ${length} granted${narrowed.size === 0 ? '' : `, ${narrowed.size} of them narrowed`}`;
  return { text: lines.join('\n'), json: expansion, notes };
}
