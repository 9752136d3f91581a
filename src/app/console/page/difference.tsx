import { useMemo } from 'preact/hooks';
import { ScopeSet } from '../../../scope/index.ts';
import { useConsole } from './context.ts';
import { useLoaded } from './loading.ts';
import { Rights } from './picker/rights.ts';
import { TEXTS } from './texts.ts';
import { type Summaries, useSummaries } from './words.tsx';

export interface DifferenceProps {
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** Shows what one list of scopes allows and the other does not; nothing if they allow the same. */
export function Difference({ before, after }: DifferenceProps) {
  const { choices } = useConsole();
  const loaded = useLoaded('choices', choices);
  const entries = loaded.state === 'ready' ? loaded.value.scopes : undefined;
  const known = useMemo(
    () => entries && ScopeSet.from(entries.map(({ scope }) => scope)),
    [entries],
  );
  const [held, next] = [new Rights(before, known), new Rights(after, known)];
  const [added, removed] = [held.missing(next), next.missing(held)];
  return (
    <>
      {added.length > 0 && (
        <ScopeList
          title={TEXTS.difference.added({ count: added.length })}
          kind="added"
          scopes={added}
        />
      )}
      {removed.length > 0 && (
        <ScopeList
          title={TEXTS.difference.removed({ count: removed.length })}
          kind="removed"
          scopes={removed}
        />
      )}
    </>
  );
}

export interface ScopeListProps {
  readonly title: string;
  readonly kind: 'added' | 'removed' | 'kept';
  readonly scopes: readonly string[];
}

/** A list of scopes with a sign before each, so that people need not see its color. */
export function ScopeList({ title, kind, scopes }: ScopeListProps) {
  const summaryOf = useSummaries();
  return (
    <section class={`scopes ${kind}`}>
      <h3>{title}</h3>
      {/* A long list scrolls, also by the keyboard. */}
      <ul tabIndex={scopes.length > 8 ? 0 : undefined} aria-label={title}>
        {scopes.map((scope) => (
          <li key={scope}>
            <ScopeWords scope={scope} summaryOf={summaryOf} />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface ScopeWordsProps {
  readonly scope: string;
  readonly summaryOf: Summaries;
}

/** What a scope does, if the catalog says so, and the scope. */
function ScopeWords({ scope, summaryOf }: ScopeWordsProps) {
  const summary = summaryOf(scope);
  return (
    <>
      {summary !== undefined && (
        <>
          <bdi>{summary}</bdi>{' '}
        </>
      )}
      <code dir="ltr">{scope}</code>
    </>
  );
}
