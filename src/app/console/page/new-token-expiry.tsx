import { SelectField, TextField } from './controls/field.tsx';
import { exactTime } from './controls/time.tsx';
import { type Draft, dayAfter, type Expiry, expiriesWithin, secondsOf } from './new-token-draft.ts';
import { TEXTS } from './texts.ts';

export interface ExpiryFieldsProps {
  readonly draft: Draft;
  readonly error?: string | undefined;
  readonly maxSeconds: number | undefined;
  readonly onEdit: (part: Partial<Draft>) => void;
}

/** How long the token lives: one of the usual lifetimes, or until a date. */
export function ExpiryFields({ draft, error, maxSeconds, onEdit }: ExpiryFieldsProps) {
  const { expiry, date } = draft;
  // A day that the service allows in every time zone.
  const days = Math.min(30, Math.floor((maxSeconds ?? 30 * 86_400) / 86_400) - 1);
  return (
    <div class="expiry">
      <SelectField<Expiry>
        label={TEXTS.newToken.expiry}
        hint={untilOf(expiry)}
        error={expiry === 'date' ? undefined : error}
        value={expiry}
        choices={textsOf(expiriesWithin(maxSeconds).choices)}
        onChange={(next) =>
          onEdit({
            expiry: next,
            ...(date === '' && { date: dayAfter(new Date(), Math.max(0, days)) }),
          })
        }
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

/**
 * The texts of the choices. Typed as a complete `Record`, because no other choice is ever shown.
 */
function textsOf(choices: readonly Expiry[]): Readonly<Record<Expiry, string>> {
  const texts = choices.map((choice) => [choice, TEXTS.newToken.expiries[choice]]);
  return Object.fromEntries(texts);
}

function untilOf(expiry: Expiry): string | undefined {
  const seconds = secondsOf(expiry);
  return seconds === undefined
    ? undefined
    : TEXTS.newToken.until({ date: exactTime(Date.now() / 1000 + seconds) });
}
