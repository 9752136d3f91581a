import { Field } from '../controls/field.tsx';

export interface ScopePickerProps {
  /** All that may be picked. */
  readonly catalog: readonly string[];
  readonly scopes: readonly string[];
  readonly onChange: (scopes: readonly string[]) => void;
  readonly label: string;
  readonly error?: string | undefined;
}

/** Picks scopes. */
export function ScopePicker({ scopes, onChange, label, error }: ScopePickerProps) {
  return (
    <Field label={label} error={error}>
      {(attributes) => (
        <textarea
          {...attributes}
          class="mono"
          rows={6}
          spellcheck={false}
          value={scopes.join('\n')}
          onInput={({ currentTarget }) => onChange(currentTarget.value.split('\n'))}
        />
      )}
    </Field>
  );
}
