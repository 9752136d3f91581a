import type { ComponentChildren } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import type { ApiError } from '../../../http/client.ts';
import type { WirePreset } from '../../../http/wire.ts';
import type { RefusedScope } from '../../../scope/index.ts';
import { relativeTime } from '../../../time/relative.ts';
import type { Choices, FreshToken } from './api.ts';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { SelectField, TextField } from './controls/field.tsx';
import { ErrorNotice, messageOf } from './controls/notice.tsx';
import { exactTime } from './controls/time.tsx';
import { LimitFields } from './limit-fields.tsx';
import { toApiError } from './loading.ts';
import {
  bodyOf,
  type Draft,
  dayAfter,
  draftOfPreset,
  EMPTY_DRAFT,
  type Expiry,
  expiriesWithin,
  type FieldName,
  fieldOf,
  type NewToken,
  secondsOf,
} from './new-token-draft.ts';
import { rightsOf } from './picker/choices.ts';
import { ScopePicker } from './picker/scope-picker.tsx';
import { SameCall } from './same-call.tsx';
import { LANGUAGE, TEXTS } from './texts.ts';

type Errors = Partial<Record<FieldName, string>>;

interface Failure {
  readonly errors: Errors;
  /** An error that is about no field. */
  readonly error?: ApiError;
  readonly refused?: readonly RefusedScope[];
}

export interface TokenFormProps {
  /** All that the token may be given. */
  readonly choices: Choices;
  /** The longest lifetime that it may have, if there is one. */
  readonly maxSeconds: number | undefined;
  readonly issue: (body: NewToken) => Promise<FreshToken>;
  /** The same call for a shell. */
  readonly curlOf: (body: NewToken) => string;
  readonly onIssued: (token: FreshToken) => void;
  readonly cancel: ComponentChildren;
}

/** What a person has entered, what is wrong with it, and what its form does. */
function useDraft({ maxSeconds, issue, onIssued }: TokenFormProps) {
  const form = useRef<HTMLFormElement>(null);
  const [draft, setDraft] = useState<Draft>(() => firstDraft(maxSeconds));
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
      return onIssued(await issue(bodyOf(draft)));
    } catch (error) {
      fail(failureOf(toApiError(error)));
    }
    setBusy(false);
  };
  return { form, draft, failure, isBusy, edit, submit };
}

/** Asks for everything that a new token needs, and makes it. */
export function TokenForm(props: TokenFormProps) {
  const { choices, maxSeconds } = props;
  const { abilities } = useConsole();
  const { form, draft, failure, isBusy, edit, submit } = useDraft(props);
  const { errors } = failure;
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
        maxSeconds={maxSeconds}
        error={errors.expiry}
        onEdit={(part) => edit(part, 'expiry')}
      />
      {choices.presets.length > 0 && (
        <Presets
          presets={choices.presets}
          onChoose={(preset) => edit(draftOfPreset(preset), 'scopes', 'expiry')}
        />
      )}
      <ScopePicker
        label={TEXTS.newToken.scopes}
        choices={choices}
        scopes={draft.scopes}
        error={errors.scopes}
        {...(failure.refused && { refused: failure.refused })}
        onChange={(scopes) => edit({ scopes }, 'scopes')}
      />
      {abilities.takesLimits && <LimitFields draft={draft} errors={errors} onEdit={edit} />}
      <SameCall body={bodyOf(draft)} curl={props.curlOf(bodyOf(draft))} />
      {failure.error && <ErrorNotice error={failure.error} />}
      <div class="form-bar">
        <RightsSummary choices={choices} scopes={draft.scopes} />
        <div class="actions">
          {props.cancel}
          <Button kind="primary" type="submit" isBusy={isBusy}>
            {isBusy ? TEXTS.newToken.submitting : TEXTS.newToken.submit}
          </Button>
        </div>
      </div>
    </form>
  );
}

/** How much is chosen, in one line that stays in sight. */
function RightsSummary({
  choices,
  scopes,
}: Pick<TokenFormProps, 'choices'> & Pick<Draft, 'scopes'>) {
  const rights = useMemo(() => rightsOf(choices, scopes), [choices, scopes]);
  const { permissions, endpoints, isReadOnly } = rights;
  const parts = [
    ...(permissions.length > 0
      ? [TEXTS.picker.permissionCount({ count: permissions.length })]
      : []),
    TEXTS.picker.count({ count: endpoints }),
  ];
  return (
    <p>
      {LANGUAGE.lists.format(parts)}
      {endpoints > 0 && isReadOnly && ` · ${TEXTS.rights.readOnly}`}
    </p>
  );
}

