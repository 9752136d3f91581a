import type { AdviseOptions } from '../../../inputs/types.ts';
import type { TokenClient } from '../account/index.ts';
import type { Outcome } from '../command.ts';
import { adviceOutcome } from './token-output.ts';

/** Removes the unused scopes, unless the token has no others. */
export async function applyAdvice(
  client: TokenClient,
  id: string,
  options: AdviseOptions,
): Promise<Outcome> {
  // Read before the advice, so that the patch fails if the token changes between the two.
  const { version } = await client.get(id, {});
  const advice = await client.advise(id, options);
  const { unused, kept } = advice;
  if (unused.length === 0 || kept.length === 0) return adviceOutcome(advice, []);
  await client.patch(id, { removeScopes: unused }, { ifVersion: version });
  return adviceOutcome(advice, unused);
}
