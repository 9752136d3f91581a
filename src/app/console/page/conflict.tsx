import type { ShownToken } from './api.ts';
import { ChangedFacts } from './changed-facts.tsx';
import { Button } from './controls/button.tsx';
import { Dialog, DialogActions } from './controls/dialog.tsx';
import { Difference } from './difference.tsx';
import { TEXTS } from './texts.ts';

export interface ConflictDialogProps {
  /** The token as the person saw it. */
  readonly before: ShownToken;
  readonly now: ShownToken;
  /** The scopes after the person's own change; absent if it does not change them. */
  readonly scopes?: readonly string[] | undefined;
  readonly onGoOn: () => void;
  readonly onCancel: () => void;
  /** The token is revoked now: nobody can change it any more. */
  readonly onGone: (now: ShownToken) => void;
}

/** Somebody else has changed the token: shows what, and asks whether to go on. */
export function ConflictDialog(props: ConflictDialogProps) {
  const { before, now, scopes, onGoOn, onCancel, onGone } = props;
  if (now.state === 'revoked') {
    const close = () => onGone(now);
    return (
      <Dialog title={TEXTS.conflict.revoked} onCancel={close}>
        <p>{TEXTS.conflict.revokedIntro}</p>
        <div class="actions">
          <Button kind="primary" onClick={close}>
            {TEXTS.actions.close}
          </Button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title={TEXTS.conflict.title} onCancel={onCancel}>
      <p>{TEXTS.conflict.intro}</p>
      <ChangedFacts before={before} after={now} />
      <Difference before={before.scopes} after={now.scopes} />
      {scopes && (
        <>
          <p>{TEXTS.conflict.mine}</p>
          <Difference before={now.scopes} after={scopes} />
        </>
      )}
      <DialogActions onClick={onGoOn} onCancel={onCancel}>
        {TEXTS.conflict.goOn}
      </DialogActions>
    </Dialog>
  );
}
