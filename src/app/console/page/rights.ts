import type { WirePermission, WireUsage } from '../../../http/wire.ts';
import { describeScopes, lineOf } from '../../../scope/describe.ts';
import { parseScope, type Scope } from '../../../scope/index.ts';
import type { Question } from './api.ts';
import { barePathOf, isOpenScope, isReading } from './picker/tree.ts';
import { LANGUAGE, TEXTS } from './texts.ts';

/** What scopes allow, in one line: `12 endpoints of api.acme.example, read-only`. */
export function summaryOf(scopes: readonly string[]): string {
  // A revoked token keeps none.
  if (scopes.length === 0) return TEXTS.rights.none;
  const parsed = scopes.map((scope) => parseScope(scope));
  const hosts = new Set(parsed.map(({ domain }) => domain));
  const [host = ''] = hosts;
  const endpoints = TEXTS.rights.endpoints({ count: endpointsOf(parsed) });
  const where =
    hosts.size === 1
      ? TEXTS.rights.ofHost({ endpoints, host })
      : TEXTS.rights.ofHosts({ endpoints, count: hosts.size });
  const methods = methodsOf(parsed);
  return LANGUAGE.lists.format(methods === '' ? [where] : [where, methods]);
}

/**
 * What scopes allow, in one line and in words: `Issues: read · 3 single endpoints`. If they hold no
 * permission, their number as {@link summaryOf} says it.
 */
export function rightsLine(
  scopes: readonly string[],
  permissions: readonly WirePermission[],
): string {
  const held = describeScopes(scopes, { permissions: () => permissions });
  if (held.permissions.length === 0) return summaryOf(scopes);
  const { levels, permission, permissions: counted, single, wildcards } = TEXTS.rights;
  return lineOf(held, {
    permission: ({ name, level }) => permission({ name, level: levels[level] }),
    permissions: (count, level) => counted({ count, level: levels[level] }),
    wildcards: (count) => wildcards({ count }),
    single: (count) => single({ count }),
  });
}

/** Counts each scope once, even if it is listed twice. */
function endpointsOf(scopes: readonly Scope[]): number {
  return new Set(scopes.map(String)).size;
}

function methodsOf(scopes: readonly Scope[]): string {
  if (scopes.every((scope) => isReading({ scope }))) return TEXTS.rights.readOnly;
  return scopes.every(({ method }) => method === '*') ? TEXTS.rights.everyMethod : '';
}

/** One method at a path, with its use; `undefined` if use is not recorded. */
export interface RightLeaf {
  readonly scope: string;
  /** What it does, if the catalog says so. */
  readonly summary: string | undefined;
  readonly method: string;
  /** Whether it allows everything below its path, too. */
  readonly isOpen: boolean;
  readonly uses: number | undefined;
  readonly lastUsed: number | null | undefined;
}

interface RightPath {
  readonly path: string;
  readonly leaves: readonly RightLeaf[];
}

export interface RightHost {
  readonly host: string;
  readonly paths: readonly RightPath[];
  readonly uses: number | undefined;
  readonly count: number;
}

/** What scopes allow: hosts, their paths, and the methods there. */
export function rightsTree(
  scopes: readonly string[],
  usage: Pick<WireUsage, 'scopes'> | undefined,
  summaryOf: (scope: string) => string | undefined = () => undefined,
): readonly RightHost[] {
  const uses = new Map(usage?.scopes.map((used) => [used.scope, used]));
  const hosts = new Map<string, Map<string, RightLeaf[]>>();
  for (const scope of scopes) {
    const parsed = parseScope(scope);
    const { method, domain } = parsed;
    const used = uses.get(scope);
    const paths = hosts.get(domain) ?? new Map<string, RightLeaf[]>();
    hosts.set(domain, paths);
    const isOpen = isOpenScope(parsed);
    const path = barePathOf(parsed);
    const leaves = paths.get(path) ?? [];
    paths.set(path, leaves);
    const summary = summaryOf(scope);
    leaves.push({ scope, summary, method, isOpen, uses: used?.uses, lastUsed: used?.lastUsed });
  }
  return [...hosts].sort(byName).map(([host, paths]) => {
    const all = [...paths].sort(byName).map(([path, leaves]) => ({ path: `/${path}`, leaves }));
    const leaves = all.flatMap((each) => each.leaves);
    const count = leaves.length;
    const sum = leaves.reduce((total, leaf) => total + (leaf.uses ?? 0), 0);
    return { host, paths: all, count, uses: usage === undefined ? undefined : sum };
  });
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

/**
 * Splits an address as people copy it, `https://api.example/orders/7?x=1`, into host and target.
 * The target stays exactly as it was typed: a URL parser would hide parts that servers may read
 * differently.
 */
export function readAddress(text: string): Omit<Question, 'method'> | undefined {
  const [, host = '', target = ''] =
    /^(?:https?:\/\/)?([^/?#\s@:]+)(?::\d+)?([/?][^#\s]*)?(?:#\S*)?$/i.exec(text.trim()) ?? [];
  const domain = host.toLowerCase();
  if (domain === '') return undefined;
  return { domain, target: target.startsWith('/') ? target : `/${target}` };
}
