import { useId, useMemo, useRef, useState } from 'preact/hooks';
import { type RefusedScope, ScopeCatalog } from '../../../../scope/index.ts';
import { Button } from '../controls/button.tsx';
import { TextField } from '../controls/field.tsx';
import { TEXTS } from '../texts.ts';
import { BranchItem, BranchRow } from './branch-row.tsx';
import { Rows, TreeFrame } from './disclosure.tsx';
import { EndpointRow } from './endpoint-row.tsx';
import { selectionOf } from './held.ts';
import { PreviewPanel, problemOf } from './preview.tsx';
import { type Preview, previewOf } from './request.ts';
import { Search } from './search.ts';
import type { Selection } from './selection.ts';
import { type Picking, PickingContext, usePicking } from './state.ts';
import { type Branch, branchesTo, type Entry, type ScopeTree, scopeTree } from './tree.ts';
import { AddScope, OtherScopes, Suggestions, TypedScopes } from './typed-scopes.tsx';

export interface ScopePickerProps {
  /** All that may be picked. */
  readonly catalog: readonly string[];
  /** The scopes that are picked; at first, those that a token holds. */
  readonly scopes: readonly string[];
  /** Gets the fewest scopes for the selection; none while the selection cannot be asked for. */
  readonly onChange: (scopes: readonly string[]) => void;
  readonly label: string;
  readonly error?: string | undefined;
  /** Scopes that the service has refused, with what it suggests. */
  readonly refused?: readonly RefusedScope[];
}

/** Picks scopes from a catalog, as a tree of hosts, paths and methods. */
export function ScopePicker(props: ScopePickerProps) {
  const { catalog: entries, label, error, scopes, onChange, refused = [] } = props;
  const known = useMemo(() => readCatalog(entries), [entries]);
  return (
    <div class="picker-field">
      {known === undefined ? (
        <TypedScopes label={label} error={error} scopes={scopes} onChange={onChange} />
      ) : (
        <Picker {...props} known={known} />
      )}
      {refused.map(({ scope, suggestion, nearest = [] }) => (
        <Suggestions
          key={scope}
          scopes={suggestion === undefined ? nearest : [suggestion, ...nearest]}
          onUse={(better) => onChange(scopes.map((one) => (one === scope ? better : one)))}
        />
      ))}
    </div>
  );
}

interface Known {
  readonly catalog: ScopeCatalog;
  readonly tree: ScopeTree;
  readonly search: Search;
}

/**
 * `undefined` if the entries are not a catalog: a service without one lists scopes with wildcards.
 */
function readCatalog(entries: readonly string[]): Known | undefined {
  try {
    const catalog = ScopeCatalog.from(entries);
    const tree = scopeTree(catalog);
    return { catalog, tree, search: new Search(tree) };
  } catch {
    return undefined;
  }
}

interface Picked {
  readonly selection: Selection;
  readonly preview: Preview;
  /** The scopes that the owner was told. If it passes others, it has changed them. */
  readonly scopes: readonly string[];
}

type PickerProps = ScopePickerProps & { readonly known: Known };

/** What is picked now, and how to pick something else. */
function usePicked({ known, scopes, onChange }: PickerProps) {
  const { catalog, tree } = known;
  // A ref, not a state: scopes that the owner has changed are shown in the same render.
  const picked = useRef<Picked>(undefined);
  const [, setRound] = useState(0);
  if (picked.current === undefined || !isSame(picked.current.scopes, scopes)) {
    const selection = selectionOf(tree, catalog, scopes);
    picked.current = { selection, preview: previewOf(selection, catalog), scopes };
  }
  const change = (next: Selection) => {
    const made = previewOf(next, catalog);
    const requested = made.ok ? made.requested : [];
    picked.current = { selection: next, preview: made, scopes: requested };
    setRound((round) => round + 1);
    onChange(requested);
  };
  return { ...picked.current, change };
}

function Picker(props: PickerProps) {
  const { known, label } = props;
  const { catalog, tree } = known;
  const id = useId();
  const { selection, preview, change } = usePicked(props);
  // The owner knows only that there are no scopes, not why.
  const error = props.error && (problemOf(selection, preview) ?? props.error);
  const [open, setOpen] = useState(() => openAtFirst(tree, selection));
  const picking: Picking = {
    selection,
    change,
    open,
    toggle: (branch) => {
      const next = new Set(open);
      if (!next.delete(branch)) next.add(branch);
      setOpen(next);
    },
  };
  return (
    <PickingContext.Provider value={picking}>
      <fieldset class="picker" aria-describedby={error && id} data-invalid={error !== undefined}>
        <legend>{label}</legend>
        {error && (
          <p class="error" id={id}>
            {error}
          </p>
        )}
        <div class="picker-body">
          <div class="picker-choice">
            <Endpoints tree={tree} search={known.search} />
            <OtherScopes />
            <AddScope
              catalog={catalog}
              onAdd={(scope) => {
                const asked = preview.ok ? preview.requested : selection.others;
                change(selectionOf(tree, catalog, [...asked, scope]));
              }}
            />
          </div>
          <PreviewPanel selection={selection} preview={preview} />
        </div>
      </fieldset>
    </PickingContext.Provider>
  );
}

interface EndpointsProps {
  readonly tree: ScopeTree;
  readonly search: Search;
}

/** The tree, or what a search finds. */
function Endpoints({ tree, search }: EndpointsProps) {
  const [query, setQuery] = useState('');
  const { root } = tree;
  return (
    <>
      <TextField
        type="search"
        label={TEXTS.picker.search}
        hint={TEXTS.picker.searchHint}
        value={query}
        onChange={setQuery}
      />
      <TreeFrame>
        {query.trim() !== '' ? (
          <FoundList search={search} query={query} />
        ) : (
          <>
            {root.children.length > 1 && <BranchRow branch={root} chain={[]} />}
            <Rows items={root.children} label={TEXTS.picker.tree}>
              {(branch) => <BranchItem key={branch.index} branch={branch} />}
            </Rows>
          </>
        )}
      </TreeFrame>
    </>
  );
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((scope, index) => scope === b[index]));
}

/** How many rows may be open at first. */
const OPEN_ROWS = 30;

/** Opens a small tree as a whole; in a large one, a single host and partly selected branches. */
function openAtFirst(tree: ScopeTree, selection: Selection): ReadonlySet<Branch> {
  if (tree.branches.length <= OPEN_ROWS) return new Set(tree.branches);
  const hosts = tree.root.children.length === 1 ? tree.root.children : [];
  const partly = tree.branches.filter((branch) => selection.extentOf(branch) === 'some');
  const rows = partly.reduce((sum, { children }) => sum + children.length, 0);
  return new Set(rows <= OPEN_ROWS ? [...hosts, ...partly] : hosts);
}

/** How many endpoints are shown. Nobody reads more, and rendering them would delay each letter. */
const SHOWN = 60;

/** The endpoints that a search finds, by path. */
function FoundList({ search, query }: { readonly search: Search; readonly query: string }) {
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
