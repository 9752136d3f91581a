import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { Icon } from './icon.tsx';

/** The attributes by which a control is read out with its label, hint and error. */
export interface ControlAttributes {
  readonly id: string;
  readonly 'aria-describedby': string | undefined;
  readonly 'aria-invalid': true | undefined;
}

export interface FieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  /** The message about what is wrong with it. */
  readonly error?: string | undefined;
  readonly children: (attributes: ControlAttributes) => ComponentChildren;
}

/** A label, a control, its hint and its error. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {children({
        id,
        'aria-describedby': described || undefined,
        'aria-invalid': error ? true : undefined,
      })}
      {error && (
        <p class="error" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  );
}

export interface TextFieldProps extends Omit<FieldProps, 'children'> {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly type?: 'text' | 'password' | 'search' | 'number' | 'date' | 'datetime-local';
  readonly autocomplete?: string;
  readonly placeholder?: string;
  readonly maxLength?: number;
  readonly isMono?: boolean;
  readonly isSpellchecked?: boolean;
  /** Gets the focus when its screen appears, in place of the heading. */
  readonly isFirst?: boolean;
}

export function TextField(props: TextFieldProps) {
  const { value, onChange, type = 'text', ...field } = props;
  return (
    <Field {...field}>
      {(attributes) => {
        const input = (
          <input
            {...attributes}
            class={props.isMono ? 'mono' : undefined}
            // The types of Preact accept only one literal here.
            type={type as 'text'}
            value={value}
            dir="auto"
            autocomplete={(props.autocomplete ?? 'off') as 'off'}
            placeholder={props.placeholder}
            maxLength={props.maxLength}
            spellcheck={props.isSpellchecked ?? false}
            autofocus={props.isFirst}
            onInput={({ currentTarget }) => onChange(currentTarget.value)}
          />
        );
        if (type !== 'search') return input;
        return (
          <span class="search">
            <Icon name="search" />
            {input}
          </span>
        );
      }}
    </Field>
  );
}

export interface SelectFieldProps<Choice extends string> extends Omit<FieldProps, 'children'> {
  readonly value: Choice;
  readonly choices: Readonly<Record<Choice, string>>;
  readonly onChange: (value: Choice) => void;
}

export function SelectField<Choice extends string>(props: SelectFieldProps<Choice>) {
  const { value, choices, onChange, ...field } = props;
  return (
    <Field {...field}>
      {(attributes) => (
        <select
          {...attributes}
          value={value}
          onChange={({ currentTarget }) => onChange(currentTarget.value as Choice)}
        >
          {Object.entries<string>(choices).map(([choice, label]) => (
            <option key={choice} value={choice}>
              {label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface ChoiceFieldProps<Choice extends string> {
  readonly label: string;
  readonly value: Choice;
  readonly choices: Readonly<Record<Choice, string>>;
  readonly onChange: (value: Choice) => void;
}

/** One of a few choices, all of them in view. */
export function ChoiceField<Choice extends string>(props: ChoiceFieldProps<Choice>) {
  const { label, value, choices, onChange } = props;
  const name = useId();
  return (
    <fieldset class="choices">
      <legend>{label}</legend>
      {Object.entries<string>(choices).map(([choice, text]) => (
        <label key={choice}>
          <input
            type="radio"
            name={name}
            value={choice}
            checked={choice === value}
            onChange={() => onChange(choice as Choice)}
          />
          <span>{text}</span>
        </label>
      ))}
    </fieldset>
  );
}
