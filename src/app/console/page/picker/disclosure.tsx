import type { ComponentChildren, TargetedKeyboardEvent } from 'preact';
import { useState } from 'preact/hooks';
import { Button } from '../controls/button.tsx';
import { TEXTS } from '../texts.ts';

export interface TwistyProps {
  readonly label: string;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}

/** The button that opens and closes a branch. */
export function Twisty({ label, isOpen, onToggle }: TwistyProps) {
  return (
    <button
      type="button"
      class="twisty"
      aria-expanded={isOpen}
      aria-label={TEXTS.picker.open({ path: label })}
      onClick={onToggle}
    >
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d="m6 4 4 4-4 4" />
      </svg>
    </button>
  );
}

/** How many rows are shown at first, and by each press of a button: rendering thousands is slow. */
const ROWS = 100;

export interface RowsProps<Item> {
  readonly items: readonly Item[];
  readonly children: (item: Item) => ComponentChildren;
  readonly class?: string;
  readonly label?: string;
}

/** A list that shows its first rows, and more if asked. */
export function Rows<Item>({ items, children, class: name, label }: RowsProps<Item>) {
  const [limit, setLimit] = useState(ROWS);
  const rest = items.length - limit;
  return (
    <>
      <ul class={name} aria-label={label}>
        {items.slice(0, limit).map(children)}
      </ul>
      {rest > 0 && (
        <Button kind="quiet" onClick={() => setLimit(limit + ROWS)}>
          {TEXTS.picker.more({ count: Math.min(rest, ROWS) })}
        </Button>
      )}
    </>
  );
}

/** The frame of a tree. The arrow keys move in it, as a shortcut for Tab and Enter. */
export function TreeFrame({ children }: { readonly children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only moves the focus between controls
    <div class="endpoints" onKeyDown={moveByArrows}>
      {children}
    </div>
  );
}

/** Moves between rows, and opens and closes branches. */
function moveByArrows(event: TargetedKeyboardEvent<HTMLElement>): void {
  const { currentTarget, target, key } = event;
  if (!(target instanceof HTMLElement) || isTyping(target)) return;
  const row = target.closest<HTMLElement>('[data-row]');
  if (row === null || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const rows = [...currentTarget.querySelectorAll<HTMLElement>('[data-row]')];
  if (key === 'ArrowDown' || key === 'ArrowUp') {
    const next = rows[rows.indexOf(row) + (key === 'ArrowDown' ? 1 : -1)];
    next?.querySelector<HTMLElement>('button, input')?.focus();
    event.preventDefault();
  }
  const isRightToLeft = getComputedStyle(row).direction === 'rtl';
  const opening = isRightToLeft ? 'ArrowLeft' : 'ArrowRight';
  const closing = isRightToLeft ? 'ArrowRight' : 'ArrowLeft';
  if (key !== opening && key !== closing) return;
  const twisty = row.querySelector<HTMLElement>(`.twisty[aria-expanded="${key === closing}"]`);
  if (twisty === null) return;
  twisty.click();
  event.preventDefault();
}

function isTyping(target: HTMLElement): boolean {
  return target instanceof HTMLInputElement && target.type !== 'checkbox';
}
