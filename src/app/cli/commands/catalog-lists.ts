import {
  covers,
  type NearMiss,
  type Scope,
  ScopeCatalog,
  type ScopeExplanation,
  type ScopeRequest,
  ScopeSet,
} from '../../../scope/index.ts';
import { count } from '../../../text/wording.ts';
import { readCatalog } from '../../server/files/catalog-files.ts';
import { asInput, readScopes } from '../../terminal/inputs.ts';
import { columns } from '../../terminal/layout.ts';
import { type Command, command, type Outcome } from '../command.ts';
import { GRANULARITY_FLAG, INPUT_FAULT } from './catalog.ts';
import { describeRequest, REQUEST_REASONS, ROOT_NAME_FLAG, readRequest } from './request.ts';

/** Explains LIST. */
export const LIST_HELP = `A LIST is
  a,b     scopes separated by commas, in single quotes for the shell
  a.json  a JSON file that contains an array of scopes
  -       standard input: a JSON array, or one scope per line; text after a # is
          a comment

In a path, {} matches any one segment, and $ at the end excludes everything
below the path:
  GET:shop.example/orders          /orders and everything below it
  GET:shop.example/orders$         /orders only
  GET:shop.example/orders/{}$      /orders/7, but none of its items
  GET:shop.example/orders/7        one order and everything below it`;

const CATALOG_FLAG = {
  type: 'string',
  multiple: true,
  value: 'FILE',
  help: 'the scopes that exist: a JSON array of scopes, an OpenAPI document in JSON or YAML, or a folder of these; repeatable',
} as const;

/** The commands that take a LIST. */
export const LIST_COMMANDS: readonly Command[] = [
  command({
    name: 'catalog explain',
    operands: ['LIST', 'METHOD', 'URL'],
    summary: 'says why a list of scopes allows a request, or not',
    about: `${LIST_HELP}

The host of URL, without its port, is the domain. The rest is the target as it is sent. If the request is
allowed, you see the scope that allows it. If it is refused, you see the nearest scope and which part of it does not match, and the
smallest scope that would be enough.

With a catalog, the request is read as a service with that catalog reads it. Each request belongs to
one entry, and {} in a scope does not match a segment that the entry names: if the catalog has /orders/export
as well as /orders/{}, an export needs a scope that names it. You also see the entry of the request, or, if there is
none, the most similar entries.`,
    flags: { catalog: CATALOG_FLAG, granularity: GRANULARITY_FLAG, 'root-name': ROOT_NAME_FLAG },
    json: '{ allowed, by?, reason?, needed?, summary?, smallest?, nearest?: { scope, failed }, known?, suggestions? }; needed is the entry of the catalog, summary what the catalog calls it, known is whether there is one (true without a catalog), failed is method, domain or path, reason is a code such as not_covered',
    exits: { 0: 'allowed', 1: INPUT_FAULT, 3: 'refused' },
    example: {
      call: "catalog explain 'GET:shop.example/orders' DELETE https://shop.example/orders/7",
      output: `refused  DELETE shop.example /orders/7
reason   not_covered: no scope of the list covers it
nearest  GET:shop.example/orders, but its method does not match
enough   DELETE:shop.example/orders/7$`,
    },
    async run([list = '', method = '', url = ''], flags) {
      const paths = flags.catalog ?? [];
      const catalog = paths.length === 0 ? undefined : await readCatalog(paths, flags);
      const request = readRequest(method, url, flags['root-name']);
      return explainRequest(ScopeSet.from(await readScopes(list, 'LIST')), request, catalog);
    },
  }),
  command({
    name: 'catalog expand',
    operands: ['LIST'],
    summary: 'expands wildcards to the scopes of a catalog',
    about: `${LIST_HELP}

The result is what a token issued with the list would get: each entry of the catalog that the list
allows, or the part of it that the list allows. The path of a resource therefore expands to all of
its endpoints. A scope without wildcards that is part of an entry is granted as requested, and marked
as narrowed. A scope that matches nothing in the catalog is an error, which names the most similar entries.`,
    flags: { catalog: { ...CATALOG_FLAG, isRequired: true }, granularity: GRANULARITY_FLAG },
    json: '{ granted: [scope], narrowed: [scope] }; granted includes narrowed',
    exits: { 0: 'all scopes can be granted', 1: INPUT_FAULT },
    example: {
      call: "catalog expand '*:shop.example/bills,GET:shop.example/orders/7' --catalog catalog.json",
      output: `GET:shop.example/bills$
GET:shop.example/orders/7$
GET:shop.example/orders/7/items$
POST:shop.example/bills$`,
    },
    async run([list = ''], flags) {
      const catalog = await readCatalog(flags.catalog ?? [], flags);
      const requested = await readScopes(list, 'LIST');
      return expandList(ScopeSet.from(requested), catalog);
    },
  }),
  command({
    name: 'catalog minimize',
    operands: ['LIST'],
    summary: 'finds the smallest list of scopes with the same rights',
    about: `${LIST_HELP}

Drops each scope that another one covers, and sorts the rest. Two lists that allow the same have the
same smallest form.`,
    flags: {},
    json: '[scope]',
    exits: { 0: 'always', 1: INPUT_FAULT },
    example: {
      call: "catalog minimize 'GET:shop.example/orders/7$,*:shop.example/orders/{}$'",
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
  const summary = isKnowable ? catalog.words(explanation.needed)?.summary : undefined;
  return {
    text: columns([
      [title, describeRequest(request)],
      ...rows,
      ...(isKnowable ? catalogRows(explanation, summary) : []),
    ]),
    json: { ...explanation, ...(summary !== undefined && { summary }) },
    isNegative: !explanation.allowed,
  };
}

type Row = readonly [label: string, text: string];
type RefusedExplanation = Extract<ScopeExplanation, { readonly allowed: false }>;

function reasonOf({ reason }: RefusedExplanation): string {
  const inWords =
    reason === 'not_covered' ? 'no scope of the list covers it' : REQUEST_REASONS[reason];
  return `${reason}: ${inWords}`;
}

function missRows(explanation: RefusedExplanation): Row[] {
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
    ? 'its {} does not match a segment that the catalog names'
    : `its ${failed} does not match`;
}

function catalogRows(
  explanation: Extract<ScopeExplanation, { readonly known: boolean }>,
  summary: string | undefined,
): Row[] {
  const { known, needed } = explanation;
  const named = summary === undefined ? '' : ` (${summary})`;
  if (known) return [['catalog', `knows it as ${needed}${named}`]];
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
  const notes = `${count(requested.size, 'scope')} requested, ${length} granted${narrowed.size === 0 ? '' : `, ${narrowed.size} of them narrowed`}`;
  return { text: lines.join('\n'), json: expansion, notes };
}
