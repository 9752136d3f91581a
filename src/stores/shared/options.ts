import { TokenError } from '../../errors.ts';

/**
 * Checks an option of a store.
 *
 * @throws {TokenError} `invalid_options`
 */
export function readWholeNumber(
  name: string,
  value: number,
  [min, max]: readonly [min: number, max: number],
): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new TokenError('invalid_options', `${name} must be a whole number from ${min} to ${max}`);
}

/**
 * Checks whether the host wants to read from a standby.
 *
 * @throws {TokenError} `invalid_options`
 */
export function readStandby({
  standby = 'refuse',
}: {
  readonly standby?: 'refuse' | 'allow' | undefined;
}): 'refuse' | 'allow' {
  if (standby === 'refuse' || standby === 'allow') return standby;
  throw new TokenError('invalid_options', 'standby must be "refuse" or "allow"');
}

/**
 * Checks whether the server may keep prepared statements. The text of a variable, such as `'false'`, would count
 * as true.
 *
 * @throws {TokenError} `invalid_options`
 */
export function readPrepare({
  prepare = true,
}: {
  readonly prepare?: boolean | undefined;
}): boolean {
  if (typeof prepare === 'boolean') return prepare;
  throw new TokenError('invalid_options', 'prepare must be true or false');
}
