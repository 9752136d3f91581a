import { useId, useMemo, useRef, useState } from 'preact/hooks';
import type { RefusedScope, ScopeCatalog } from '../../../../scope/index.ts';
import { Search } from '../../../../scope/search.ts';
import type { Choices } from '../api.ts';
import { Button } from '../controls/button.tsx';
import { ChoiceField, TextField } from '../controls/field.tsx';
import { TEXTS } from '../texts.ts';
import { BranchItem, BranchRow } from './branch-row.tsx';
import { catalogOf } from './choices.ts';
import { Rows, TreeFrame } from './disclosure.tsx';
import { EndpointRow } from './endpoint-row.tsx';
import { selectionOf } from './held.ts';
import { PreviewPanel, problemOf } from './preview.tsx';
import { type Preview, previewOf } from './request.ts';
import { EndpointLine, OnlyThisResource, ResourceList } from './resource-rows.tsx';
import { type Resource, resourcesOf } from './resources.ts';
import type { Selection } from './selection.ts';
import { type Picking, PickingContext, usePicking } from './state.ts';
import { type Branch, branchesTo, type Entry, type ScopeTree, scopeTree } from './tree.ts';
import { AddScope, OtherScopes, Suggestions, TypedScopes } from './typed-scopes.tsx';

export interface ScopePickerProps {
  /** All that may be picked. */
  readonly choices: Choices;
  /** The scopes that are picked; at first, those that a token holds. */
  readonly scopes: readonly string[];
  /** Gets the fewest scopes for the selection; none while the selection cannot be asked for. */
  readonly onChange: (scopes: readonly string[]) => void;
  readonly label: string;
  readonly error?: string | undefined;
  /** Scopes that the service has refused, with what it suggests. */
  readonly refused?: readonly RefusedScope[];
}

/** Picks scopes: by permissions and in words where there are some, and as a tree of hosts, paths and methods. */
export function ScopePicker(props: ScopePickerProps) {
  const { choices, label, error, scopes, onChange, refused = [] } = props;
  const known = useMemo(() => readChoices(choices), [choices]);
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
  readonly search: Search<Entry>;
  /** Empty if nobody has said what the endpoints are called. */
  readonly resources: readonly Resource[];
}

/**
 * `undefined` if the scopes are not a catalog: a service without one lists scopes with wildcards.
 */
function readChoices(choices: Choices): Known | undefined {
  const { scopes, permissions } = choices;
  const catalog = catalogOf(choices);
  if (catalog === undefined) return undefined;
  const words = new Map(scopes.map(({ scope, ...rest }) => [scope, rest]));
  const tree = scopeTree(catalog, (scope) => words.get(scope.toString()) ?? {});
  const hasWords = scopes.some(({ summary, tag }) => summary !== undefined || tag !== undefined);
  const resources = hasWords ? resourcesOf(tree, permissions) : [];
  return { catalog, tree, search: new Search(tree.entries), resources };
}

/** How endpoints are shown. */
type View = 'permissions' | 'endpoints';

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
            <Endpoints known={known} />
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

/** The permissions or the tree, or what a search finds. */
function Endpoints({ known }: { readonly known: Known }) {
  const { tree, search, resources } = known;
  const [query, setQuery] = useState('');
  const [view, setView] = useState<View>(resources.length > 0 ? 'permissions' : 'endpoints');
  const [open, setOpen] = useState<ReadonlySet<Resource>>(new Set());
  const toggle = (resource: Resource) => {
    const next = new Set(open);
    if (!next.delete(resource)) next.add(resource);
    setOpen(next);
  };
  const { root } = tree;
  return (
    <>
      {resources.length > 0 && (
        <ChoiceField
          label={TEXTS.picker.view}
          value={view}
          choices={TEXTS.picker.views}
          onChange={setView}
        />
      )}
      <TextField
        type="search"
        label={TEXTS.picker.search}
        hint={resources.length > 0 ? TEXTS.picker.wordsHint : TEXTS.picker.searchHint}
        value={query}
        onChange={setQuery}
      />
      <TreeFrame>
        {query.trim() !== '' ? (
          <FoundList search={search} query={query} isInWords={resources.length > 0} />
        ) : view === 'permissions' ? (
          <ResourceList resources={resources} open={open} toggle={toggle} />
        ) : (
          <>
            {root.children.length > 1 && <BranchRow branch={root} chain={[]} />}
            <Rows items={root.children} label={TEXTS.picker.tree}>
              {(branch) => <BranchItem key={branch.index} branch={branch} />}
            </Rows>
          </>
        )}
      </TreeFrame>
      {view === 'permissions' && <OnlyThisResource />}
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

interface FoundListProps {
  readonly search: Search<Entry>;
  readonly query: string;
  readonly isInWords: boolean;
}

/** The endpoints that a search finds: in words with the best first, or by path. */
function FoundList({ search, query, isInWords }: FoundListProps) {
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
        {isInWords
          ? shown.map((entry) => (
              <li key={entry.index}>
                <EndpointLine entry={entry} />
              </li>
            ))
          : byBranch(shown).map(([branch, entries]) => (
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
