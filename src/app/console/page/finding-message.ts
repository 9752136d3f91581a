import type { Finding } from './api.ts';
import { exactTime, relativeTime } from './controls/time.tsx';
import { LANGUAGE, TEXTS } from './texts.ts';

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
