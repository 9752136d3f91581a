import { useState } from 'preact/hooks';
import type { FreshToken, Rotation, ShownToken } from './api.ts';
import { useChange } from './change.tsx';
import { useConsole } from './context.ts';
import { Dialog, DialogActions } from './controls/dialog.tsx';
import { ChoiceField, SelectField } from './controls/field.tsx';
import { ErrorNotice } from './controls/notice.tsx';
import { TEXTS } from './texts.ts';

export interface RotateDialogProps {
  readonly token: ShownToken;
  readonly onChanged: (token: ShownToken) => void;
  readonly onRotated: (token: FreshToken) => void;
  readonly onCancel: () => void;
}

type When = keyof typeof TEXTS.rotate.whens;
type Grace = keyof typeof TEXTS.rotate.graces;

/** Asks what becomes of the old value before a token gets a new one. */
export function RotateDialog({ token, onChanged, onRotated, onCancel }: RotateDialogProps) {
  const [when, setWhen] = useState<When>('first-use');
  const [grace, setGrace] = useState<Grace>('3600');
  const [endsDerived, setEndsDerived] = useState(true);
  const { abilities } = useConsole();
  const asksDerived = when === 'now' && abilities.has('/token/derive');
  const { isBusy, error, run, question } = useChange(token, onChanged);
  const submit = (event: Event) => {
    event.preventDefault();
    return run(async (api, seen) => onRotated(await api.rotate(seen, rotation)));
  };
  const rotation = { ...rotationOf(when, grace), ...(asksDerived && { endDerived: endsDerived }) };
  return (
    <Dialog title={TEXTS.rotate.title} onCancel={onCancel}>
      <form class="stack" onSubmit={submit}>
        <p>{TEXTS.rotate.intro}</p>
        <ChoiceField
          label={TEXTS.rotate.when}
          value={when}
          choices={TEXTS.rotate.whens}
          onChange={setWhen}
        />
        {when === 'grace' && (
          <SelectField
            label={TEXTS.rotate.grace}
            value={grace}
            choices={TEXTS.rotate.graces}
            onChange={setGrace}
          />
        )}
        {asksDerived && (
          <label>
            <input
              type="checkbox"
              checked={endsDerived}
              onChange={(event) => setEndsDerived(event.currentTarget.checked)}
            />{' '}
            {TEXTS.rotate.endDerived}
          </label>
        )}
        {error && <ErrorNotice error={error} />}
        <DialogActions type="submit" isBusy={isBusy} onCancel={onCancel}>
          {isBusy ? TEXTS.rotate.busy : TEXTS.rotate.confirm}
        </DialogActions>
      </form>
      {question}
    </Dialog>
  );
}

function rotationOf(when: When, grace: Grace): Rotation {
  if (when === 'first-use') return { activate: 'first-use' };
  return when === 'grace' ? { graceSeconds: Number(grace) } : {};
}
