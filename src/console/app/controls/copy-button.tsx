import { useState } from 'preact/hooks';
import { useConsole } from '../context.ts';
import { TEXTS } from '../texts.ts';
import { Button } from './button.tsx';

export interface CopyButtonProps {
  readonly text: string;
  /** What is copied, for screen readers. */
  readonly label?: string;
  readonly kind?: 'plain' | 'primary';
}

export function CopyButton({ text, label, kind = 'plain' }: CopyButtonProps) {
  const { announce } = useConsole();
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      announce(TEXTS.actions.copied);
    } catch {
      announce(TEXTS.actions.copyFailed);
    }
  };
  return (
    <Button kind={kind} onClick={copy} {...(label !== undefined && !isCopied && { label })}>
      {isCopied ? TEXTS.actions.copied : TEXTS.actions.copy}
    </Button>
  );
}