function presetNameOf({ name }: WirePreset): string {
  const known: Readonly<Record<string, string>> = TEXTS.newToken.presetNames;
  return known[name] ?? name;
}

interface PresetsProps {
  readonly presets: readonly WirePreset[];
  readonly onChoose: (preset: WirePreset) => void;
}

/** Named lists of scopes, of which one fills the form. */
function Presets({ presets, onChoose }: PresetsProps) {
  return (
    <fieldset class="presets">
      <legend>{TEXTS.newToken.presets}</legend>
      {presets.map((preset) => (
        <Button key={preset.name} onClick={() => onChoose(preset)}>
          <bdi>{presetNameOf(preset)}</bdi>
        </Button>
      ))}
    </fieldset>
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

/** Shows the message of the service at the field that it is about. */
function failureOf(error: ApiError): Failure {
  const field = fieldOf(error);
  if (field === undefined) return { errors: {}, error };
  const { refused } = error.details;
  return {
    errors: { [field]: messageOf(error) },
    ...(field === 'scopes' && Array.isArray(refused) && { refused: refused as RefusedScope[] }),
  };
}

/** Leads people to the first thing that is wrong in a form. */
export function focusFirstError(form: HTMLFormElement | null): void {
  const place = form?.querySelector('[aria-invalid="true"], [data-invalid="true"]');
  const inside = place?.querySelector('[aria-invalid="true"]') ?? place?.querySelector('input');
  const control = inside ?? place;
  if (control instanceof HTMLElement) control.focus();
}

export interface ExpiryFieldsProps {
  readonly draft: Pick<Draft, 'expiry' | 'date'>;
  readonly error?: string | undefined;
  readonly maxSeconds: number | undefined;
  /** When a token that exists expires, in UNIX seconds: it can stay so. */
  readonly kept?: number;
  readonly onEdit: (part: Partial<Pick<Draft, 'expiry' | 'date'>>) => void;
}

/** How long the token lives: one of the usual lifetimes, or until a date. */
export function ExpiryFields({ draft, error, maxSeconds, kept, onEdit }: ExpiryFieldsProps) {
  const { expiry, date } = draft;
  const { choices } = expiriesWithin(maxSeconds);
  // Nothing sets the expiry of a token that exists to the default of the service.
  const usual = kept === undefined ? choices : ['kept' as const, ...choices.filter(isNotDefault)];
  // A day that the service allows in every time zone.
  const days = Math.min(30, Math.floor((maxSeconds ?? 30 * 86_400) / 86_400) - 1);
  return (
    <div class="expiry">
      <SelectField<Expiry>
        label={TEXTS.newToken.expiry}
        hint={untilOf(expiry, kept)}
        error={expiry === 'date' ? undefined : error}
        value={expiry}
        choices={textsOf(new Set([...usual, expiry]))}
        onChange={(next) =>
          onEdit({
            expiry: next,
            ...(date === '' && { date: dayAfter(new Date(), Math.max(0, days)) }),
          })
        }
      />
      {expiry === 'date' && (
        <TextField
          type="date"
          label={TEXTS.newToken.date}
          hint={TEXTS.newToken.dateHint}
          error={error}
          value={date}
          onChange={(next) => onEdit({ date: next })}
        />
      )}
    </div>
  );
}

/**
 * The texts of the choices. Typed as a complete `Record`, because no other choice is ever shown.
 */
function textsOf(choices: ReadonlySet<Expiry>): Readonly<Record<Expiry, string>> {
  const texts: [string, string][] = [...choices].map((choice) => [choice, textOf(choice)]);
  return Object.fromEntries(texts) as Record<Expiry, string>;
}

/** A lifetime of a preset has no text of its own. */
function textOf(expiry: Expiry): string {
  const texts: Readonly<Record<string, string>> = TEXTS.newToken.expiries;
  return texts[expiry] ?? relativeTime(secondsOf(expiry) ?? 0, LANGUAGE);
}

function untilOf(expiry: Expiry, kept: number | undefined): string | undefined {
  const seconds = secondsOf(expiry);
  const end = seconds === undefined ? undefined : Date.now() / 1000 + seconds;
  const shown = expiry === 'kept' ? kept : end;
  return shown === undefined ? undefined : TEXTS.newToken.until({ date: exactTime(shown) });
}

function isNotDefault(expiry: Expiry): boolean {
  return expiry !== 'default';
}
