import type { ServerResponse } from 'node:http';
import type { AskedScope } from '../../scope/index.ts';
import type { Token } from '../../token/record.ts';
import { sendResponse } from '../node/sending.ts';
import type { BearerGuard, GuardedNodeRequest } from './guard.ts';
import { type RouteNeed, readRoute } from './route.ts';

// Needs no types of Express, and does nothing where there are none.
declare global {
  namespace Express {
    interface Request {
      /** The token that `expressGuard` has verified, without its value; undefined where no guard ran. */
      token?: Token;
    }
  }
}

/** A middleware for Express 4 and 5, Connect, and what is made like them. */
export type ExpressGuard = (
  request: GuardedNodeRequest,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => Promise<void>;

/**
 * Turns a guard into a middleware for Express. It sets `request.token` and continues, or sends the refusal:
 * your handler is not called then. It looks at `originalUrl`, so a router's path does not change what a
 * request needs. It does not read the body. What the guard throws goes to `next`.
 * `request.token` has its type wherever this is imported.
 *
 * @param need the scope that the token must cover, instead of the one of each request
 * @throws {TokenError} `invalid_options`
 * @example
 * app.use('/orders', expressGuard(guard));
 * app.post('/refunds', expressGuard(guard, { scope: 'POST:shop.example/refunds' }), handler);
 */
export function expressGuard<Entry extends string, const Asked extends string = never>(
  guard: BearerGuard<Entry>,
  need?: RouteNeed<AskedScope<Entry, Asked>>,
): ExpressGuard {
  const route = readRoute(guard, need);
  return async (request, response, next) => {
    try {
      const outcome = await guard(request, route);
      if (!outcome.ok) return await sendResponse(outcome.response, response);
      Object.assign(request, { token: outcome.token });
    } catch (error) {
      return next(error);
    }
    next();
  };
}
