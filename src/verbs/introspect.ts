import { introspectOptions, readInput } from '../inputs/schemas.ts';
import type { IntrospectOptions } from '../inputs/types.ts';
import type { Token } from '../token/record.ts';
import type { ServiceParts } from './parts.ts';

/** Returns the active token that a value belongs to. */
export async function introspect(
  { now: clock, decider }: Pick<ServiceParts, 'now' | 'decider'>,
  value: string,
  options: IntrospectOptions,
): Promise<Token | undefined> {
  return decider.introspect(value, clock(), readInput(introspectOptions(), options));
}
