import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';

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
