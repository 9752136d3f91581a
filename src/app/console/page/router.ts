import { useLayoutEffect, useRef, useState } from 'preact/hooks';

/** The screens, each with an address of its own. An address holds ids and filters, never a value or a code. */
export type Route =
  | {
      readonly screen: 'list';
      /** Its filters, as a query; absent for none. */
      readonly search?: string;
    }
  | { readonly screen: 'new' }
  | { readonly screen: 'review' }
  | { readonly screen: 'approve' }
  | { readonly screen: 'token'; readonly id: string };

/** The address of a screen, for links: the part after `#`. */
export function hrefOf(route: Route): string {
  if (route.screen === 'token') return `#/token/${route.id}`;
  if (route.screen === 'list') return route.search ? `#/?${route.search}` : '#/';
  return `#/${route.screen}`;
}

export function goTo(route: Route): void {
  location.hash = hrefOf(route);
}

/** Changes the address in place: the way back leads to the screen before. */
export function replaceRoute(route: Route): void {
  history.replaceState(null, '', hrefOf(route));
  dispatchEvent(new HashChangeEvent('hashchange'));
}

export function readRoute(hash: string): Route {
  const [, id] = /^#\/token\/([0-9A-Za-z]{22})$/.exec(hash) ?? [];
  if (id !== undefined) return { screen: 'token', id };
  if (hash === '#/new') return { screen: 'new' };
  if (hash === '#/review') return { screen: 'review' };
  if (hash === '#/approve') return { screen: 'approve' };
  const [, search] = /^#\/\?(.+)$/.exec(hash) ?? [];
  if (search !== undefined) return { screen: 'list', search };
  return { screen: 'list' };
}

/** An attempt to leave the screen. */
export interface WayOut {
  readonly leave: () => void;
  /** Undoes what has already happened, such as a change of the address. */
  readonly stay?: () => void;
}

/** Asks before somebody leaves what cannot be shown again. */
export interface Leaving {
  /** Leaves; asks first while something would be lost. */
  readonly ask: (way: WayOut) => void;
  /** Closes the question. */
  readonly dismiss: () => void;
  /** Makes `ask` ask, until the returned function is called. */
  readonly hold: () => () => void;
}

/** Follows the route of the address. If something would be lost, the person must agree first. */
export function useRoute({ ask, dismiss }: Leaving): Route {
  const [hash, setHash] = useState(location.hash);
  const shown = useRef(hash);
  // A layout effect: it listens before the screen is seen, and so before the address can change.
  useLayoutEffect(() => {
    const leave = () => {
      shown.current = location.hash;
      setHash(location.hash);
    };
    const stay = () => {
      location.hash = shown.current;
    };
    const follow = () => (location.hash === shown.current ? dismiss() : ask({ leave, stay }));
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, [ask, dismiss]);
  return readRoute(hash);
}

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
