import { useState } from 'preact/hooks';
import type { ApiError } from '../../../http/client.ts';
import type { ShownToken, TokenChange } from './api.ts';
import { useChange } from './change.tsx';
import { ChangedFacts, changedFacts, type Facts } from './changed-facts.tsx';
import { useConsole } from './context.ts';
import { Dialog, DialogActions } from './controls/dialog.tsx';
import { TextField } from './controls/field.tsx';
import { ErrorNotice, messageOf } from './controls/notice.tsx';
import { LimitFields } from './limit-fields.tsx';
import { changedLimits, draftOf, type LimitsDraft } from './limits-draft.ts';
import { type FieldName, fieldOf } from './new-token-draft.ts';
import { TEXTS } from './texts.ts';

export interface EditDialogProps {
  readonly token: ShownToken;
  readonly onChanged: (token: ShownToken) => void;
  readonly onCancel: () => void;
}

/** What a person has entered. */
interface Edited extends LimitsDraft {
  readonly name: string;
  readonly expiry: string;
}

/** Changes the name, the expiry and the limits of a token. */
export function EditDialog({ token, onChanged, onCancel }: EditDialogProps) {
  const { announce, abilities } = useConsole();
  const [before] = useState(() => editedOf(token));
  const [edited, setEdited] = useState(before);
  const edit = (part: Partial<Edited>) => setEdited((now) => ({ ...now, ...part }));
  const { isBusy, error, run, question } = useChange(token, onChanged);
  const errors = errorsOf(error);
  const after = factsOf(token, before, edited);
  const submit = (event: Event) => {
    event.preventDefault();
    if (Object.keys(changeOf(token, before, edited)).length === 0) return onCancel();
    return run(async (api, seen) => {
      onChanged(await api.patch(seen, changeOf(seen, before, edited)));
      announce(TEXTS.edit.done);
    });
  };
  return (
    <Dialog title={TEXTS.edit.title} onCancel={onCancel}>
      <form class="stack" onSubmit={submit} noValidate>
        <TextField
          label={TEXTS.token.name}
          value={edited.name}
          onChange={(name) => edit({ name })}
          error={errors.name}
        />
        <TextField
          label={TEXTS.token.expires}
          hint={TEXTS.edit.expiryHint}
          type="datetime-local"
          value={edited.expiry}
          onChange={(expiry) => edit({ expiry })}
          error={errors.expiry}
        />
        {abilities.takesLimits && <LimitFields draft={edited} errors={errors} onEdit={edit} />}
        {changedFacts(token, after).length > 0 && (
          <section>
            <h3>{TEXTS.edit.changes}</h3>
            <ChangedFacts before={token} after={after} />
          </section>
        )}
        {error && Object.keys(errors).length === 0 && <ErrorNotice error={error} />}
        <DialogActions type="submit" isBusy={isBusy} onCancel={onCancel}>
          {isBusy ? TEXTS.actions.saving : TEXTS.actions.save}
        </DialogActions>
      </form>
      {question}
    </Dialog>
  );
}

function editedOf({ name = '', expire, limits }: ShownToken): Edited {
  return { name, expiry: localTime(expire), ...draftOf(limits) };
}

/** Only the fields that were edited, so that changes that somebody else has made meanwhile stay. */
function changeOf(
  token: ShownToken,
  before: Edited,
  { name, expiry, ...rest }: Edited,
): TokenChange {
  const instant = new Date(expiry);
  const limits = changedLimits(token.limits, before, rest);
  return {
    ...(name !== before.name && { name: name === '' ? null : name }),
    // An unreadable time goes to the service as it is, which says what is wrong with it.
    ...(expiry !== before.expiry && {
      expire: Number.isNaN(instant.getTime()) ? expiry : instant.toISOString(),
    }),
    ...(limits !== undefined && { limits }),
  };
}

/** The token as the change would make it. */
function factsOf(token: ShownToken, before: Edited, edited: Edited): Facts {
  const { name, expire, limits } = changeOf(token, before, edited);
  const { name: _, limits: former, ...rest } = token;
  const instant = Date.parse(expire ?? '') / 1000;
  const nextName = name === undefined ? token.name : name;
  const nextLimits = limits === undefined ? former : limits;
  return {
    ...rest,
    ...(nextName && { name: nextName }),
    ...(nextLimits && { limits: nextLimits }),
    ...(!Number.isNaN(instant) && { expire: instant }),
  };
}

/** A time for a `datetime-local` field: in the time zone of the person, without its name. */
function localTime(seconds: number): string {
  const time = new Date(seconds * 1000);
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

/** The message of the service, by the field that it is about; none if it is about no field. */
function errorsOf(error: ApiError | undefined): Partial<Record<FieldName, string>> {
  if (error === undefined) return {};
  const field = fieldOf(error);
  // Scopes are not changed here.
  return field === undefined || field === 'scopes' ? {} : { [field]: messageOf(error) };
}
