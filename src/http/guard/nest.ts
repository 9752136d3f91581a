import type { IncomingMessage, ServerResponse } from 'node:http';
import { TokenError } from '../../errors.ts';
import type { AskedScope } from '../../scope/index.ts';
import { sendResponse } from '../node/sending.ts';
import type { BearerGuard } from './guard.ts';
import { type RouteNeed, readRoute } from './route.ts';

/** The parts of Nest's execution context that the guard uses. */
export type NestContextLike = {
  /** The kind of the call. */
  getType(): string;
  /** The request and the response. */
  switchToHttp(): { getRequest(): unknown; getResponse(): unknown };
};

/** A guard for Nest, as `CanActivate` says. */
export type NestGuard = {
  /** Whether the handler may be called. If not, the refusal has been sent. */
  canActivate(context: NestContextLike): Promise<boolean>;
};

/**
 * Turns a guard into a guard for Nest, on Express or Fastify, for the application, a controller or a route. It
 * sets `token` of the request, or sends the refusal: your handler is not called then. A global prefix
 * and versions in the path do not change what a request needs. It does not read the body. What the guard
 * throws goes to your exception filters.
 *
 * After a refusal Nest makes its own `ForbiddenException`. Your exception filters must do nothing
 * if `response.headersSent`, as Nest's own does.
 *
 * @param need the scope that the token must cover, instead of the one of each request
 * @throws {TokenError} `invalid_options`; the guard itself throws `invalid_request` for a call that is
 * not HTTP
 * @example
 * app.useGlobalGuards(nestGuard(guard));
 * // @UseGuards(nestGuard(guard, { scope: 'POST:shop.example/refunds' }))
 */
export function nestGuard<Entry extends string, const Asked extends string = never>(
  guard: BearerGuard<Entry>,
  need?: RouteNeed<AskedScope<Entry, Asked>>,
): NestGuard {
  const route = readRoute(guard, need);
  return {
    async canActivate(context) {
      if (context.getType() !== 'http') {
        throw new TokenError('invalid_request', 'nestGuard guards HTTP calls only');
      }
      const http = context.switchToHttp();
      const request = http.getRequest() as Wrapped<IncomingMessage>;
      const outcome = await guard(rawOf(request), route);
      if (outcome.ok) Object.assign(request, { token: outcome.token });
      else
        await sendResponse(outcome.response, rawOf(http.getResponse() as Wrapped<ServerResponse>));
      return outcome.ok;
    },
  };
}

/** Fastify wraps the objects of Node, and Express extends them. */
type Wrapped<Raw extends object> = Raw & { readonly raw?: Raw };

function rawOf<Raw extends object>(wrapped: Wrapped<Raw>): Raw {
  return wrapped.raw ?? wrapped;
}
