import type { ShownToken } from '../api.ts';
import { TEXTS } from '../texts.ts';

export interface BadgeProps {
  readonly kind: string;
  readonly children: string;
}

export function Badge({ kind, children }: BadgeProps) {
  return <span class={`badge ${kind}`}>{children}</span>;
}

const KINDS = {
  active: 'good',
  suspended: 'warning',
  expired: 'neutral',
  revoked: 'bad',
  ancestor_ended: 'neutral',
} as const;

export interface StateBadgeProps {
  readonly token: Pick<ShownToken, 'state' | 'elevates'>;
}

export function StateBadge({ token: { state, elevates } }: StateBadgeProps) {
  // An elevation also ends if its parent lives on, but was changed.
  const isElevation = elevates !== undefined && state === 'ancestor_ended';
  const text = isElevation ? TEXTS.token.ended : TEXTS.states[state];
  return <Badge kind={`${KINDS[state]} state`}>{text}</Badge>;
}

/** The kind of a finding of the review, in a word. */
export function FindingBadge({ code }: { readonly code: string }) {
  const names: Readonly<Record<string, string>> = TEXTS.review.codes;
  return <Badge kind="warning">{names[code] ?? code}</Badge>;
}
