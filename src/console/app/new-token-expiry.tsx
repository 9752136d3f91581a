import { SelectField, TextField } from './controls/field.tsx';
import { exactTime } from './controls/time.tsx';
import { type Draft, dayAfter, type Expiry } from './new-token-draft.ts';
import { TEXTS } from './texts.ts';

export interface ExpiryFieldsProps {
  readonly draft: Draft;
  readonly error?: string | undefined;
  readonly onEdit: (part: Partial<Draft>) => void;
}

/** How long the token lives: one of the usual lifetimes, or until a date. */
export function ExpiryFields({ draft, error, onEdit }: ExpiryFieldsProps) {
  const { expiry, date } = draft;
  return (
    <div class="expiry">
      <SelectField<Expiry>
        label={TEXTS.newToken.expiry}
        hint={expiry === 'date' ? undefined : TEXTS.newToken.until(endOf(expiry))}
        error={expiry === 'date' ? undefined : error}
        value={expiry}
        choices={TEXTS.newToken.expiries}
        onChange={(next) => onEdit({ expiry: next, ...(date === '' && { date: in30Days() }) })}
      />
      {expiry === 'date' && (
        <TextField
          type="date"
          label={TEXTS.newToken.date}
          hint={TEXTS.newToken.dateHint}
          error={error}
          value={date}
          onChange={(next) => onEdit({ date: next })}
        />
      )}
    </div>
  );
}

function in30Days(): string {
  return dayAfter(new Date(), 30);
}

function endOf(expiry: Exclude<Expiry, 'date'>): string {
  return exactTime(Date.now() / 1000 + Number.parseInt(expiry, 10) * 86_400);
}
