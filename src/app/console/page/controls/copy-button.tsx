import { useRef, useState } from 'preact/hooks';
import { useConsole } from '../context.ts';
import { TEXTS } from '../texts.ts';
import { Button } from './button.tsx';
import { Icon } from './icon.tsx';

export interface CopyButtonProps {
  readonly text: string;
  /** What is copied, for screen readers. */
  readonly label?: string;
  readonly kind?: 'plain' | 'primary';
  readonly onCopied?: () => void;
}

export function CopyButton({ text, label, kind = 'plain', onCopied }: CopyButtonProps) {
  const { announce } = useConsole();
  const place = useRef<HTMLSpanElement>(null);
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    if (!(await copied(text, place.current))) return announce(TEXTS.actions.copyFailed);
    setCopied(true);
    announce(TEXTS.actions.copied);
    onCopied?.();
  };
  return (
    <span ref={place}>
      <Button kind={kind} onClick={copy} {...(label !== undefined && !isCopied && { label })}>
        <Icon name={isCopied ? 'check' : 'copy'} />
        {isCopied ? TEXTS.actions.copied : TEXTS.actions.copy}
      </Button>
    </span>
  );
}

/** Copies a text, even if the page may not use the clipboard, such as on plain HTTP. */
async function copied(text: string, place: HTMLElement | null): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return place !== null && copiedBySelection(text, place);
  }
}

/** Copies a text by selecting it. In an open dialog, only elements of it can be selected. */
function copiedBySelection(text: string, place: HTMLElement): boolean {
  const before = document.activeElement;
  const area = document.createElement('textarea');
  area.className = 'off-screen';
  area.readOnly = true;
  area.value = text;
  place.append(area);
  area.select();
  try {
    return document.execCommand('copy');
  } finally {
    area.remove();
    if (before instanceof HTMLElement) before.focus();
  }
}
