import type { WireUsage } from '../../../http/wire-reports.ts';
import { parseScope } from '../../../scope/index.ts';
import { barePathOf, isOpenScope } from './picker/tree.ts';

/** One method at a path, with its use; `undefined` if use is not recorded. */
export interface RightLeaf {
  readonly scope: string;
  readonly method: string;
  /** Whether it allows everything below its path, too. */
  readonly isOpen: boolean;
  readonly uses: number | undefined;
  readonly lastUsed: number | null | undefined;
}

export interface RightPath {
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
    leaves.push({ scope, method, isOpen, uses: used?.uses, lastUsed: used?.lastUsed });
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
