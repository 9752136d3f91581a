import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { TEXTS } from '../texts.ts';
import { BranchPath, pathText } from './branch-path.tsx';
import { Rows, Twisty } from './disclosure.tsx';
import { EndpointRow } from './endpoint-row.tsx';
import { entriesOf, isReadOnly } from './selection.ts';
import { usePicking } from './state.ts';
import { type Branch, chainOf, isReading } from './tree.ts';

/**
 * A branch in a list: its endpoints, or a row that opens. A closed row renders nothing below it.
 */
export function BranchItem({ branch }: { readonly branch: Branch }) {
  const { open } = usePicking();
  const chain = chainOf(branch);
  const last = chain.at(-1) as Branch;
  if (last.children.length === 0) {
    return (
      <li>
        <EndpointRow entries={last.entries} branches={chain} />
      </li>
    );
  }
  return (
    <li>
      <BranchRow branch={last} chain={chain} />
      {open.has(last) && <Below branch={last} />}
    </li>
  );
}

function Below({ branch }: { readonly branch: Branch }) {
  return (
    <div class="below">
      {branch.entries.length > 0 && <EndpointRow entries={branch.entries} branches={[]} />}
      <Rows items={branch.children}>
        {(child) => <BranchItem key={child.index} branch={child} />}
      </Rows>
    </div>
  );
}

export interface BranchRowProps {
  readonly branch: Branch;
  /** The branches of the path that the row shows; none for the root. */
  readonly chain: readonly Branch[];
}

/** The row of a branch: its checkbox, its path, how much is selected, and the read-only switch. */
export function BranchRow({ branch, chain }: BranchRowProps) {
  const { selection, change, open, toggle } = usePicking();
  const id = useId();
  const box = useRef<HTMLInputElement>(null);
  const extent = selection.extentOf(branch);
  const path = pathText(branch);
  // After each render, because a click resets `indeterminate`.
  useLayoutEffect(() => {
    if (box.current !== null) box.current.indeterminate = extent === 'some';
  });
  const all = branch.end - branch.start;
  return (
    <div class={`row ${branch.depth < 2 ? 'host' : ''}`} data-row>
      {chain.length > 0 && (
        <Twisty label={path} isOpen={open.has(branch)} onToggle={() => toggle(branch)} />
      )}
      <input
        ref={box}
        id={id}
        type="checkbox"
        checked={extent === 'all'}
        aria-label={TEXTS.picker.below({ path })}
        onChange={() => change(selection.withAll(branch, extent !== 'all'))}
      />
      {chain.length > 0 ? (
        <BranchPath branches={chain} labelFor={id} />
      ) : (
        <label class="path" for={id}>
          {path}
        </label>
      )}
      <span class="tail">
        <span class="count">
          {extent === 'none'
            ? TEXTS.picker.count({ count: all })
            : TEXTS.picker.countOf({ count: selection.count(branch), all })}
        </span>
        <ReadOnlySwitch branch={branch} label={path} />
      </span>
    </div>
  );
}

/** Shown only if there is a choice: the branch has endpoints that only read, and others. */
function ReadOnlySwitch({ branch, label }: { readonly branch: Branch; readonly label: string }) {
  const { selection, change } = usePicking();
  const entries = entriesOf(selection.tree, branch);
  if (entries.every(isReading) || !entries.some(isReading)) return null;
  const isOn = isReadOnly(selection, branch);
  return (
    <button
      type="button"
      class="switch"
      aria-pressed={isOn}
      aria-label={TEXTS.picker.readOnlyOf({ path: label })}
      onClick={() =>
        change(isOn ? selection.withAll(branch, false) : selection.withReading(branch))
      }
    >
      {TEXTS.picker.readOnly}
    </button>
  );
}
