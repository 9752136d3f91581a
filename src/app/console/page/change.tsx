import { useRef, useState } from 'preact/hooks';
import type { ApiError } from '../../../http/client.ts';
import type { Api, ShownToken } from './api.ts';
import { ChangedFacts } from './changed-facts.tsx';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { Dialog, DialogActions } from './controls/dialog.tsx';
import { Difference } from './difference.tsx';
import { toApiError } from './loading.ts';
import { TEXTS } from './texts.ts';

/** Makes a change to a token, with the version of the token as the person has seen it. */
export type Change = (api: Api, token: ShownToken) => Promise<void>;

export interface Changing {
  readonly isBusy: boolean;
  readonly error: ApiError | undefined;
  /** Makes a change. If the token has changed meanwhile, shows how and asks before it goes on. */
  readonly run: (change: Change) => Promise<void>;
  /** The dialog that asks, if there is a conflict. The owner renders it. */
  readonly question: ReturnType<typeof ConflictDialog> | null;
}

interface Conflict {
  readonly change: Change;
  readonly now: ShownToken;
}

/**
 * Changes a token with `If-Match`, and asks the person what to do if there is a conflict.
 *
 * @param onGone called with the token as it is now if it was revoked meanwhile
 * @param scopes those that the token would have after the change, if it changes them
 */
export function useChange(
  token: ShownToken,
  onGone: (now: ShownToken) => void,
  scopes?: readonly string[],
): Changing {
  const { api } = useConsole();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const [conflict, setConflict] = useState<Conflict>();
  const isRunning = useRef(false);

  const attempt = async (change: Change, seen: ShownToken): Promise<void> => {
    if (isRunning.current) return;
    isRunning.current = true;
    setBusy(true);
    setError(undefined);
    setConflict(undefined);
    try {
      await change(api, seen);
    } catch (failure) {
      const reason = toApiError(failure);
      const now = isAboutChange(reason) ? await readOnceMore(api, token.id) : undefined;
      if (now === undefined) setError(reason);
      else setConflict({ change, now });
    }
    isRunning.current = false;
    setBusy(false);
  };

  const question = conflict ? (
    <ConflictDialog
      before={token}
      now={conflict.now}
      scopes={scopes}
      onGoOn={() => attempt(conflict.change, conflict.now)}
      onCancel={() => setConflict(undefined)}
      onGone={(now) => {
        setConflict(undefined);
        onGone(now);
      }}
    />
  ) : null;
  return { isBusy, error, run: (change) => attempt(change, token), question };
}

/** Whether a change failed because somebody else has changed or revoked the token. */
function isAboutChange({ code }: ApiError): boolean {
  return code === 'version_conflict' || code === 'not_found';
}

/** The token as it is now; `undefined` if it is gone or cannot be read. */
async function readOnceMore(api: Api, id: string): Promise<ShownToken | undefined> {
  try {
    return await api.get(id);
  } catch {
    return undefined;
  }
}

interface ConflictDialogProps {
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
function ConflictDialog(props: ConflictDialogProps) {
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
