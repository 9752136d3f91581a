/**
 * When the element with the focus disappears, moves the focus to the heading of the part it was in.
 * The browser would forget the place: Tab would begin at the top of the page, and a screen reader
 * would say nothing.
 */
export function keepFocus(): () => void {
  let focused: Element | undefined;
  let around: readonly Element[] = [];
  const note = ({ target }: Event) => {
    if (!(target instanceof Element)) return;
    focused = target;
    around = ancestorsOf(target);
  };
  // A click beside all controls wants no focus. An element that is gone was not left on purpose.
  const forget = ({ target }: Event) =>
    setTimeout(() => {
      if (target === focused && focused?.isConnected && isLost()) focused = undefined;
    });
  const observer = new MutationObserver(() => {
    if (focused === undefined || focused.isConnected || !isLost()) return;
    focused = undefined;
    focusHeading(around);
  });
  observer.observe(document.body, { childList: true, subtree: true });
  document.addEventListener('focusin', note);
  document.addEventListener('focusout', forget);
  return () => {
    observer.disconnect();
    document.removeEventListener('focusin', note);
    document.removeEventListener('focusout', forget);
  };
}

function isLost(): boolean {
  return document.activeElement === null || document.activeElement === document.body;
}

/** The ancestors of an element, the nearest first. */
function ancestorsOf({ parentElement }: Element): readonly Element[] {
  return parentElement === null ? [] : [parentElement, ...ancestorsOf(parentElement)];
}

/** Focuses the nearest heading. Scrolls only for people who use a keyboard. */
function focusHeading(around: readonly Element[]): void {
  const headings = around.map((part) =>
    part.isConnected ? part.querySelector<HTMLElement>('h1, h2, h3') : null,
  );
  const heading = headings.find((found) => found !== null);
  if (heading === undefined) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  if (heading.matches(':focus-visible')) heading.scrollIntoView({ block: 'nearest' });
}
