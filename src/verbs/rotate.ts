import { readAccount, readInput, rotateOptions } from '../inputs/schemas.ts';
import type { CancelRotationOptions, RotateOptions } from '../inputs/types.ts';
import type { Token } from '../token/record.ts';
import { countDescendants, endDescendants } from './descendants.ts';
import type { ServiceParts } from './parts.ts';

/** Gives a token a new value, or drops one that waits. */
export async function rotate(
  parts: ServiceParts,
  account: string,
  valueOrId: string,
  options: RotateOptions | CancelRotationOptions,
): Promise<Token> {
  const now = parts.now();
  const owner = readAccount(account);
  const input = readInput(rotateOptions(), options);
  const { token, record } = await parts.rotations.rotate(owner, valueOrId, input, now);
  if (input.cancel === true) return token;
  if (input.endDerived === true) await endDescendants(parts, record, now);
  const descendants = await countDescendants(parts, record, now);
  return Object.freeze({ ...token, descendants });
}
