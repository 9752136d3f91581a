import type { AskedScope } from '../../scope/index.ts';
import type { NodeRequest } from '../node/listener.ts';
import type { BearerGuard } from './guard.ts';
import { type RouteNeed, readRefusal, readRoute } from './route.ts';

/** The parts of Koa's context that the guard uses. */
export type KoaContextLike = {
  /** The request of Node. */
  readonly req: NodeRequest;
  /** The target as it came, before a mount cut it. */
  readonly originalUrl: string;
  /** What middlewares share. */
  readonly state: object;
  /** The status of the response. */
  status: number;
  /** The body of the response. */
  body: unknown;
  /** Sets headers of the response. */
  set(headers: Record<string, string>): void;
};

/** A middleware for Koa. */
export type KoaGuard = (context: KoaContextLike, next: () => Promise<unknown>) => Promise<void>;

/**
 * Turns a guard into a middleware for Koa 2 and 3. It sets `ctx.state.token` and continues, or makes the
 * refusal the response: what follows is not called then. It looks at `ctx.originalUrl`, so koa-mount and
 * a router's prefix do not change what a request needs. It does not read the body. What the guard throws
 * goes to Koa.
 *
 * For the type of `ctx.state.token`: `new Koa<{ token: Token }>()`.
 *
 * @param need the scope that the token must cover, instead of the one of each request
 * @throws {TokenError} `invalid_options`
 * @example
 * app.use(koaGuard(guard));
 * router.post('/refunds', koaGuard(guard, { scope: 'POST:shop.example/refunds' }), handler);
 */
export function koaGuard<Entry extends string, const Asked extends string = never>(
  guard: BearerGuard<Entry>,
  need?: RouteNeed<AskedScope<Entry, Asked>>,
): KoaGuard {
  const route = readRoute(guard, need);
  return async (context, next) => {
    // Within an Express app, Koa sees what Express left of the target.
    const target = context.req.originalUrl ?? context.originalUrl;
    const outcome = await guard(context.req, { ...route, target });
    if (outcome.ok) {
      Object.assign(context.state, { token: outcome.token });
      await next();
      return;
    }
    const { status, headers, body } = await readRefusal(outcome.response, context.req);
    context.status = status;
    context.set(headers);
    context.body = body;
  };
}
