// A token with many descendants, and the answers of a service about them.
import type { TokenService } from '../../src/service.ts';
import type { IssuedToken } from '../../src/token/record.ts';
import { SCOPE } from '../support.ts';

const NEED = { scope: SCOPE };
/** With 4 children per token, 10 000 descendants fit into the 8 generations allowed. */
const CHILDREN = 4;
const CONCURRENT_CALLS = 200;

export interface Family {
  readonly root: IssuedToken;
  /** The values of its descendants. */
  readonly values: readonly string[];
}

/** Derives `size` tokens from one, directly and from each other, the older generations first. */
export async function newFamily(tokens: TokenService, size: number): Promise<Family> {
  const root = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
  const all = [root.value];
  while (all.length <= size) {
    const from = Math.floor((all.length - 1) / CHILDREN);
    const parents: string[] = [];
    for (let index = from; index < all.length && parents.length < CONCURRENT_CALLS; index += 1) {
      const missing = Math.min(CHILDREN * (index + 1), size) - (all.length - 1) - parents.length;
      parents.push(...Array.from({ length: Math.max(0, missing) }, () => all[index] as string));
    }
    const made = await Promise.all(
      parents.map((parent) => tokens.derive(parent, { scopes: [SCOPE] })),
    );
    all.push(...made.map(({ value }) => value));
  }
  return { root, values: all.slice(1) };
}

/** How many values a service accepts from its cache. */
export function acceptedFromMemory(tokens: TokenService, values: readonly string[]): number {
  return values.filter((value) => tokens.verifySync(value, NEED)?.ok).length;
}

/** Verifies values, and counts the answers by `accepted` or the reason. */
export async function answersTo(
  tokens: TokenService,
  values: readonly string[],
): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  for (let start = 0; start < values.length; start += CONCURRENT_CALLS) {
    const some = values.slice(start, start + CONCURRENT_CALLS);
    for (const { reason } of await Promise.all(some.map((value) => tokens.verify(value, NEED)))) {
      const answer = reason ?? 'accepted';
      counts[answer] = (counts[answer] ?? 0) + 1;
    }
  }
  return counts;
}
