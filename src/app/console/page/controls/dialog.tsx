import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { TEXTS } from '../texts.ts';
import { Button, type ButtonProps } from './button.tsx';

export interface DialogProps {
  readonly title: string;
  readonly children: ComponentChildren;
  /** Escape was pressed. The owner stops showing the dialog. */
  readonly onCancel: () => void;
  readonly isWide?: boolean;
}

/** A modal dialog: the browser keeps the focus in it and gives it back afterwards. */
export function Dialog({ title, children, onCancel, isWide = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={isWide ? 'wide' : undefined}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onCancel();
      }}
      onClose={() => {
        onCancel();
        // Browsers close it without asking if Escape is pressed several times; its owner may still show it.
        queueMicrotask(() => {
          const dialog = element.current;
          if (dialog?.isConnected && !dialog.open) dialog.showModal();
        });
      }}
    >
      <h2 id={titleId}>{title}</h2>
      {children}
    </dialog>
  );
}

export interface DialogActionsProps extends ButtonProps {
  readonly onCancel: () => void;
}

/** The buttons at the end of a dialog: one does what it asks about, the other leaves everything as it is. */
export function DialogActions({ onCancel, ...confirm }: DialogActionsProps) {
  return (
    <div class="actions">
      <Button kind="primary" {...confirm} />
      <Button onClick={onCancel} isFirst={confirm.kind === 'danger'}>
        {TEXTS.actions.cancel}
      </Button>
    </div>
  );
}
