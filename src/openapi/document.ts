import { isMethodName } from '../scope/grammar.ts';
import type { OpenApiOperation } from './entries.ts';
import { isObject, member } from './json.ts';
import { quote } from './problems.ts';
import {
  type DocumentContext,
  type Node,
  type NodeKind,
  type Nodes,
  References,
} from './references.ts';
import { derivePath, readXScope } from './scope-path.ts';
import { Servers } from './servers.ts';

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

const PATHS: NodeKind = { name: '"paths"' };
const PATH_ITEM: NodeKind = {
  name: 'a path item',
  members: [...METHODS, 'query', 'additionalOperations', 'servers'],
  home: {
    pointer: /^\/(?:paths|components\/pathItems)\/[^/]*$/,
    examples: '"#/paths/~1orders" or "#/components/pathItems/orders"',
  },
};
const OPERATION: NodeKind = {
  name: 'an operation',
  members: ['x-scope', 'servers', 'deprecated', 'operationId'],
};

/** Yields every operation of a document with each scope that its servers give it; pairs may repeat. */
export async function* operationsOf(
  context: DocumentContext,
  index: number,
): AsyncGenerator<readonly [scope: string, operation: OpenApiOperation]> {
  const { name, settings, problems, budget } = context;
  const references = new References(context);
  const servers = new Servers(context, references);
  for (const [path, node] of await pathsOf(context, references)) {
    const itemLocation = `${name}, path ${quote(path)}`;
    const item = await references.members(node, itemLocation, PATH_ITEM);
    for (const [method, described] of methodsOf(context, item, itemLocation)) {
      const location = `${name}, ${method} ${quote(path)}`;
      const operation = await references.members(described, location, OPERATION);
      const found = await servers.of(operation, location, item, itemLocation);
      // An operation without a server takes as long as one with a server.
      budget.spend('operations', location, Math.max(1, found.length));
      const id = operation.get('operationId')?.value;
      const about = {
        document: index,
        method,
        path,
        ...(typeof id === 'string' && { operationId: id }),
        deprecated: operation.get('deprecated')?.value === true,
      };
      const xScope = operation.get('x-scope')?.value;
      for (const { host, base } of found) {
        const read = xScope === undefined ? derivePath(base, path, settings) : readXScope(xScope);
        if (read.ok) yield [`${method}:${host}/${read.value}`, about];
        else problems.add(location, read.problem);
      }
    }
  }
}

async function pathsOf(
  { source, version, name, problems }: DocumentContext,
  references: References,
): Promise<(readonly [string, Node])[]> {
  if (version === undefined) {
    problems.add(
      name,
      'is not an OpenAPI document; it must have "openapi": "3.0", "3.1" or "3.2", or "swagger": "2.0"',
    );
    return [];
  }
  const paths = member(source.root, 'paths');
  const isOptional = version === '3.1' || version === '3.2';
  if (paths === undefined && isOptional) return [];
  const members = await references.members({ value: paths, source }, name, PATHS);
  return [...members].filter(([path]) => !path.startsWith('x-') && path !== '$ref');
}

function* methodsOf(
  { version, problems }: DocumentContext,
  item: Nodes,
  location: string,
): Generator<readonly [method: string, operation: Node]> {
  const hasMore = version === '3.2';
  for (const method of hasMore ? [...METHODS, 'query'] : METHODS) {
    const node = item.get(method);
    if (node !== undefined) yield [method.toUpperCase(), node];
  }
  const { value, source } = item.get('additionalOperations') ?? {};
  if (!hasMore || source === undefined || !isObject(value)) return;
  for (const [method, operation] of Object.entries(value)) {
    if (isMethodName(method)) yield [method, { value: operation, source }];
    else {
      const shown = quote(method);
      problems.add(location, `the method ${shown} must be a name in upper case, as "GET"`);
    }
  }
}
