import { useMemo, useState } from 'preact/hooks';
import type { ApiError } from '../../../http/client.ts';
import { type Choices, choicesAmong, type ShownToken, type TokenChange } from './api.ts';
import { useChange } from './change.tsx';
import { ChangedFacts, changedFacts, type Facts } from './changed-facts.tsx';
import { useConsole } from './context.ts';
import { Dialog, DialogActions } from './controls/dialog.tsx';
import { TextField } from './controls/field.tsx';
import { ErrorNotice, messageOf } from './controls/notice.tsx';
import { LoadedPart } from './controls/screen.tsx';
import { Difference } from './difference.tsx';
import { LimitFields } from './limit-fields.tsx';
import { changedLimits, draftOf } from './limits-draft.ts';
import { type Loaded, useLoaded } from './loading.ts';
import {
  type Draft,
  dayAfter,
  type FieldName,
  fieldOf,
  lifetimeOf,
  patchCurlOf,
  secondsOf,
} from './new-token-draft.ts';
import { grantedOf } from './picker/choices.ts';
import { Rights } from './picker/rights.ts';
import { ScopePicker } from './picker/scope-picker.tsx';
import { SameCall } from './same-call.tsx';
import { TEXTS } from './texts.ts';
import { ExpiryFields } from './token-form.tsx';

export interface EditDialogProps {
  readonly token: ShownToken;
  /** Scopes that are selected at first, in addition to those of the token. With them, the scopes are in view. */
  readonly added?: readonly string[] | undefined;
  readonly onChanged: (token: ShownToken) => void;
  readonly onCancel: () => void;
}

/** What a person has entered, and the scopes that the token would then have. */
interface Edited extends Draft {
  /** Absent if they stay. */
  readonly granted?: readonly string[] | undefined;
}

/** What a person has entered, and the change that it makes. */
function useEditing({ token, added, onChanged, onCancel }: EditDialogProps) {
  const { announce } = useConsole();
  const loaded = useChoicesFor(token);
  const [before] = useState(() => editedOf(token));
  const [draft, setDraft] = useState<Draft>({
    ...before,
    ...(added?.length && { scopes: [...before.scopes, ...added] }),
  });
  const edit = (part: Partial<Draft>) => setDraft((now) => ({ ...now, ...part }));
  const granted = useChangedScopes(token, draft.scopes, loaded);
  const edited = { ...draft, granted };
  const { run, ...change } = useChange(token, onChanged, granted);
  const body = changeOf(token, before, edited);
  const submit = (event: Event) => {
    event.preventDefault();
    if (Object.keys(body).length === 0) return onCancel();
    return run(async (api, seen) => {
      onChanged(await api.patch(seen, changeOf(seen, before, edited)));
      announce(TEXTS.edit.done);
    });
  };
  return { loaded, draft, edit, granted, body, submit, ...change };
}

/** Changes what can be changed about a token, and shows the difference before the change is made. */
export function EditDialog(props: EditDialogProps) {
  const { token, added, onCancel } = props;
  const { abilities, base, username } = useConsole();
  const { loaded, draft, edit, granted, body, submit, isBusy, error, question } = useEditing(props);
  const errors = errorsOf(error);
  return (
    <Dialog title={TEXTS.edit.title} onCancel={onCancel} isWide>
      <form class="stack" onSubmit={submit} noValidate>
        <TextField
          label={TEXTS.token.name}
          value={draft.name}
          onChange={(name) => edit({ name })}
          error={errors.name}
        />
        <ExpiryFields
          draft={draft}
          maxSeconds={abilities.maxSeconds}
          kept={token.expire}
          error={errors.expiry}
          onEdit={edit}
        />
        <ScopeFields
          loaded={loaded}
          scopes={draft.scopes}
          error={errors.scopes}
          isOpen={added !== undefined}
          onChange={(scopes) => edit({ scopes })}
        />
        {abilities.takesLimits && <LimitFields draft={draft} errors={errors} onEdit={edit} />}
        <Changes token={token} body={body} granted={granted} />
        <SameCall body={body} curl={patchCurlOf(base, username, token, body)} />
        {error && Object.keys(errors).length === 0 && <ErrorNotice error={error} />}
        <DialogActions type="submit" isBusy={isBusy} onCancel={onCancel}>
          {isBusy ? TEXTS.actions.saving : TEXTS.actions.save}
        </DialogActions>
      </form>
      {question}
    </Dialog>
  );
}

