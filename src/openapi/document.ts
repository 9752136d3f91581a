import { getOrMake } from '../scope/collections.ts';
import { isMethodName } from '../scope/grammar.ts';
import { plainText } from '../scope/words.ts';
import type { DescribedTag, OpenApiOperation } from './entries.ts';
import { isObject, member } from './json.ts';
import { quote, type Result } from './problems.ts';
import {
  type DocumentContext,
  type Node,
  type NodeKind,
  type Nodes,
  References,
} from './references.ts';
import { derivePath, parameterNames, readXScope, variantsOf } from './scope-path.ts';
import { Servers } from './servers.ts';

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace', 'query'];

/** An extension of Amazon's API Gateway: all methods that the path item does not have itself. */
const ANY_METHOD = 'x-amazon-apigateway-any-method';
const ANY = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'];

/** The members of a path item that are read or mean nothing here (OpenAPI 3.2.0 section 4.9). */
const ITEM_MEMBERS = [
  ...METHODS,
  'additionalOperations',
  'servers',
  'parameters',
  '$ref',
  'summary',
  'description',
  ANY_METHOD,
];

/** Members that are looked at for each path item. There are only more if many of them are a problem. */
const MAX_ITEM_MEMBERS = 2 * ITEM_MEMBERS.length;

const PATHS: NodeKind = { name: '"paths"' };
const PATH_ITEM: NodeKind = {
  name: 'a path item',
  // Known ones first, since there is a bound. Others may be methods in upper case, or misspelled ones.
  members: (item) => {
    const others = Object.entries(item).filter(([name, value]) => isLikeMethod(name, value));
    const names = [...ITEM_MEMBERS, ...others.map(([name]) => name)];
    return names.slice(0, MAX_ITEM_MEMBERS);
  },
  home: {
    pointer: /^\/(?:paths|components\/pathItems)\/[^/]*$/,
    examples: '"#/paths/~1orders" or "#/components/pathItems/orders"',
  },
};
const OPERATION: NodeKind = {
  name: 'an operation',
  members: ['x-scope', 'servers', 'deprecated', 'operationId', 'parameters', 'summary', 'tags'],
};

/** Whether an unknown member of a path item may be meant as an operation. */
function isLikeMethod(name: string, value: unknown): boolean {
  if (ITEM_MEMBERS.includes(name) || name.startsWith('x-') || name === '<<') return false;
  return isObject(value) || METHODS.includes(name.toLowerCase());
}

/** Yields every operation of a document with each scope that its servers give it; pairs may repeat. */
export async function* operationsOf(
  context: DocumentContext,
  index: number,
): AsyncGenerator<readonly [scope: string, operation: OpenApiOperation]> {
  const { name, settings, problems, budget } = context;
  const references = new References(context);
  const servers = new Servers(context, references);
  const parameters = new Parameters(references);
  // Few tags and names of parameters come again and again, and a catalog keeps them.
  const texts = new Map<string, string>();
  const shared = (text: string): string => getOrMake(texts, text, () => text);
  for (const [path, node] of await pathsOf(context, references)) {
    const itemLocation = `${name}, path ${quote(path)}`;
    const item = await references.members(node, itemLocation, PATH_ITEM);
    for (const [method, described] of methodsOf(context, item, itemLocation)) {
      const location = `${name}, ${method} ${quote(path)}`;
      const operation = await references.members(described, location, OPERATION);
      const found = await servers.of(operation, location, item, itemLocation);
      if (found.length === 0 && settings.skip) problems.add(location, 'has no server that is read');
      // An operation without a server takes as long as one with a server.
      budget.spend('operations', location, Math.max(1, found.length));
      const about = { document: index, method, path, ...wordsOf(operation, item, shared) };
      const xScope = operation.get('x-scope')?.value;
      const pattern = await parameters.patternsOf(operation, item);
      const pathsAt = (base: string): readonly ScopePath[] =>
        xScope === undefined
          ? variantsOf(path).map((one) => ({
              read: derivePath(base, one, pattern, settings),
              names: parameterNames(base + one, pattern),
            }))
          : [{ read: readXScope(xScope), names: parameterNames(String(xScope), pattern) }];
      // Servers mostly share their base path.
      const byBase = new Map<string, readonly ScopePath[]>();
      for (const { host, base } of found) {
        for (const { read, names } of getOrMake(byBase, base, () => pathsAt(base))) {
          if (!read.ok) problems.add(location, read.problem);
          else {
            // The path may end before a template.
            const segments = names.slice(0, read.value.split('{}').length - 1).map(shared);
            const named = segments.length > 0 && { segments };
            yield [`${method}:${host}/${read.value}`, { ...about, ...named }];
          }
        }
      }
    }
  }
}

/** The path of a scope, and the names of the parameters of the path that it was made of. */
interface ScopePath {
  readonly read: Result<string>;
  readonly names: readonly string[];
}

