import type { WireRequest } from '../../../http/wire.ts';
import type { Approval } from './api.ts';

const CODE = /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/;

/** Reads a code as somebody types it. Case, spaces and hyphens do not count. `undefined` if it cannot be one. */
export function readCode(typed: string): string | undefined {
  const code = typed.replace(/[\s\-\u2010-\u2015]/g, '').toUpperCase();
  return CODE.test(code) ? code : undefined;
}

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;
const LIFETIMES = [
  MINUTE,
  5 * MINUTE,
  15 * MINUTE,
  HOUR,
  8 * HOUR,
  DAY,
  7 * DAY,
  30 * DAY,
  90 * DAY,
];

/** The lifetimes to choose from, in seconds: the one that was asked for, and shorter ones before it. */
export function lifetimesWithin(ttl: number): readonly number[] {
  return [...LIFETIMES.filter((seconds) => seconds < ttl), ttl];
}

/** What a person has changed about a request. */
export interface ApprovalDraft {
  /** The scopes that are left out. */
  readonly dropped: ReadonlySet<string>;
  /** In seconds. */
  readonly ttl: number;
}

export function draftOfRequest({ ttl }: WireRequest): ApprovalDraft {
  return { dropped: new Set(), ttl };
}

/** Leaves scopes out, or takes them in again. */
export function withScopes(
  draft: ApprovalDraft,
  scopes: readonly string[],
  isKept: boolean,
): ApprovalDraft {
  const dropped = new Set(draft.dropped);
  for (const scope of scopes) {
    if (isKept) dropped.delete(scope);
    else dropped.add(scope);
  }
  return { ...draft, dropped };
}

/** What is approved: exactly the scopes that were shown and are still ticked. */
export function approvalOf({ scopes }: WireRequest, { dropped, ttl }: ApprovalDraft): Approval {
  return { scopes: scopes.filter((scope) => !dropped.has(scope)), ttl };
}
