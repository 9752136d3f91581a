import { useState } from 'preact/hooks';
import { ScopeSet } from '../../scope/index.ts';
import type { ApiError, ShownToken } from './api.ts';
import { useChange } from './change.tsx';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { Dialog } from './controls/dialog.tsx';
import { ErrorNotice, messageOf } from './controls/notice.tsx';
import { LoadedPart } from './controls/screen.tsx';
import { Difference } from './difference.tsx';
import { useLoaded } from './loading.ts';
import { ScopePicker } from './picker/scope-picker.tsx';
import { TEXTS } from './texts.ts';

export interface ScopesDialogProps {
  readonly token: ShownToken;
  /** A scope to begin with, beside those of the token. */
  readonly added?: string | undefined;
  readonly onChanged: (token: ShownToken) => void;
  readonly onCancel: () => void;
}

/** Changes what a token may do, and shows the difference before it happens. */
export function ScopesDialog({ token, added, onChanged, onCancel }: ScopesDialogProps) {
  const { catalog, announce } = useConsole();
  const loaded = useLoaded('catalog', catalog);
  const [scopes, setScopes] = useState<readonly string[]>(
    added === undefined ? token.scopes : [...token.scopes, added],
  );
  const { isBusy, error, run, question } = useChange(token);
  const isChanged = scopes.length > 0 && !ScopeSet.from(token.scopes).equals(readable(scopes));
  const save = () =>
    run(async (api, seen) => {
      onChanged(await api.patch(seen, { scopes }));
      announce(TEXTS.edit.done);
    });
  return (
    <Dialog title={TEXTS.scopes.title} onCancel={onCancel} isWide>
      <LoadedPart loaded={loaded}>
        {(entries) => (
          <ScopePicker
            label={TEXTS.newToken.scopes}
            catalog={entries}
            scopes={scopes}
            onChange={setScopes}
            error={scopeError(error)}
          />
        )}
      </LoadedPart>
      {isChanged && <Difference before={token.scopes} after={readable(scopes)} />}
      {error && scopeError(error) === undefined && <ErrorNotice error={error} />}
      <div class="actions">
        <Button kind="primary" onClick={save} isBusy={isBusy} isDisabled={!isChanged}>
          {isBusy ? TEXTS.actions.saving : TEXTS.scopes.save}
        </Button>
        <Button onClick={onCancel}>{TEXTS.actions.cancel}</Button>
      </div>
      {question}
    </Dialog>
  );
}

/** Without what is still being typed. */
function readable(scopes: readonly string[]): readonly string[] {
  return scopes.filter((scope) => {
    try {
      return ScopeSet.from([scope]).size === 1;
    } catch {
      return false;
    }
  });
}

function scopeError(error: ApiError | undefined): string | undefined {
  return error?.code.includes('scope') ? messageOf(error) : undefined;
}
