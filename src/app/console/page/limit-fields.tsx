import { useState } from 'preact/hooks';
import { Field, SelectField, TextField } from './controls/field.tsx';
import { type LimitName, type LimitsDraft, limitsOf } from './limits-draft.ts';
import { TEXTS } from './texts.ts';

export interface LimitFieldsProps {
  readonly draft: LimitsDraft;
  readonly errors: Partial<Record<LimitName, string>>;
  readonly onEdit: (part: Partial<LimitsDraft>, field: LimitName) => void;
}

/** The fields of the limits. Closed at first if the token has none, like most tokens. */
export function LimitFields({ draft, errors, onEdit }: LimitFieldsProps) {
  const hasError = [errors.addresses, errors.uses, errors.rate].some(Boolean);
  // Fields that an error has opened stay open when it is corrected.
  const [isOpen, setOpen] = useState(limitsOf(draft) !== undefined);
  return (
    <details
      class="card"
      open={isOpen || hasError}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>{TEXTS.newToken.limits}</summary>
      <div class="stack">
        <p class="hint">{TEXTS.newToken.limitsHint}</p>
        <AddressField draft={draft} errors={errors} onEdit={onEdit} />
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
          <SelectField
            label={TEXTS.newToken.rateSeconds}
            value={draft.rateSeconds}
            choices={windowsWith(draft.rateSeconds)}
            onChange={(rateSeconds) => onEdit({ rateSeconds }, 'rate')}
          />
        </fieldset>
      </div>
    </details>
  );
}

/** A field of several lines: one address, or block of addresses, in each. */
function AddressField({ draft, errors, onEdit }: LimitFieldsProps) {
  return (
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
          onInput={({ currentTarget }) => onEdit({ addresses: currentTarget.value }, 'addresses')}
        />
      )}
    </Field>
  );
}

/** The usual windows of a rate, and the one that a token has. */
function windowsWith(seconds: string): Readonly<Record<string, string>> {
  return { [seconds]: TEXTS.token.seconds({ count: Number(seconds) }), ...TEXTS.newToken.windows };
}
