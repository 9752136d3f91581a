import type { AskedScope } from '../../scope/index.ts';
import type { Token } from '../../token/record.ts';
import type { BearerGuard } from './guard.ts';
import { type RouteNeed, readRoute } from './route.ts';

/** Guards a route handler, which gets the token beside `params`. */
export type NextGuard = <Req extends Request, Context extends object>(
  handler: (
    request: Req,
    context: Context & { readonly token: Token },
  ) => Response | Promise<Response>,
) => (request: Req, context: Context) => Promise<Response>;

/**
 * Turns a guard into a wrapper for route handlers of Next.js, and of anything else that calls
 * `(request, context)` for a `Response`. The handler gets `token` in its second argument, or is not
 * called: the refusal is the response then. It does not read the body. What the guard throws goes to
 * Next.js.
 *
 * It looks at the URL of the request, from which the server has already removed `..`.
 *
 * @param need the scope that the token must cover, instead of the one of each request
 * @throws {TokenError} `invalid_options`
 * @example
 * const guarded = nextGuard(guard);
 * const GET = guarded((request, { token }) => Response.json({ account: token.account }));
 */
export function nextGuard<Entry extends string, const Asked extends string = never>(
  guard: BearerGuard<Entry>,
  need?: RouteNeed<AskedScope<Entry, Asked>>,
): NextGuard {
  const route = readRoute(guard, need);
  return (handler) => async (request, context) => {
    const outcome = await guard(request, route);
    if (!outcome.ok) return outcome.response;
    return handler(request, { ...context, token: outcome.token });
  };
}
