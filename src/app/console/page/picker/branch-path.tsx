import { Fragment } from 'preact';
import { useId } from 'preact/hooks';
import { TEXTS } from '../texts.ts';
import { usePicking } from './state.ts';
import { type Branch, branchesTo, isTemplate } from './tree.ts';

/** The path of a branch for people, such as `/repos/{owner}/{repo}`; for a host, its name. */
export function pathText(branch: Branch): string {
  const [host, ...segments] = branchesTo(branch);
  if (host === undefined) return TEXTS.picker.everything;
  return segments.length === 0 ? host.text : segments.map(({ label }) => `/${label}`).join('');
}

export interface BranchPathProps {
  readonly branches: readonly Branch[];
  /** The checkbox that the text belongs to. */
  readonly labelFor?: string;
}

/** Segments of a path, with a field in place of each `{}` to name one resource. */
export function BranchPath({ branches, labelFor }: BranchPathProps) {
  return (
    <span class="path" dir="ltr">
      {branches.map((branch, place) => (
        <Fragment key={branch.index}>
          {place > 0 && <span class="slash"> / </span>}
          {isTemplate(branch) ? (
            <NameField branch={branch} />
          ) : (
            <Segment text={branch.text} labelFor={labelFor} />
          )}
        </Fragment>
      ))}
    </span>
  );
}

function Segment({
  text,
  labelFor,
}: {
  readonly text: string;
  readonly labelFor?: string | undefined;
}) {
  return labelFor === undefined ? <span>{text}</span> : <label for={labelFor}>{text}</label>;
}

/** The least width of the field, in characters. It grows with the name. */
const MIN_CHARACTERS = 5;

/** Narrows a `{}` to one name. */
export function NameField({ branch }: { readonly branch: Branch }) {
  const { selection, change } = usePicking();
  const id = useId();
  const name = selection.nameOf(branch);
  const problem = selection.problemOf(branch);
  return (
    <span class="name">
      <input
        class="mono"
        value={name}
        size={Math.max(MIN_CHARACTERS, (name || branch.label).length)}
        placeholder={branch.label === branch.text ? TEXTS.picker.any : branch.label}
        aria-label={TEXTS.picker.nameOf({ path: pathText(branch) })}
        aria-invalid={problem !== undefined || undefined}
        aria-describedby={problem && id}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        maxLength={200}
        onInput={({ currentTarget }) => change(selection.withName(branch, currentTarget.value))}
        onKeyDown={(event) => {
          // Enter would submit the form around the picker.
          if (event.key === 'Enter') event.preventDefault();
        }}
      />
      {problem && (
        <span class="error" id={id} role="alert">
          {TEXTS.picker.nameProblems[problem]}
        </span>
      )}
    </span>
  );
}
