import { useMemo } from 'preact/hooks';
import { Button } from '../controls/button.tsx';
import { TEXTS } from '../texts.ts';
import { EndpointRow } from './endpoint-row.tsx';
import type { Search } from './search.ts';
import { usePicking } from './state.ts';
import { type Branch, branchesTo, type Entry } from './tree.ts';

/** How many endpoints are shown. Nobody reads more, and rendering them would delay each letter. */
const SHOWN = 60;

/** The endpoints that a search finds, by path. */
export function FoundList({ search, query }: { readonly search: Search; readonly query: string }) {
  const { selection, change } = usePicking();
  const found = useMemo(() => search.find(query), [search, query]);
  const shown = found.slice(0, SHOWN);
  const isAll = found.every((entry) => selection.isTicked(entry));
  const { tickFound, untickFound } = TEXTS.picker;
  return (
    <>
      <div class="found">
        <p role="status">{summaryOf(shown.length, found.length)}</p>
        {found.length > 1 && (
          <Button kind="quiet" onClick={() => change(selection.with(found, !isAll))}>
            {(isAll ? untickFound : tickFound)({ count: found.length })}
          </Button>
        )}
      </div>
      <ul>
        {byBranch(shown).map(([branch, entries]) => (
          <li key={branch.index}>
            <EndpointRow entries={entries} branches={branchesTo(branch)} />
          </li>
        ))}
      </ul>
    </>
  );
}

function summaryOf(shown: number, total: number): string {
  if (total === 0) return TEXTS.picker.foundNone;
  return shown === total
    ? TEXTS.picker.found({ count: total })
    : TEXTS.picker.foundSome({ shown, count: total });
}

function byBranch(entries: readonly Entry[]): readonly (readonly [Branch, readonly Entry[]])[] {
  return [...Map.groupBy(entries, ({ branch }) => branch)];
}
