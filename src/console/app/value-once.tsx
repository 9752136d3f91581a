import type { FreshToken } from './api.ts';
import { Button } from './controls/button.tsx';
import { CopyButton } from './controls/copy-button.tsx';
import { Screen } from './controls/screen.tsx';
import { TEXTS } from './texts.ts';

export interface ValueOnceProps {
  readonly token: FreshToken;
  /** Leaves the screen; after that, the value is nowhere in the page. */
  readonly onDone: () => void;
}

/** Shows the value of a token that was just issued or rotated. */
export function ValueOnce({ token, onDone }: ValueOnceProps) {
  return (
    <Screen title={token.name ?? TEXTS.list.unnamed}>
      <code>{token.value}</code> <CopyButton text={token.value} />
      <Button onClick={onDone}>{TEXTS.actions.close}</Button>
    </Screen>
  );
}
