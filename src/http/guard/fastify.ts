import type { IncomingMessage } from 'node:http';
import type { AskedScope } from '../../scope/index.ts';
import type { BearerGuard } from './guard.ts';
import { type RouteNeed, readRefusal, readRoute } from './route.ts';

/** The parts of Fastify's reply that the guard uses. */
export type FastifyReplyLike = {
  /** Sets the status. */
  code(status: number): unknown;
  /** Sets headers. */
  headers(headers: Record<string, string>): unknown;
  /** Sends a body. */
  send(body: Uint8Array): unknown;
};

/** A hook for Fastify: `onRequest`, `preParsing`, `preValidation` or `preHandler`. */
export type FastifyGuard = (
  request: { readonly raw: IncomingMessage },
  reply: FastifyReplyLike,
) => Promise<unknown>;

/**
 * Turns a guard into a hook for Fastify, for all routes of a plugin or for one route. It sets `request.token`,
 * or sends the refusal by `reply`, with the headers that earlier hooks have set there: your handler is
 * not called then. It looks at the target as the client sent it, so a prefix does not change what a
 * request needs. As `onRequest` it runs before the body is read. What the guard throws goes to your error
 * handler.
 *
 * Before the first request, call `app.decorateRequest('token', null)`. Then `request.getDecorator<Token>('token')`
 * is the token with its type, on the routes that the guard protects (Fastify 5.3 or later).
 *
 * @param need the scope that the token must cover, instead of the one of each request
 * @throws {TokenError} `invalid_options`
 * @example
 * app.addHook('onRequest', fastifyGuard(guard));
 * const need = { scope: 'POST:shop.example/refunds' };
 * app.post('/refunds', { onRequest: fastifyGuard(guard, need) }, handler);
 */
export function fastifyGuard<Entry extends string, const Asked extends string = never>(
  guard: BearerGuard<Entry>,
  need?: RouteNeed<AskedScope<Entry, Asked>>,
): FastifyGuard {
  const route = readRoute(guard, need);
  return async (request, reply) => {
    const outcome = await guard(request.raw, route);
    if (outcome.ok) {
      Object.assign(request, { token: outcome.token });
      return;
    }
    const { status, headers, body } = await readRefusal(outcome.response, request.raw);
    reply.code(status);
    reply.headers(headers);
    // As bytes: to a text Fastify would add a charset, which JSON does not have.
    reply.send(Buffer.from(body));
    // Returned, so that Fastify waits for the reply and runs no further hook.
    return reply;
  };
}
