/**
 * When what has the focus disappears, gives the focus to the heading of what it was a part of. The browser
 * would forget the place: Tab would begin at the top of the page, and a screen reader say nothing.
 */
export function keepFocus(): () => void {
  let focused: Element | undefined;
  let around: readonly Element[] = [];
  const note = ({ target }: Event) => {
    if (!(target instanceof Element)) return;
    focused = target;
    around = ancestorsOf(target);
  };
  // Those who click beside all controls want no focus. What is gone was not left on purpose.
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

/** From the nearest. */
function ancestorsOf({ parentElement }: Element): readonly Element[] {
  return parentElement === null ? [] : [parentElement, ...ancestorsOf(parentElement)];
}

/** Without scrolling, so that those who use a mouse see nothing of it. */
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
