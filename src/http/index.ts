export { type Addressed, safeUrl } from '../values/safe-url.ts';
export type { HttpErrorCode } from './errors.ts';
export { type ForwardedAddressOptions, forwardedAddress } from './forwarded-address.ts';
export { type ExpressGuard, expressGuard } from './guard/express.ts';
export { type FastifyGuard, type FastifyReplyLike, fastifyGuard } from './guard/fastify.ts';
export {
  type BearerGuard,
  type BearerGuardOptions,
  bearerGuard,
  type GuardedNodeRequest,
  type GuardedRequest,
  type GuardNeed,
  type GuardOutcome,
  type GuardReason,
  type GuardRefusal,
} from './guard/guard.ts';
export { type HonoContextLike, type HonoGuard, honoGuard } from './guard/hono.ts';
export { type KoaContextLike, type KoaGuard, koaGuard } from './guard/koa.ts';
export { type NestContextLike, type NestGuard, nestGuard } from './guard/nest.ts';
export { type NextGuard, nextGuard } from './guard/next.ts';
export type { RouteNeed } from './guard/route.ts';
export { type TokenHandler, tokenHandler } from './handler.ts';
export type { TokenHandlerOptions } from './handler-options.ts';
export { type GracefulStopOptions, gracefulStop } from './node/graceful-stop.ts';
export { type FetchHandler, type NodeRequest, toNodeListener } from './node/listener.ts';
export { sendResponse } from './node/sending.ts';
export {
  type Authenticate,
  type Credentials,
  type FixedAccount,
  type FixedAccountsOptions,
  fixedAccounts,
  hashPassword,
} from './sign-in/basic-auth.ts';
export {
  type Attempt,
  type FailureLimiter,
  type FailureLimiterOptions,
  failureLimiter,
  type PointsLimiter,
  remoteAddress,
} from './sign-in/login-limiter.ts';
export type { SessionAccount, SignIn } from './sign-in/sign-in.ts';