/** What a token may be given: never more than the one that it was derived from has, and an elevation no more at all. */
function useChoicesFor({ parent, elevates, scopes }: ShownToken): Loaded<Choices> {
  const { api, choices } = useConsole();
  return useLoaded('choices', async () => {
    const all = await choices();
    if (elevates !== undefined) return choicesAmong(all, scopes);
    return parent === undefined ? all : choicesAmong(all, (await api.get(parent)).scopes);
  });
}

/** The scopes that a token would be granted; `undefined` if these are the same rights as before. */
function useChangedScopes(
  token: ShownToken,
  scopes: readonly string[],
  loaded: Loaded<Choices>,
): readonly string[] | undefined {
  const choices = loaded.state === 'ready' ? loaded.value : undefined;
  const granted = useMemo(
    () => (choices === undefined ? token.scopes : grantedOf(choices, scopes)),
    [token, choices, scopes],
  );
  // Scopes that the account has lost stay until the person changes something.
  if (scopes === token.scopes) return undefined;
  const isSame = granted.length > 0 && new Rights(token.scopes).equals(new Rights(granted));
  return isSame ? undefined : granted;
}

interface ScopeFieldsProps {
  readonly loaded: Loaded<Choices>;
  readonly scopes: readonly string[];
  readonly error: string | undefined;
  readonly isOpen: boolean;
  readonly onChange: (scopes: readonly string[]) => void;
}

/** The picker behind a disclosure: most changes are about a name or a date. */
function ScopeFields({ loaded, scopes, error, isOpen: isFirstOpen, onChange }: ScopeFieldsProps) {
  const [isOpen, setOpen] = useState(isFirstOpen);
  const isShown = isOpen || error !== undefined;
  return (
    <details
      class="card"
      open={isShown}
      onToggle={(event) => {
        // The picker has disclosures of its own.
        if (event.target === event.currentTarget) setOpen(event.currentTarget.open);
      }}
    >
      <summary>{TEXTS.newToken.scopes}</summary>
      {isShown && (
        <LoadedPart loaded={loaded}>
          {(choices) => (
            <ScopePicker
              label={TEXTS.newToken.scopes}
              choices={choices}
              scopes={scopes}
              onChange={onChange}
              error={error}
            />
          )}
        </LoadedPart>
      )}
    </details>
  );
}

interface ChangesProps {
  readonly token: ShownToken;
  readonly body: TokenChange;
  readonly granted: readonly string[] | undefined;
}

/** The difference that a change would make. */
function Changes({ token, body, granted = [] }: ChangesProps) {
  const after = factsOf(token, body);
  const hasFacts = changedFacts(token, after).length > 0;
  if (!hasFacts && granted.length === 0) return null;
  return (
    <section class="stack">
      <h3>{TEXTS.edit.changes}</h3>
      {hasFacts && <ChangedFacts before={token} after={after} />}
      {granted.length > 0 && <Difference before={token.scopes} after={granted} />}
    </section>
  );
}

function editedOf({ name = '', expire, limits, scopes }: ShownToken): Draft {
  const date = dayAfter(new Date(expire * 1000), 0);
  return { name, expiry: 'kept', date, scopes, ...draftOf(limits) };
}

/** Only the fields that were edited, so that changes that somebody else has made meanwhile stay. */
function changeOf(token: ShownToken, before: Draft, edited: Edited): TokenChange {
  const { name, scopes, granted } = edited;
  const limits = changedLimits(token.limits, before, edited);
  return {
    ...(name !== before.name && { name: name === '' ? null : name }),
    ...lifetimeOf(edited),
    ...(granted !== undefined && { scopes }),
    ...(limits !== undefined && { limits }),
  };
}

/** The token as a change would make it. */
function factsOf(token: ShownToken, { name, expire, expiresIn, limits }: TokenChange): Facts {
  const { name: _, limits: former, ...rest } = token;
  const seconds = secondsOf((expiresIn ?? 'kept') as Draft['expiry']);
  const instant =
    seconds === undefined ? Date.parse(expire ?? '') / 1000 : Date.now() / 1000 + seconds;
  const nextName = name === undefined ? token.name : name;
  const nextLimits = limits === undefined ? former : limits;
  return {
    ...rest,
    ...(nextName && { name: nextName }),
    ...(nextLimits && { limits: nextLimits }),
    ...(!Number.isNaN(instant) && { expire: instant }),
  };
}

/** The message of the service, by the field that it is about; none if it is about no field. */
function errorsOf(error: ApiError | undefined): Partial<Record<FieldName, string>> {
  if (error === undefined) return {};
  const field = error.code.includes('scope') ? 'scopes' : fieldOf(error);
  return field === undefined ? {} : { [field]: messageOf(error) };
}
