import { useId } from 'preact/hooks';
import { TEXTS } from '../texts.ts';
import { BranchPath, pathText } from './branch-path.tsx';
import { usePicking } from './state.ts';
import { type Branch, branchesTo, type Entry, isOpenScope, isReading } from './tree.ts';

export interface EndpointRowProps {
  /** All of them are at one path. */
  readonly entries: readonly Entry[];
  /** The part of the path that is shown; none for endpoints at the path of the branch above. */
  readonly branches: readonly Branch[];
}

/** The endpoints at one path: a checkbox for each method. */
export function EndpointRow({ entries, branches }: EndpointRowProps) {
  return (
    <div class="row leaf" data-row>
      {branches.length === 0 ? (
        <span class="path quiet">{TEXTS.picker.thisPath}</span>
      ) : (
        <BranchPath branches={branches} />
      )}
      <span class="methods">
        {entries.map((entry) => (
          <MethodBox key={entry.index} entry={entry} />
        ))}
      </span>
    </div>
  );
}

function MethodBox({ entry }: { readonly entry: Entry }) {
  const { selection, change } = usePicking();
  const id = useId();
  const { scope } = entry;
  const includedBy = selection.includedBy(entry);
  const isOpen = isOpenScope(scope);
  return (
    <span class="method-box">
      <label class={`method ${isReading(entry) ? 'reading' : 'writing'}`}>
        <input
          type="checkbox"
          checked={selection.isSelected(entry)}
          disabled={includedBy !== undefined}
          aria-label={labelOf(entry, isOpen)}
          aria-describedby={includedBy && id}
          onChange={({ currentTarget }) => change(selection.with([entry], currentTarget.checked))}
        />
        {scope.method}
        {isOpen && <span class="quiet"> /…</span>}
      </label>
      {includedBy && (
        <span class="quiet" id={id}>
          {TEXTS.picker.includedBy({ scope: includedBy.toString() })}
        </span>
      )}
    </span>
  );
}

/** Names the host too: a screen reader reads a box without the branches around it. */
function labelOf({ scope, branch }: Entry, isOpen: boolean): string {
  const [host] = branchesTo(branch);
  const path = branch === host ? TEXTS.picker.root : pathText(branch);
  const label = `${scope.method} ${path} (${host?.text})`;
  return isOpen ? TEXTS.picker.below({ path: label }) : label;
}
