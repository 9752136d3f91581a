// What tokenwright/http declares, as published. Written by: npm run api

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { Clock, Explanation, RefusalReason, Token, TokenErrorCode, TokenService } from 'tokenwright';
import type { Scope } from 'tokenwright/scope';

export type Addressed = string | URL | {
  readonly url?: string | undefined;
  readonly originalUrl?: string | undefined;
};

export interface Attempt {
  readonly username: string;
  readonly address: string;
}

export type Authenticate = (credentials: Credentials, request: Request) => string | null | Promise<string | null>;

export type BearerGuard = (request: GuardedRequest, need?: GuardNeed) => GuardOutcome | Promise<GuardOutcome>;

export interface BearerGuardOptions {
  readonly tokens: Pick<TokenService, 'verify' | 'verifySync'>;
  readonly domain: string;
  readonly rootName?: string | undefined;
  readonly realm?: string | undefined;
  readonly onRefusal?: ((refusal: GuardRefusal) => void) | undefined;
}

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

export interface FailureLimiter {
  waitSeconds(attempt: Attempt): number | Promise<number>;
  failed(attempt: Attempt): number | Promise<number>;
}

export interface FailureLimiterOptions {
  readonly userAndAddress?: PointsLimiter | undefined;
  readonly address?: PointsLimiter | undefined;
  readonly user?: PointsLimiter | undefined;
}

export interface FixedAccount {
  readonly username: string;
  readonly password?: string | undefined;
  readonly passwordHash?: string | undefined;
  readonly account?: string | undefined;
}

export interface GuardNeed {
  readonly scope?: Scope | string;
  readonly target?: string;
}

export type GuardOutcome = {
  readonly ok: true;
  readonly token: Token;
  readonly grantedBy: string;
} | {
  readonly ok: false;
  readonly reason: GuardReason;
  readonly response: Response;
};

export type GuardReason = RefusalReason | 'missing' | 'ambiguous_credentials' | 'unavailable';

export interface GuardRefusal {
  readonly reason: GuardReason;
  readonly needed?: string | undefined;
  readonly explanation?: Explanation | undefined;
}

export type GuardedNodeRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers'> & {
  readonly rawHeaders?: readonly string[] | undefined;
  readonly originalUrl?: string | undefined;
};

export type GuardedRequest = Pick<Request, 'method' | 'url' | 'headers'> | GuardedNodeRequest;

export type HttpErrorCode = TokenErrorCode | 'invalid_json' | 'unauthenticated' | 'invalid_token' | 'insufficient_scope' | 'cross_site' | 'method_not_allowed' | 'payload_too_large' | 'uri_too_long' | 'unsupported_media_type' | 'rate_limited' | 'overloaded' | 'revocation_unconfirmed' | 'internal';

export interface NodeRequest extends IncomingMessage {
  originalUrl?: string;
  body?: unknown;
}

export interface PointsLimiter {
  readonly points: number;
  get(key: string): Promise<{
    readonly consumedPoints: number;
    readonly msBeforeNext: number;
  } | null>;
  consume(key: string): Promise<unknown>;
}

export interface TokenHandler {
  (request: Request): Promise<Response>;
  readonly basePath: string;
}

export interface TokenHandlerOptions {
  readonly tokens: TokenService;
  readonly authenticate: Authenticate;
  readonly basePath?: string | undefined;
  readonly acceptLegacyBody?: boolean | undefined;
  readonly pathTokens?: 'any' | 'id-only' | undefined;
  readonly introspection?: {
    readonly authenticate: Authenticate;
  } | undefined;
  readonly revocation?: boolean | undefined;
  readonly docs?: boolean | undefined;
  readonly maxBodyBytes?: number | undefined;
  readonly bodyTimeoutMs?: number | undefined;
  readonly maxInFlight?: number | undefined;
  readonly limiter?: FailureLimiter | undefined;
  readonly clientAddress?: ((request: Request) => string) | undefined;
  readonly onError?: ((error: unknown) => void) | undefined;
}

export declare function bearerGuard(options: BearerGuardOptions): BearerGuard;

export declare function failureLimiter(options: FailureLimiterOptions): FailureLimiter;

export declare function fixedAccounts(accounts: readonly FixedAccount[], { clock }?: {
  readonly clock?: Clock;
}): (credentials: Credentials) => Promise<string | null>;

export declare function hashPassword(password: string): string;

export declare function remoteAddress(request: Request): string;

export declare function safeUrl(requestOrUrl: Addressed): string;

export declare function sendResponse(response: Response, to: ServerResponse | Http2ServerResponse): Promise<void>;

export declare function toNodeListener(handler: TokenHandler): (request: NodeRequest | Http2ServerRequest, response: ServerResponse | Http2ServerResponse) => Promise<void>;

export declare function tokenHandler(options: TokenHandlerOptions): TokenHandler;
