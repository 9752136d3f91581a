import { useMemo } from 'preact/hooks';
import { covers, parseScope, type Scope } from '../../../scope/index.ts';
import type { Choices } from './api.ts';
import { useConsole } from './context.ts';
import { useLoaded } from './loading.ts';
import { rightsLine } from './rights.ts';

/** What scopes allow, in one line. */
export function MayDo({ scopes }: { readonly scopes: readonly string[] }) {
  const { permissions } = useKnownWords();
  return permissions ? <RightsLine scopes={scopes} permissions={permissions} /> : null;
}

export interface RightsLineProps extends Pick<Choices, 'permissions'> {
  readonly scopes: readonly string[];
}

/** As {@link MayDo}, for a list: made again only for other scopes. */
export function RightsLine({ scopes, permissions }: RightsLineProps) {
  return <>{useMemo(() => rightsLine(scopes, permissions), [scopes, permissions])}</>;
}

/**
 * The words of the account's catalog. Without `permissions` they are still being read; if that fails, there are
 * none.
 */
export function useKnownWords(): Partial<Pick<Choices, 'scopes' | 'permissions'>> {
  const { choices } = useConsole();
  const loaded = useLoaded('choices', choices);
  if (loaded.state === 'ready') return loaded.value;
  return loaded.state === 'failed' ? NO_WORDS : {};
}

const NO_WORDS = { scopes: [], permissions: [] };

/** What the catalog says that a scope does; `undefined` if it says nothing. */
export type Summaries = (scope: string) => string | undefined;

/** Made once for the choices of an account. */
const summaries = new WeakMap<object, Summaries>();

/** The summaries of the account's catalog, also for scopes that are parts of its entries. */
export function useSummaries(): Summaries {
  const { scopes = NO_WORDS.scopes } = useKnownWords();
  const known = summaries.get(scopes) ?? summariesOf(scopes);
  summaries.set(scopes, known);
  return known;
}

function summariesOf(details: Choices['scopes']): Summaries {
  const known = new Map<string, string | undefined>();
  const entries: (readonly [Scope, string])[] = [];
  for (const { scope, summary } of details) {
    if (summary === undefined) continue;
    known.set(scope, summary);
    entries.push([parseScope(scope), summary]);
  }
  return (scope) => {
    if (entries.length > 0 && !known.has(scope)) {
      const parsed = parseScope(scope);
      known.set(scope, entries.find(([entry]) => covers(entry, parsed))?.[1]);
    }
    return known.get(scope);
  };
}
