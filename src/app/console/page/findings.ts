import type { Api, Finding } from './api.ts';
import type { TEXTS } from './texts.ts';

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
