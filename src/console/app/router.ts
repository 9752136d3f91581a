import { useEffect, useState } from 'preact/hooks';

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

/** The route of the address, as it changes. */
export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const follow = () => setHash(location.hash);
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  return readRoute(hash);
}
