import { useState } from 'preact/hooks';
import type { ApiError, ShownToken, TokenChange } from './api.ts';
import { useChange } from './change.tsx';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { Dialog } from './controls/dialog.tsx';
import { TextField } from './controls/field.tsx';
import { ErrorNotice, messageOf } from './controls/notice.tsx';
import { TEXTS } from './texts.ts';

export interface EditDialogProps {
  readonly token: ShownToken;
  readonly onChanged: (token: ShownToken) => void;
  readonly onCancel: () => void;
}

/** Changes the name and the expiry of a token. */
export function EditDialog({ token, onChanged, onCancel }: EditDialogProps) {
  const { announce } = useConsole();
  const [name, setName] = useState(token.name ?? '');
  const [expiry, setExpiry] = useState(localTime(token.expire));
  const { isBusy, error, run, question } = useChange(token);
  const submit = (event: Event) => {
    event.preventDefault();
    const change = changeOf(token, name, expiry);
    if (Object.keys(change).length === 0) return onCancel();
    return run(async (api, seen) => {
      onChanged(await api.patch(seen, change));
      announce(TEXTS.edit.done);
    });
  };
  return (
    <Dialog title={TEXTS.edit.title} onCancel={onCancel}>
      <form class="stack" onSubmit={submit} noValidate>
        <TextField
          label={TEXTS.token.name}
          value={name}
          onChange={setName}
          error={errorAt('name', error)}
        />
        <TextField
          label={TEXTS.token.expires}
          hint={TEXTS.edit.expiryHint}
          type="datetime-local"
          value={expiry}
          onChange={setExpiry}
          error={errorAt('expire', error)}
        />
        {error && !hasField(error) && <ErrorNotice error={error} />}
        <div class="actions">
          <Button kind="primary" type="submit" isBusy={isBusy}>
            {isBusy ? TEXTS.actions.saving : TEXTS.actions.save}
          </Button>
          <Button onClick={onCancel}>{TEXTS.actions.cancel}</Button>
        </div>
      </form>
      {question}
    </Dialog>
  );
}

function changeOf(token: ShownToken, name: string, expiry: string): TokenChange {
  const instant = new Date(expiry);
  const isMoved = expiry !== localTime(token.expire);
  return {
    ...(name !== (token.name ?? '') && { name: name === '' ? null : name }),
    // An unreadable time goes to the service as it is, which says what is wrong with it.
    ...(isMoved && { expire: Number.isNaN(instant.getTime()) ? expiry : instant.toISOString() }),
  };
}

/** A time as a field of a form has it: without its zone, which is that of the person. */
function localTime(seconds: number): string {
  const time = new Date(seconds * 1000);
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

const FIELDS = ['name', 'expire'];

function hasField({ details }: ApiError): boolean {
  return FIELDS.includes(details.member ?? '');
}

function errorAt(member: string, error: ApiError | undefined): string | undefined {
  return error?.details.member === member ? messageOf(error) : undefined;
}
