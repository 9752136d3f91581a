import type { ShownToken } from './api.ts';
import { useChange } from './change.tsx';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { Dialog, DialogActions } from './controls/dialog.tsx';
import { ErrorNotice, Notice } from './controls/notice.tsx';
import { LoadedPart } from './controls/screen.tsx';
import { exactTime } from './controls/time.tsx';
import { ScopeList } from './difference.tsx';
import { useLoaded } from './loading.ts';
import { summaryOf } from './rights.ts';
import { TEXTS } from './texts.ts';

export interface NarrowDialogProps {
  readonly token: ShownToken;
  readonly onChanged: (token: ShownToken) => void;
  readonly onCancel: () => void;
}

/** Removes the scopes of a token that were not used. */
export function NarrowDialog(props: NarrowDialogProps) {
  const { token, onCancel } = props;
  const { api } = useConsole();
  const advice = useLoaded(token.id, () => api.advice(token.id));
  return (
    <Dialog title={TEXTS.narrow.title} onCancel={onCancel}>
      <LoadedPart loaded={advice}>
        {({ unused, kept, since }) => {
          const intro = TEXTS.narrow.since({ date: exactTime(since) });
          if (unused.length === 0) return <NothingToRemove text={TEXTS.narrow.none} {...props} />;
          if (kept.length === 0)
            return <NothingToRemove text={TEXTS.narrow.allUnused} {...props} />;
          return <RemoveScopes {...props} unused={unused} kept={kept} intro={intro} />;
        }}
      </LoadedPart>
    </Dialog>
  );
}

export interface RemoveDialogProps extends NarrowDialogProps {
  readonly scopes: readonly string[];
}

/** Removes scopes of a token that its account may no longer have. */
export function RemoveDialog(props: RemoveDialogProps) {
  const { token, scopes, onCancel } = props;
  const kept = token.scopes.filter((scope) => !scopes.includes(scope));
  return (
    <Dialog title={TEXTS.narrow.removeTitle} onCancel={onCancel}>
      {kept.length === 0 ? (
        <NothingToRemove text={TEXTS.narrow.allOrphaned} {...props} />
      ) : (
        <RemoveScopes {...props} unused={scopes} kept={kept} intro={TEXTS.narrow.orphaned} />
      )}
    </Dialog>
  );
}

function NothingToRemove({ text, onCancel }: NarrowDialogProps & { readonly text: string }) {
  return (
    <>
      <Notice kind="info">{text}</Notice>
      <div class="actions">
        <Button kind="primary" onClick={onCancel}>
          {TEXTS.actions.close}
        </Button>
      </div>
    </>
  );
}

interface RemoveScopesProps extends NarrowDialogProps {
  readonly unused: readonly string[];
  readonly kept: readonly string[];
  readonly intro: string;
}

function RemoveScopes({ token, unused, kept, intro, onChanged, onCancel }: RemoveScopesProps) {
  const { announce } = useConsole();
  const { isBusy, error, run, question } = useChange(token, onChanged);
  const narrow = () =>
    run(async (api, seen) => {
      onChanged(await api.patch(seen, { removeScopes: unused }));
      announce(TEXTS.narrow.done({ count: unused.length }));
    });
  return (
    <>
      <p>{intro}</p>
      <ScopeList
        title={TEXTS.difference.removed({ count: unused.length })}
        kind="removed"
        scopes={unused}
      />
      <ScopeList
        title={TEXTS.difference.kept({ summary: summaryOf(kept) })}
        kind="kept"
        scopes={kept}
      />
      {error && <ErrorNotice error={error} />}
      <DialogActions onClick={narrow} isBusy={isBusy} onCancel={onCancel}>
        {isBusy ? TEXTS.actions.saving : TEXTS.narrow.confirm({ count: unused.length })}
      </DialogActions>
      {question}
    </>
  );
}
