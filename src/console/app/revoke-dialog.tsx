import type { ShownToken } from './api.ts';
import { useChange } from './change.tsx';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { Dialog } from './controls/dialog.tsx';
import { ErrorNotice } from './controls/notice.tsx';
import { TEXTS } from './texts.ts';
import { LastUse } from './token-row.tsx';

export interface RevokeDialogProps {
  readonly token: ShownToken;
  readonly onRevoked: () => void;
  readonly onCancel: () => void;
}

/** Asks before a token is revoked, by its name. */
export function RevokeDialog({ token, onRevoked, onCancel }: RevokeDialogProps) {
  const { announce } = useConsole();
  const { isBusy, error, run, question } = useChange(token);
  const name = token.name ?? TEXTS.list.unnamed;
  const revoke = () =>
    run(async (api, seen) => {
      await api.revoke(seen);
      announce(TEXTS.revoke.done({ name }));
      onRevoked();
    });
  return (
    <Dialog title={TEXTS.revoke.title} onCancel={onCancel}>
      <p>
        <b dir="auto">{name}</b> <code dir="ltr">{token.masked}</code>
      </p>
      <p>{TEXTS.revoke.warning}</p>
      <p class="hint">
        {TEXTS.list.lastUsed}: <LastUse token={token} />
      </p>
      {error && <ErrorNotice error={error} />}
      <div class="actions">
        <Button kind="danger" onClick={revoke} isBusy={isBusy}>
          {isBusy ? TEXTS.revoke.busy : TEXTS.revoke.confirm}
        </Button>
        <Button onClick={onCancel}>{TEXTS.actions.cancel}</Button>
      </div>
      {question}
    </Dialog>
  );
}
