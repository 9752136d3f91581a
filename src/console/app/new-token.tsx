import { useRef, useState } from 'preact/hooks';
import type { RefusedScope } from '../../scope/errors.ts';
import type { ApiError, FreshToken } from './api.ts';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { Code } from './controls/code.tsx';
import { TextField } from './controls/field.tsx';
import { ErrorNotice, messageOf } from './controls/notice.tsx';
import { BackLink, LoadedPart, Screen } from './controls/screen.tsx';
import { toApiError, useLoaded } from './loading.ts';
import {
  bodyOf,
  curlOf,
  type Draft,
  EMPTY_DRAFT,
  expiriesWithin,
  type FieldName,
  fieldOf,
  jsonOf,
} from './new-token-draft.ts';
import { ExpiryFields } from './new-token-expiry.tsx';
import { LimitFields } from './new-token-limits.tsx';
import { ScopePicker } from './picker/scope-picker.tsx';
import { goTo, hrefOf } from './router.ts';
import { TEXTS } from './texts.ts';
import { ValueOnce } from './value-once.tsx';

/** Makes a token, and then shows its value. The value is in no address: going back leaves it. */
export function NewTokenScreen() {
  const { catalog } = useConsole();
  const loaded = useLoaded('catalog', catalog);
  const [issued, setIssued] = useState<FreshToken>();
  if (issued !== undefined) {
    return <ValueOnce token={issued} onDone={() => goTo({ screen: 'token', id: issued.id })} />;
  }
  return (
    <Screen title={TEXTS.newToken.title} above={<BackLink />}>
      <LoadedPart loaded={loaded}>
        {(scopes) => <NewTokenForm catalog={scopes} onIssued={setIssued} />}
      </LoadedPart>
    </Screen>
  );
}

type Errors = Partial<Record<FieldName, string>>;

interface Failure {
  readonly errors: Errors;
  /** What is about no field. */
  readonly error?: ApiError;
  readonly refused?: readonly RefusedScope[];
}

interface NewTokenFormProps {
  readonly catalog: readonly string[];
  readonly onIssued: (token: FreshToken) => void;
}

function NewTokenForm({ catalog, onIssued }: NewTokenFormProps) {
  const { api, abilities } = useConsole();
  const form = useRef<HTMLFormElement>(null);
  const [draft, setDraft] = useState<Draft>(() => firstDraft(abilities.maxSeconds));
  const [failure, setFailure] = useState<Failure>({ errors: {} });
  const [isBusy, setBusy] = useState(false);
  const { errors } = failure;
  const edit = (part: Partial<Draft>, ...fields: FieldName[]) => {
    setDraft((before) => ({ ...before, ...part }));
    const left = Object.entries(errors).filter(([name]) => !fields.includes(name as FieldName));
    setFailure({ errors: Object.fromEntries(left) });
  };
  const fail = (next: Failure) => {
    setFailure(next);
    // Once the errors are shown.
    setTimeout(() => focusFirstError(form.current));
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    const missing = missingIn(draft);
    if (Object.keys(missing).length > 0) return fail({ errors: missing });
    setBusy(true);
    setFailure({ errors: {} });
    try {
      return onIssued(await api.issue(bodyOf(draft)));
    } catch (error) {
      fail(failureOf(toApiError(error)));
    }
    setBusy(false);
  };
  return (
    <form class="new-token" ref={form} onSubmit={submit} noValidate>
      <TextField
        label={TEXTS.newToken.name}
        hint={TEXTS.newToken.nameHint}
        value={draft.name}
        error={errors.name}
        onChange={(name) => edit({ name }, 'name')}
      />
      <ExpiryFields
        draft={draft}
        maxSeconds={abilities.maxSeconds}
        error={errors.expiry}
        onEdit={(part) => edit(part, 'expiry')}
      />
      <ScopePicker
        label={TEXTS.newToken.scopes}
        catalog={catalog}
        scopes={draft.scopes}
        error={errors.scopes}
        {...(failure.refused && { refused: failure.refused })}
        onChange={(scopes) => edit({ scopes }, 'scopes')}
      />
      {abilities.takesLimits && <LimitFields draft={draft} errors={errors} onEdit={edit} />}
      <SameCall draft={draft} />
      {failure.error && <ErrorNotice error={failure.error} />}
      <div class="actions">
        <Button kind="primary" type="submit" isBusy={isBusy}>
          {isBusy ? TEXTS.newToken.submitting : TEXTS.newToken.submit}
        </Button>
        <a class="button" href={hrefOf({ screen: 'list' })}>
          {TEXTS.actions.cancel}
        </a>
      </div>
    </form>
  );
}

function firstDraft(maxSeconds: number | undefined): Draft {
  return { ...EMPTY_DRAFT, expiry: expiriesWithin(maxSeconds).first };
}

function missingIn({ scopes, expiry, date }: Draft): Errors {
  return {
    ...(expiry === 'date' && date === '' && { expiry: TEXTS.newToken.missingDate }),
    ...(scopes.length === 0 && { scopes: TEXTS.newToken.missingScopes }),
  };
}

/** Puts the words of the service at the field that they are about. */
function failureOf(error: ApiError): Failure {
  const field = fieldOf(error);
  if (field === undefined) return { errors: {}, error };
  const { refused } = error.details;
  return {
    errors: { [field]: messageOf(error) },
    ...(field === 'scopes' && Array.isArray(refused) && { refused: refused as RefusedScope[] }),
  };
}

function focusFirstError(form: HTMLFormElement | null): void {
  const place = form?.querySelector('[aria-invalid="true"], [data-invalid="true"]');
  const inside = place?.querySelector('[aria-invalid="true"]') ?? place?.querySelector('input');
  const control = inside ?? place;
  if (control instanceof HTMLElement) control.focus();
}

/** The call that the form makes, for programs. */
function SameCall({ draft }: { readonly draft: Draft }) {
  const { base, username } = useConsole();
  const [isOpen, setOpen] = useState(false);
  const body = bodyOf(draft);
  const json = jsonOf(body, 2);
  const curl = curlOf(base, username, body);
  return (
    <details class="card" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{TEXTS.newToken.sameCall}</summary>
      {isOpen && (
        <div class="stack">
          <Code title={TEXTS.newToken.json} text={json} label={TEXTS.newToken.copyJson} />
          <Code title={TEXTS.newToken.curl} text={curl} label={TEXTS.newToken.copyCurl} />
        </div>
      )}
    </details>
  );
}
