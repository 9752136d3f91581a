import { useState } from 'preact/hooks';
import { type ScopeCatalog, safeParseScope } from '../../../../scope/index.ts';
import { Button } from '../controls/button.tsx';
import { Field, TextField } from '../controls/field.tsx';
import { messageOf } from '../controls/notice.tsx';
import { TEXTS } from '../texts.ts';
import { usePicking } from './state.ts';

/** Scopes that the tree cannot show, each of which can be removed. */
export function OtherScopes() {
  const { selection, change } = usePicking();
  const { others } = selection;
  if (others.length === 0) return null;
  return (
    <section class="others" aria-label={TEXTS.picker.others}>
      <h2>{TEXTS.picker.others}</h2>
      <p class="hint">{TEXTS.picker.othersHint}</p>
      <ul>
        {others.map((scope) => (
          <li key={scope}>
            <code dir="ltr">{scope}</code>
            <Button
              kind="quiet"
              label={TEXTS.picker.removeScope({ scope })}
              onClick={() => change(selection.withOthers(others.filter((one) => one !== scope)))}
            >
              {TEXTS.picker.remove}
            </Button>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface Refusal {
  readonly message: string;
  readonly suggestions: readonly string[];
}

export interface AddScopeProps {
  readonly catalog: ScopeCatalog;
  readonly onAdd: (scope: string) => void;
}

/** Adds a scope as text: for people who know it, and for a second name in place of one `{}`. */
export function AddScope({ catalog, onAdd }: AddScopeProps) {
  const [text, setText] = useState('');
  const [refusal, setRefusal] = useState<Refusal>();
  const write = (next: string) => {
    setText(next);
    setRefusal(undefined);
  };
  const add = () => {
    const refused = refusalOf(text, catalog);
    setRefusal(refused);
    if (refused !== undefined) return;
    onAdd(text.trim());
    setText('');
  };
  return (
    <details class="add-scope">
      <summary>{TEXTS.picker.add}</summary>
      {/* Not a form, because it is inside another one. */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: Enter in the field is the button */}
      <div
        class="add-scope-field"
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !(event.target instanceof HTMLInputElement)) return;
          event.preventDefault();
          add();
        }}
      >
        <TextField
          label={TEXTS.picker.addLabel}
          hint={TEXTS.picker.addHint}
          error={refusal?.message}
          value={text}
          onChange={write}
          isMono
        />
        {refusal !== undefined && <Suggestions scopes={refusal.suggestions} onUse={write} />}
        <Button onClick={add}>{TEXTS.picker.addSubmit}</Button>
      </div>
    </details>
  );
}

function refusalOf(typed: string, catalog: ScopeCatalog): Refusal | undefined {
  const text = typed.trim();
  const reading = safeParseScope(text);
  if (!reading.ok) {
    const { error: code, message, suggestion } = reading;
    return {
      message: messageOf({ code, message }),
      suggestions: suggestion === undefined ? catalog.suggest(text) : [suggestion],
    };
  }
  if (catalog.knows(reading.scope)) return undefined;
  return { message: TEXTS.picker.unknown, suggestions: catalog.suggest(text) };
}

export interface SuggestionsProps {
  readonly scopes: readonly string[];
  readonly onUse: (scope: string) => void;
}

/** Scopes that were probably meant, to choose from. */
export function Suggestions({ scopes, onUse }: SuggestionsProps) {
  if (scopes.length === 0) return null;
  return (
    <p class="suggestions">
      {TEXTS.picker.instead}{' '}
      {scopes.map((scope) => (
        <Button key={scope} onClick={() => onUse(scope)}>
          <code dir="ltr">{scope}</code>
        </Button>
      ))}
    </p>
  );
}

export interface TypedScopesProps {
  readonly label: string;
  readonly error?: string | undefined;
  readonly scopes: readonly string[];
  readonly onChange: (scopes: readonly string[]) => void;
}

/** Scopes as lines of text, for a service without a catalog to choose from. */
export function TypedScopes({ label, error, scopes, onChange }: TypedScopesProps) {
  const [text, setText] = useState(scopes.join('\n'));
  return (
    <Field label={label} hint={TEXTS.picker.typed} error={error}>
      {(attributes) => (
        <textarea
          {...attributes}
          class="mono"
          dir="ltr"
          rows={6}
          spellcheck={false}
          value={text}
          onInput={({ currentTarget }) => {
            setText(currentTarget.value);
            onChange(currentTarget.value.split(/\s+/).filter(Boolean));
          }}
        />
      )}
    </Field>
  );
}
