import { useState } from 'preact/hooks';
import { Field, SelectField, TextField } from './controls/field.tsx';
import type { Draft, FieldName, Window } from './new-token-draft.ts';
import { TEXTS } from './texts.ts';

export interface LimitFieldsProps {
  readonly draft: Draft;
  readonly errors: Partial<Record<FieldName, string>>;
  readonly onEdit: (part: Partial<Draft>, ...fields: FieldName[]) => void;
}

/** Where from, how often and how many times: closed at first, since few tokens have limits. */
export function LimitFields({ draft, errors, onEdit }: LimitFieldsProps) {
  const hasError = [errors.addresses, errors.uses, errors.rate].some(Boolean);
  // What an error has opened stays open when it is corrected.
  const [isOpen, setOpen] = useState(false);
  return (
    <details
      class="card"
      open={isOpen || hasError}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>{TEXTS.newToken.limits}</summary>
      <div class="stack">
        <p class="hint">{TEXTS.newToken.limitsHint}</p>
        <Field
          label={TEXTS.newToken.addresses}
          hint={TEXTS.newToken.addressesHint}
          error={errors.addresses}
        >
          {(attributes) => (
            <textarea
              {...attributes}
              class="mono"
              dir="ltr"
              rows={3}
              spellcheck={false}
              value={draft.addresses}
              onInput={({ currentTarget }) =>
                onEdit({ addresses: currentTarget.value }, 'addresses')
              }
            />
          )}
        </Field>
        <TextField
          label={TEXTS.newToken.uses}
          error={errors.uses}
          value={draft.uses}
          onChange={(uses) => onEdit({ uses }, 'uses')}
        />
        <fieldset class="rate">
          <legend>{TEXTS.newToken.rate}</legend>
          <TextField
            label={TEXTS.newToken.rateUses}
            error={errors.rate}
            value={draft.rateUses}
            onChange={(rateUses) => onEdit({ rateUses }, 'rate')}
          />
          <SelectField<Window>
            label={TEXTS.newToken.rateSeconds}
            value={draft.rateSeconds}
            choices={TEXTS.newToken.windows}
            onChange={(rateSeconds) => onEdit({ rateSeconds }, 'rate')}
          />
        </fieldset>
      </div>
    </details>
  );
}
