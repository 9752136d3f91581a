import { useId } from 'preact/hooks';

export interface ChoiceFieldProps<Choice extends string> {
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
