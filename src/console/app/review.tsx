import { Screen } from './controls/screen.tsx';
import { TEXTS } from './texts.ts';

export function ReviewScreen() {
  return <Screen title={TEXTS.review.title}>…</Screen>;
}
