import { useMemo, useState } from 'preact/hooks';
import { ScopeCatalog, ScopeSet } from '../../../scope/index.ts';
import type { ApiError, ShownToken } from './api.ts';
import { useChange } from './change.tsx';
import { useConsole } from './context.ts';
import { Dialog, DialogActions } from './controls/dialog.tsx';
import { ErrorNotice, messageOf } from './controls/notice.tsx';
import { LoadedPart } from './controls/screen.tsx';
import { Difference } from './difference.tsx';
import { useLoaded } from './loading.ts';
import { patchCurlOf } from './new-token-draft.ts';
import { Rights } from './picker/rights.ts';
import { ScopePicker } from './picker/scope-picker.tsx';
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
  const { api, catalog } = useConsole();
  const { parent } = props.token;
  // A token never gets more than the one that it was derived from.
  const loaded = useLoaded('catalog', async () =>
    parent === undefined ? catalog() : (await api.get(parent)).scopes,
  );
  return (
    <Dialog title={TEXTS.scopes.title} onCancel={props.onCancel} isWide>
      <LoadedPart loaded={loaded}>
        {(entries) => <ScopesForm {...props} entries={entries} />}
      </LoadedPart>
    </Dialog>
  );
}

interface ScopesFormProps extends ScopesDialogProps {
  readonly entries: readonly string[];
}

function ScopesForm({ token, added, entries, onChanged, onCancel }: ScopesFormProps) {
  const { announce, base, username } = useConsole();
  const [scopes, setScopes] = useState<readonly string[]>(
    added === undefined ? token.scopes : [...token.scopes, added],
  );
  const granted = useMemo(() => grantedOf(entries, scopes), [entries, scopes]);
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
        catalog={entries}
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

/** The scopes that the service would grant; none while the entered ones cannot be expanded. */
function grantedOf(entries: readonly string[], scopes: readonly string[]): readonly string[] {
  try {
    // A service without a catalog keeps scopes as they are.
    if (entries.some((entry) => entry.includes('*'))) return ScopeSet.from(scopes).toArray();
    return ScopeCatalog.from(entries).expand(scopes).granted;
  } catch {
    return [];
  }
}

function scopeError(error: ApiError | undefined): string | undefined {
  return error?.code.includes('scope') ? messageOf(error) : undefined;
}
