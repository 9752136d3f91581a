export { type Addressed, safeUrl } from '../values/safe-url.ts';
export {
  type Authenticate,
  type Credentials,
  type FixedAccount,
  type FixedAccountsOptions,
  fixedAccounts,
  hashPassword,
} from './basic-auth.ts';
export type { HttpErrorCode } from './errors.ts';
export { type ForwardedAddressOptions, forwardedAddress } from './forwarded-address.ts';
export { type GracefulStopOptions, gracefulStop } from './graceful-stop.ts';
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
} from './guard.ts';
export { type TokenHandler, tokenHandler } from './handler.ts';
export type { TokenHandlerOptions } from './handler-options.ts';
export {
  type Attempt,
  type FailureLimiter,
  type FailureLimiterOptions,
  failureLimiter,
  type PointsLimiter,
  remoteAddress,
} from './login-limiter.ts';
export { type ExpressGuard, expressGuard } from './middleware/express.ts';
export { type FastifyGuard, type FastifyReplyLike, fastifyGuard } from './middleware/fastify.ts';
export { type HonoContextLike, type HonoGuard, honoGuard } from './middleware/hono.ts';
export { type KoaContextLike, type KoaGuard, koaGuard } from './middleware/koa.ts';
export { type NestContextLike, type NestGuard, nestGuard } from './middleware/nest.ts';
export { type NextGuard, nextGuard } from './middleware/next.ts';
export type { RouteNeed } from './middleware/route.ts';
export { type FetchHandler, type NodeRequest, toNodeListener } from './node.ts';
export { sendResponse } from './sending.ts';
export type { SessionAccount, SignIn } from './sign-in.ts';
