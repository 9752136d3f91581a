import { useEffect, useState } from 'preact/hooks';
import type { ShownToken } from './api.ts';
import { useChange } from './change.tsx';
import { useConsole } from './context.ts';
import { Dialog, DialogActions } from './controls/dialog.tsx';
import { ErrorNotice, Notice } from './controls/notice.tsx';
import { countDescendants, type Descendants } from './revoke-many.ts';
import { nameOf } from './shown-token.ts';
import { TEXTS } from './texts.ts';
import { LastUse } from './token-row.tsx';

export interface RevokeDialogProps {
  readonly token: ShownToken;
  readonly onChanged: (token: ShownToken) => void;
  readonly onRevoked: () => void;
  readonly onCancel: () => void;
}

/** Asks before a token is revoked, by its name. */
export function RevokeDialog({ token, onChanged, onRevoked, onCancel }: RevokeDialogProps) {
  const { announce, abilities } = useConsole();
  const { isBusy, error, run, question } = useChange(token, onChanged);
  const name = nameOf(token);
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
      {abilities.listsChildren && <DescendantsNotice id={token.id} />}
      <p class="hint">
        {TEXTS.list.lastUsed}: <LastUse token={token} />
      </p>
      {error && <ErrorNotice error={error} />}
      <DialogActions kind="danger" onClick={revoke} isBusy={isBusy} onCancel={onCancel}>
        {isBusy ? TEXTS.revoke.busy : TEXTS.revoke.confirm}
      </DialogActions>
      {question}
    </Dialog>
  );
}

/** Says how many tokens end with a token. Renders nothing before that is known, or for none. */
function DescendantsNotice({ id }: { readonly id: string }) {
  const { api } = useConsole();
  const [found, setFound] = useState<Descendants>();
  useEffect(() => {
    let isWanted = true;
    countDescendants(api, id, () => isWanted).then(
      (all) => isWanted && setFound(all),
      // The token can be revoked without knowing it.
      () => {},
    );
    return () => {
      isWanted = false;
    };
  }, [api, id]);
  if (found === undefined || found.count === 0) return null;
  const text = found.isAll ? TEXTS.revoke.descendants : TEXTS.revoke.descendantsAtLeast;
  return <Notice kind="warning">{text({ count: found.count })}</Notice>;
}
