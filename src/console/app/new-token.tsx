import { Screen } from './controls/screen.tsx';
import { TEXTS } from './texts.ts';

export function NewTokenScreen() {
  return <Screen title={TEXTS.newToken.title}>…</Screen>;
}
