import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { safeParseScope } from '../../../scope/grammar.ts';
import { TEXTS } from '../texts.ts';
import { pathText } from './branch-path.tsx';
import { Rows, TreeFrame, Twisty } from './disclosure.tsx';
import { type Branch, chainOf, type Entry, isReading, scopeTree } from './tree.ts';

export interface ScopeTreeViewProps {
  readonly scopes: readonly string[];
  readonly label: string;
  /** What is said beside a scope, such as how often it was used. */
  readonly annotate?: (scope: string) => ComponentChildren;
}

/** Branches up to which all of a tree is open at first. */
const OPEN_BRANCHES = 60;

/** Scopes as a tree of hosts, paths and methods, to look at. Leaves out texts that are no scopes. */
export function ScopeTreeView({ scopes, label, annotate }: ScopeTreeViewProps) {
  const tree = useMemo(() => {
    const readings = scopes.map((scope) => safeParseScope(scope));
    return scopeTree(readings.flatMap((reading) => (reading.ok ? reading.scope : [])));
  }, [scopes]);
  const isSmall = tree.branches.length <= OPEN_BRANCHES;
  return (
    <TreeFrame>
      <Rows items={tree.root.children} label={label}>
        {(branch) => (
          <ShownBranch key={branch.index} branch={branch} isOpen={isSmall} annotate={annotate} />
        )}
      </Rows>
    </TreeFrame>
  );
}

interface ShownBranchProps {
  readonly branch: Branch;
  readonly isOpen: boolean;
  readonly annotate: ScopeTreeViewProps['annotate'];
}

function ShownBranch({ branch, isOpen: isOpenAtFirst, annotate }: ShownBranchProps) {
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  const chain = chainOf(branch);
  const last = chain.at(-1) as Branch;
  const path = <ShownPath branches={chain} />;
  if (last.children.length === 0) {
    return (
      <li>
        <ShownEntries entries={last.entries} path={path} annotate={annotate} />
      </li>
    );
  }
  return (
    <li>
      <div class={`row ${last.depth < 2 ? 'host' : ''}`} data-row>
        <Twisty label={pathText(last)} isOpen={isOpen} onToggle={() => setOpen(!isOpen)} />
        {path}
        <span class="tail count">{TEXTS.picker.count(last.end - last.start)}</span>
      </div>
      {isOpen && (
        <div class="below">
          {last.entries.length > 0 && (
            <ShownEntries
              entries={last.entries}
              path={<span class="path quiet">{TEXTS.picker.thisPath}</span>}
              annotate={annotate}
            />
          )}
          <Rows items={last.children}>
            {(child) => (
              <ShownBranch
                key={child.index}
                branch={child}
                isOpen={isOpenAtFirst}
                annotate={annotate}
              />
            )}
          </Rows>
        </div>
      )}
    </li>
  );
}

function ShownPath({ branches }: { readonly branches: readonly Branch[] }) {
  return (
    <span class="path" dir="ltr">
      {branches.map(({ text }) => text).join(' / ')}
    </span>
  );
}

interface ShownEntriesProps {
  readonly entries: readonly Entry[];
  readonly path: ComponentChildren;
  readonly annotate: ScopeTreeViewProps['annotate'];
}

/** The scopes at one path, each in a row with what is said about it. */
function ShownEntries({ entries, path, annotate }: ShownEntriesProps) {
  return (
    <>
      {entries.map((entry) => (
        <div class="row leaf" key={entry.index}>
          {path}
          <span class={`method ${isReading(entry) ? 'reading' : 'writing'}`}>
            {entry.scope.method}
            {!entry.scope.path.endsWith('$') && <span class="quiet"> /…</span>}
          </span>
          {annotate && <span class="note">{annotate(entry.scope.toString())}</span>}
        </div>
      ))}
    </>
  );
}
