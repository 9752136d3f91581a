import type { ShownToken } from './api.ts';
import { TEXTS } from './texts.ts';

/** The name of a token, or a text in its place. */
export function nameOf({ name }: Pick<ShownToken, 'name'>): string {
  return name ?? TEXTS.list.unnamed;
}

/** Whether a token has neither expired nor been revoked. A suspended one can be resumed. */
export function isLive({ state }: Pick<ShownToken, 'state'>): boolean {
  return state === 'active' || state === 'suspended';
}
