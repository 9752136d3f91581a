import type { ComponentChildren } from 'preact';

export interface ButtonProps {
  readonly children: ComponentChildren;
  readonly kind?: 'plain' | 'primary' | 'danger' | 'quiet';
  readonly type?: 'button' | 'submit';
  /** Work is in progress: the button stays in place and in focus, but does nothing. */
  readonly isBusy?: boolean | undefined;
  readonly isDisabled?: boolean | undefined;
  readonly label?: string;
  /** Gets the focus when its dialog opens, in place of the first control. */
  readonly isFirst?: boolean;
  readonly onClick?: (event: MouseEvent) => void;
}

export function Button(props: ButtonProps) {
  const { children, kind = 'plain', type = 'button', isBusy = false, isDisabled = false } = props;
  return (
    <button
      type={type}
      class={`button ${kind}`}
      disabled={isDisabled}
      aria-disabled={isBusy || undefined}
      aria-label={props.label}
      autofocus={props.isFirst}
      onClick={(event) => {
        if (isBusy) event.preventDefault();
        else props.onClick?.(event);
      }}
    >
      {children}
    </button>
  );
}
