import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Abilities, Api, Choices } from './api.ts';
import type { Leaving } from './router.ts';

/** What every screen works with. */
export interface Console {
  readonly api: Api;
  readonly abilities: Abilities;
  /** The address of the service, for the calls that the page shows. */
  readonly base: string;
  /** The address below which the service answers the calls of its catalog, as an example. */
  readonly example: string | undefined;
  /** Who signed in with a password; absent with a session of the host. */
  readonly username: string | undefined;
  /** Shows a message for a moment, and reads it out. */
  readonly announce: (message: string) => void;
  /** Asks before a person leaves a screen with something that cannot be shown again. */
  readonly leaving: Leaving;
  /** What the account may choose from, read once. */
  readonly choices: () => Promise<Choices>;
}

export const ConsoleContext = createContext<Console | undefined>(undefined);

export function useConsole(): Console {
  const console = useContext(ConsoleContext);
  if (console === undefined) throw new Error('a screen is shown outside of the console');
  return console;
}
