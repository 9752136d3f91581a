import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Selection } from './selection.ts';
import type { Branch } from './tree.ts';

/** The state of a picker, which all its rows share. */
export interface Picking {
  readonly selection: Selection;
  readonly change: (next: Selection) => void;
  readonly open: ReadonlySet<Branch>;
  readonly toggle: (branch: Branch) => void;
}

export const PickingContext = createContext<Picking | undefined>(undefined);

export function usePicking(): Picking {
  const picking = useContext(PickingContext);
  if (picking === undefined) throw new Error('a row is shown outside of a picker');
  return picking;
}
