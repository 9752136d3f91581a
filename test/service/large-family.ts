// A token with many descendants, and how another node takes its end.
import type { TokenService } from '../../src/service.ts';
import type { IssuedToken } from '../../src/token.ts';
import { SCOPE } from '../support.ts';

const NEED = { scope: SCOPE };
/** With 4 children of each, 10 000 descendants fill 8 generations in part. */
const CHILDREN = 4;
const TOGETHER = 200;

export interface Family {
  readonly root: IssuedToken;
  /** The values of its descendants. */
  readonly values: readonly string[];
}

/** Derives so many tokens from one, directly and from each other, the older generations first. */
export async function newFamily(tokens: TokenService, size: number): Promise<Family> {
  const root = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
  const all = [root.value];
  while (all.length <= size) {
    const from = Math.floor((all.length - 1) / CHILDREN);
    const parents: string[] = [];
    for (let place = from; place < all.length && parents.length < TOGETHER; place += 1) {
      const missing = Math.min(CHILDREN * (place + 1), size) - (all.length - 1) - parents.length;
      parents.push(...Array.from({ length: Math.max(0, missing) }, () => all[place] as string));
    }
    const made = await Promise.all(
      parents.map((parent) => tokens.derive(parent, { scopes: [SCOPE] })),
    );
    all.push(...made.map(({ value }) => value));
  }
  return { root, values: all.slice(1) };
}

/** How many values a service accepts out of its cache. */
export function acceptedFromMemory(tokens: TokenService, values: readonly string[]): number {
  return values.filter((value) => tokens.verifySync(value, NEED)?.ok).length;
}

/** Verifies values, and counts the answers by `accepted` or the reason. */
export async function answersTo(
  tokens: TokenService,
  values: readonly string[],
): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  for (let start = 0; start < values.length; start += TOGETHER) {
    const some = values.slice(start, start + TOGETHER);
    for (const { reason } of await Promise.all(some.map((value) => tokens.verify(value, NEED)))) {
      const answer = reason ?? 'accepted';
      counts[answer] = (counts[answer] ?? 0) + 1;
    }
  }
  return counts;
}
