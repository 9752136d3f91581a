import type { AskedScope } from '../../scope/index.ts';
import { isIncoming } from '../request.ts';
import type { BearerGuard, GuardedNodeRequest } from './guard.ts';
import { type RouteNeed, readRoute } from './route.ts';

/** The parts of Hono's context that the guard uses. */
export type HonoContextLike = {
  /** The bindings: on Node, `incoming` is the request of Node. */
  readonly env: unknown;
  /** The request, whose `raw` is the one of Fetch. */
  readonly req: { readonly raw: Request };
  /** Sets a variable of the request. */
  readonly set: (key: never, value: never) => void;
};

/** A middleware for Hono. */
export type HonoGuard = (
  context: HonoContextLike,
  next: () => Promise<void>,
) => Promise<Response | undefined>;

/**
 * Turns a guard into a middleware for Hono. It sets the variable `token`, for `c.get('token')`, and continues,
 * or returns the refusal: your handler is not called then. It does not read the body. What the guard
 * throws goes to `onError`.
 *
 * On Node with `@hono/node-server` it looks at the target as the client sent it. Elsewhere it looks at
 * the URL of the request, which `app.mount` cuts: behind that, name the scope.
 *
 * For the type of the variable: `new Hono<{ Variables: { token: Token } }>()`.
 *
 * @param need the scope that the token must cover, instead of the one of each request
 * @throws {TokenError} `invalid_options`
 * @example
 * app.use('/orders/*', honoGuard(guard));
 * app.post('/refunds', honoGuard(guard, { scope: 'POST:shop.example/refunds' }), handler);
 */
export function honoGuard<Entry extends string, const Asked extends string = never>(
  guard: BearerGuard<Entry>,
  need?: RouteNeed<AskedScope<Entry, Asked>>,
): HonoGuard {
  const route = readRoute(guard, need);
  return async (context, next) => {
    const outcome = await guard(incomingOf(context.env) ?? context.req.raw, route);
    if (!outcome.ok) return outcome.response;
    context.set('token' as never, outcome.token as never);
    await next();
    return undefined;
  };
}

function incomingOf(env: unknown): GuardedNodeRequest | undefined {
  const { incoming } = Object(env) as { readonly incoming?: unknown };
  return isIncoming(incoming) ? incoming : undefined;
}