/** What people call an operation. A path item may have a summary for all of its operations. */
function wordsOf(operation: Nodes, item: Nodes, shared: (text: string) => string) {
  const textOf = (name: string, nodes = operation) => plainText(nodes.get(name)?.value);
  const tags = operation.get('tags')?.value;
  const tag = Array.isArray(tags) ? plainText(tags[0]) : undefined;
  return {
    operationId: textOf('operationId'),
    summary: textOf('summary') ?? textOf('summary', item),
    tag: tag && shared(tag),
    deprecated: operation.get('deprecated')?.value === true,
  };
}

/** The tags that a document describes, in its order. */
export function tagsOf(root: unknown): readonly DescribedTag[] {
  const tags = member(root, 'tags');
  return (Array.isArray(tags) ? tags : []).flatMap((value) => {
    const tag = plainText(member(value, 'name'));
    return tag === undefined ? [] : { tag, description: plainText(member(value, 'description')) };
  });
}

async function pathsOf(
  { source, version, name, problems }: DocumentContext,
  references: References,
): Promise<(readonly [string, Node])[]> {
  if (version === undefined) {
    problems.addForDocument(
      name,
      'is not an OpenAPI document; it must have "openapi": "3.0", "3.1" or "3.2", or "swagger": "2.0"',
    );
    return [];
  }
  // Microsoft's extension has the paths that differ in their query alone.
  const more = member(source.root, 'x-ms-paths');
  const paths = member(source.root, 'paths');
  const isOptional = version === '3.1' || version === '3.2';
  const lists = [
    ...(paths === undefined && isOptional ? [] : [paths]),
    ...(more === undefined ? [] : [more]),
  ];
  const members = await Promise.all(
    lists.map((value) => references.members({ value, source }, name, PATHS)),
  );
  return members
    .flatMap((one) => [...one])
    .filter(([path]) => !path.startsWith('x-') && path !== '$ref');
}

function* methodsOf(
  { problems }: DocumentContext,
  item: Nodes,
  location: string,
): Generator<readonly [method: string, operation: Node]> {
  const found = new Set<string>();
  for (const [name, node] of item) {
    const method = name.toLowerCase();
    if (METHODS.includes(method)) {
      if (found.has(method)) problems.add(location, `the method ${quote(method)} is there twice`);
      else yield [method.toUpperCase(), node];
      found.add(method);
    } else if (!ITEM_MEMBERS.includes(name)) {
      problems.add(location, `${quote(name)} is not a method; there are ${METHODS.join(', ')}`);
    }
  }
  const any = item.get(ANY_METHOD);
  for (const method of any === undefined ? [] : ANY) {
    if (!found.has(method)) yield [method.toUpperCase(), any as Node];
  }
  const more = item.get('additionalOperations');
  if (more === undefined) return;
  if (!isObject(more.value)) problems.add(location, '"additionalOperations" must be an object');
  for (const [method, value] of isObject(more.value) ? Object.entries(more.value) : []) {
    if (isMethodName(method)) yield [method, { value, source: more.source }];
    else {
      const shown = quote(method);
      problems.add(location, `the method ${shown} must be a name in upper case, as "GET"`);
    }
  }
}

const PARAMETER: NodeKind = {
  name: 'a parameter',
  members: ['name', 'in', 'pattern', 'schema'],
  isOptional: true,
};

/** Reads the patterns of path parameters. Reads each list once, however many operations share it. */
class Parameters {
  readonly #references: References;
  readonly #byList = new Map<unknown, Promise<ReadonlyMap<string, string>>>();

  constructor(references: References) {
    this.#references = references;
  }

  /** Finds the pattern of a parameter by its name; the operation's own come before the path item's. */
  async patternsOf(operation: Nodes, item: Nodes): Promise<(name: string) => string | undefined> {
    const own = await this.#read(operation.get('parameters'));
    const shared = await this.#read(item.get('parameters'));
    return (name) => own.get(name) ?? shared.get(name);
  }

  #read(list: Node | undefined): Promise<ReadonlyMap<string, string>> {
    return getOrMake(this.#byList, list?.value, async () => {
      const patterns = new Map<string, string>();
      if (list === undefined || !Array.isArray(list.value)) return patterns;
      for (const value of list.value) {
        const start = { value, source: list.source };
        const parameter = await this.#references.members(start, '', PARAMETER);
        const name = parameter.get('name')?.value;
        // Swagger 2.0 has the pattern on the parameter, later versions in its schema.
        const pattern =
          parameter.get('pattern')?.value ?? member(parameter.get('schema')?.value, 'pattern');
        if (parameter.get('in')?.value !== 'path') continue;
        if (typeof name === 'string' && typeof pattern === 'string') patterns.set(name, pattern);
      }
      return patterns;
    });
  }
}
