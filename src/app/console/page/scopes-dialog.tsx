import { useMemo, useState } from 'preact/hooks';
import type { ApiError } from '../../../http/client.ts';
import { type Choices, choicesAmong, type ShownToken } from './api.ts';
import { useChange } from './change.tsx';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { Dialog, DialogActions } from './controls/dialog.tsx';
import { ErrorNotice, messageOf, Notice } from './controls/notice.tsx';
import { LoadedPart } from './controls/screen.tsx';
import { exactTime } from './controls/time.tsx';
import { Difference, ScopeList } from './difference.tsx';
import { useLoaded } from './loading.ts';
import { patchCurlOf } from './new-token-draft.ts';
import { grantedOf } from './picker/choices.ts';
import { Rights } from './picker/rights.ts';
import { ScopePicker } from './picker/scope-picker.tsx';
import { summaryOf } from './rights.ts';
import { SameCall } from './same-call.tsx';
import { TEXTS } from './texts.ts';

export interface ScopesDialogProps {
  readonly token: ShownToken;
  /** A scope that is selected at first, in addition to those of the token. */
  readonly added?: string | undefined;
  readonly onChanged: (token: ShownToken) => void;
  readonly onCancel: () => void;
}

/** Changes the scopes of a token, and shows the difference before the change is made. */
export function ScopesDialog(props: ScopesDialogProps) {
  const { api, choices } = useConsole();
  const { parent } = props.token;
  // A token never gets more than the one that it was derived from.
  const loaded = useLoaded('choices', async () => {
    const all = await choices();
    return parent === undefined ? all : choicesAmong(all, (await api.get(parent)).scopes);
  });
  return (
    <Dialog title={TEXTS.scopes.title} onCancel={props.onCancel} isWide>
      <LoadedPart loaded={loaded}>{(all) => <ScopesForm {...props} choices={all} />}</LoadedPart>
    </Dialog>
  );
}

interface ScopesFormProps extends ScopesDialogProps {
  readonly choices: Choices;
}

function ScopesForm({ token, added, choices, onChanged, onCancel }: ScopesFormProps) {
  const { announce, base, username } = useConsole();
  const [scopes, setScopes] = useState<readonly string[]>(
    added === undefined ? token.scopes : [...token.scopes, added],
  );
  const granted = useMemo(() => grantedOf(choices, scopes), [choices, scopes]);
  const { isBusy, error, run, question } = useChange(token, onChanged, granted);
  const isChanged = granted.length > 0 && !new Rights(token.scopes).equals(new Rights(granted));
  const save = () =>
    run(async (api, seen) => {
      onChanged(await api.patch(seen, { scopes }));
      announce(TEXTS.edit.done);
    });
  return (
    <>
      <ScopePicker
        label={TEXTS.newToken.scopes}
        choices={choices}
        scopes={scopes}
        onChange={setScopes}
        error={scopeError(error)}
      />
      {isChanged && <Difference before={token.scopes} after={granted} />}
      <SameCall body={{ scopes }} curl={patchCurlOf(base, username, token, { scopes })} />
      {error && scopeError(error) === undefined && <ErrorNotice error={error} />}
      <DialogActions onClick={save} isBusy={isBusy} isDisabled={!isChanged} onCancel={onCancel}>
        {isBusy ? TEXTS.actions.saving : TEXTS.scopes.save}
      </DialogActions>
      {question}
    </>
  );
}

function scopeError(error: ApiError | undefined): string | undefined {
  return error?.code.includes('scope') ? messageOf(error) : undefined;
}

interface NarrowDialogProps {
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

interface RemoveDialogProps extends NarrowDialogProps {
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
