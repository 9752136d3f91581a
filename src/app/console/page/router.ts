import { useLayoutEffect, useRef, useState } from 'preact/hooks';

/** The screens, each with an address of its own. An address holds ids at most, never a value. */
export type Route =
  | { readonly screen: 'list' }
  | { readonly screen: 'new' }
  | { readonly screen: 'review' }
  | { readonly screen: 'token'; readonly id: string };

/** The address of a screen, for links: the part after `#`. */
export function hrefOf(route: Route): string {
  if (route.screen === 'token') return `#/token/${route.id}`;
  return route.screen === 'list' ? '#/' : `#/${route.screen}`;
}

export function goTo(route: Route): void {
  location.hash = hrefOf(route);
}

export function readRoute(hash: string): Route {
  const [, id] = /^#\/token\/([0-9A-Za-z]{22})$/.exec(hash) ?? [];
  if (id !== undefined) return { screen: 'token', id };
  if (hash === '#/new') return { screen: 'new' };
  if (hash === '#/review') return { screen: 'review' };
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
