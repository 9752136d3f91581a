export { safeUrl } from '../values/safe-url.ts';
export type { HttpErrorCode } from './errors.ts';
export { forwardedAddress } from './forwarded-address.ts';
export { expressGuard } from './guard/express.ts';
export { fastifyGuard } from './guard/fastify.ts';
export {
  type BearerGuard,
  type BearerGuardOptions,
  bearerGuard,
  type GuardedRequest,
  type GuardNeed,
  type GuardOutcome,
  type GuardRefusal,
} from './guard/guard.ts';
export { honoGuard } from './guard/hono.ts';
export { koaGuard } from './guard/koa.ts';
export { nestGuard } from './guard/nest.ts';
export { nextGuard } from './guard/next.ts';
export { type TokenHandler, tokenHandler } from './handler.ts';
export type { SignInWay, TokenHandlerOptions } from './handler-options.ts';
export { gracefulStop } from './node/graceful-stop.ts';
export { toNodeListener } from './node/listener.ts';
export { sendResponse } from './node/sending.ts';
export { type OAuthMetadataOptions, oauthMetadata } from './oauth/metadata.ts';
export type { OAuthOptions } from './oauth/token-endpoint.ts';
export { type ProtectedResourceOptions, protectedResource } from './protected-resource.ts';
export { errorResponse } from './responses.ts';
export {
  type Authenticate,
  type CallerAccount,
  type Credentials,
  type FixedAccount,
  fixedAccounts,
  hashPassword,
} from './sign-in/basic-auth.ts';
export { type FailureLimiter, failureLimiter, remoteAddress } from './sign-in/login-limiter.ts';
export type { SignIn } from './sign-in/sign-in.ts';
