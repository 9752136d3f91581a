import type { IncomingMessage } from 'node:http';
import * as z from 'zod/mini';
import { TokenError } from '../../errors.ts';
import { once } from '../../inputs/once.ts';
import { checkOptions, strict } from '../../inputs/schemas.ts';
import { likeness } from '../../inputs/scope-hints.ts';
import { safeParseScope, safeToScope } from '../../scope/grammar.ts';
import type { Scope } from '../../scope/index.ts';
import { parameterFault } from '../../scope/list.ts';
import type { BearerGuard, GuardNeed } from './guard.ts';

/** What a guarded route needs, if it is not the scope of each request itself. */
export interface RouteNeed<Asked extends string = string> {
  /** The scope that the token must cover, instead of the request. */
  readonly scope: Scope | Asked;
}

/**
 * Reads the arguments of a ready-made guard when it is made: a misspelled scope stops the start of the
 * program, not a request.
 *
 * @throws {TokenError} `invalid_options`
 */
export function readRoute(guard: BearerGuard, need: RouteNeed | undefined): GuardNeed | undefined {
  if (typeof guard !== 'function') {
    throw new TokenError('invalid_options', 'guard must be one that bearerGuard(…) returned');
  }
  if (need === undefined) return undefined;
  const { scope } = checkOptions(routeNeed(), need);
  const reading = safeToScope(scope, safeParseScope);
  if (!reading.ok) throw invalidScope(reading.message + likeness(scope));
  const fault = parameterFault(reading.scope);
  if (fault !== undefined) throw invalidScope(fault.message);
  return { scope: reading.scope };
}

function invalidScope(fault: string): TokenError {
  return new TokenError('invalid_options', `scope is not valid: ${fault}`);
}

const routeNeed = once(() =>
  strict({ scope: z.optional(z.unknown()) }, 'the need of a route must be'),
);

/** A refusal, to be sent by the means of a framework. */
export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Reads the response of a guard, for a request of Node. */
export async function readRefusal(
  response: Response,
  incoming: Pick<IncomingMessage, 'complete' | 'httpVersionMajor'>,
): Promise<Refusal> {
  // Always waits: whether a request without a body is complete is known only after a turn.
  const body = await response.text();
  const isCutOff = incoming.httpVersionMajor === 1 && !incoming.complete;
  return {
    status: response.status,
    // Otherwise the rest of a body that nobody reads would be taken for the next request.
    headers: { ...Object.fromEntries(response.headers), ...(isCutOff && { connection: 'close' }) },
    body,
  };
}
