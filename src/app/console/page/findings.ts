import type { Api, Finding } from './api.ts';
import { exactTime, relativeTime } from './controls/time.tsx';
import { LANGUAGE, TEXTS } from './texts.ts';

/** An action on a finding. */
export type Action = keyof typeof TEXTS.review.actions;

/** The fitting actions, the best first; none for a code that this page does not know. */
export function actionsOn(code: string): readonly Action[] {
  const known: Readonly<Record<string, readonly Action[]>> = {
    unused: ['revoke'],
    never_used: ['revoke'],
    broad: ['scopes', 'narrow'],
    excess: ['narrow'],
    expiring: ['extend'],
    stale_secret: ['rotate'],
    orphaned_scope: ['remove'],
    suspended: ['resume', 'revoke'],
  };
  return known[code] ?? [];
}

/** Reads pages of findings and passes each on, until all are read or nobody wants them any more. */
export async function readFindings(
  api: Api,
  onRead: (findings: readonly Finding[], isLast: boolean) => boolean,
): Promise<void> {
  let cursor: string | undefined;
  do {
    const page = await api.review(cursor);
    cursor = page.cursor;
    if (!onRead(page.findings, cursor === undefined)) return;
  } while (cursor !== undefined);
}

/** The sentence of a finding. If this page does not know its code, the sentence of the service. */
export function messageOfFinding(finding: Finding): string {
  const { messages } = TEXTS.review;
  const { code, scopes, token } = finding;
  const counts = { count: scopes.length, all: token.scopes.length };
  switch (code) {
    case 'unused':
      return messages.unused({ time: relativeTime(finding.lastUsed ?? 0) });
    case 'never_used':
      return messages.never_used({ date: exactTime(finding.since ?? 0) });
    case 'broad':
      return messages.broad({ reasons: LANGUAGE.lists.format(reasonsOf(finding)) });
    case 'excess':
      return messages.excess(counts);
    case 'expiring':
      return messages.expiring({ date: exactTime(token.expire) });
    case 'stale_secret':
      return messages.stale_secret({ date: exactTime(finding.secretSince ?? 0) });
    case 'orphaned_scope':
      return messages.orphaned_scope(counts);
    case 'suspended':
      return messages.suspended({ date: exactTime(finding.suspendedAt ?? 0) });
    default:
      return finding.message;
  }
}

function reasonsOf({ reasons = [], covered = 0, entries = 0 }: Finding): string[] {
  const { every_method, whole_host, most_of_catalog } = TEXTS.review.reasons;
  const texts = {
    every_method,
    whole_host,
    most_of_catalog: most_of_catalog({ covered, entries }),
  };
  return reasons.map((reason) => texts[reason]);
}
