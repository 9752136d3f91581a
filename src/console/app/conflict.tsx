import type { ShownToken } from './api.ts';
import { Button } from './controls/button.tsx';
import { Dialog } from './controls/dialog.tsx';
import { exactTime } from './controls/time.tsx';
import { Difference } from './difference.tsx';
import { TEXTS } from './texts.ts';

export interface ConflictDialogProps {
  /** The token as the person saw it. */
  readonly before: ShownToken;
  readonly now: ShownToken;
  readonly onGoOn: () => void;
  readonly onCancel: () => void;
}

/** Somebody else has changed the token: shows what, and asks whether to go on. */
export function ConflictDialog({ before, now, onGoOn, onCancel }: ConflictDialogProps) {
  const changed = changedFacts(before, now);
  return (
    <Dialog title={TEXTS.conflict.title} onCancel={onCancel}>
      <p>{TEXTS.conflict.intro}</p>
      {changed.length > 0 && (
        <dl class="changed">
          {changed.map(({ label, from, to }) => (
            <div key={label}>
              <dt>{label}</dt>
              <dd>
                <del dir="auto">{from}</del> → <ins dir="auto">{to}</ins>
              </dd>
            </div>
          ))}
        </dl>
      )}
      <Difference before={before.scopes} after={now.scopes} />
      <div class="actions">
        <Button kind="primary" onClick={onGoOn}>
          {TEXTS.conflict.goOn}
        </Button>
        <Button onClick={onCancel}>{TEXTS.actions.cancel}</Button>
      </div>
    </Dialog>
  );
}

interface ChangedFact {
  readonly label: string;
  readonly from: string;
  readonly to: string;
}

function changedFacts(before: ShownToken, now: ShownToken): readonly ChangedFact[] {
  const facts: readonly ChangedFact[] = [
    { label: TEXTS.token.name, from: nameOf(before), to: nameOf(now) },
    { label: TEXTS.token.expires, from: exactTime(before.expire), to: exactTime(now.expire) },
    { label: TEXTS.token.state, from: TEXTS.states[before.state], to: TEXTS.states[now.state] },
    { label: TEXTS.token.value, from: stateOfValue(before), to: stateOfValue(now) },
  ];
  return facts.filter(({ from, to }) => from !== to);
}

const nameOf = ({ name }: ShownToken) => name ?? TEXTS.list.unnamed;

const stateOfValue = ({ pending }: ShownToken) =>
  pending ? TEXTS.token.valuePending : TEXTS.token.valueSettled;
