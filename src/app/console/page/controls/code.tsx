import { CopyButton } from './copy-button.tsx';

export interface CodeProps {
  readonly title: string;
  readonly text: string;
  /** The label of the button that copies it. */
  readonly label: string;
}

/** A text for a program, with a button that copies it. */
export function Code({ title, text, label }: CodeProps) {
  return (
    <section class="code" aria-label={title}>
      <div class="code-head">
        <h2>{title}</h2>
        <CopyButton key={text} text={text} label={label} />
      </div>
      <pre dir="ltr">
        <code>{text}</code>
      </pre>
    </section>
  );
}
