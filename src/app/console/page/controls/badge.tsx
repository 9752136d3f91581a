import type { ShownToken } from '../api.ts';
import { TEXTS } from '../texts.ts';

export interface BadgeProps {
  readonly kind: string;
  readonly children: string;
}

function Badge({ kind, children }: BadgeProps) {
  return <span class={`badge ${kind}`}>{children}</span>;
}

const KINDS = {
  active: 'good',
  suspended: 'warning',
  expired: 'neutral',
  revoked: 'bad',
  ancestor_ended: 'neutral',
} as const;

export function StateBadge({ state }: Pick<ShownToken, 'state'>) {
  return <Badge kind={`${KINDS[state]} state`}>{TEXTS.states[state]}</Badge>;
}

/** The kind of a finding of the review, in a word. */
export function FindingBadge({ code }: { readonly code: string }) {
  const names: Readonly<Record<string, string>> = TEXTS.review.codes;
  return <Badge kind="warning">{names[code] ?? code}</Badge>;
}
