// What tokenwright/http declares, as published. Written by: npm run api

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { Clock, Explanation, RefusalReason, Token, TokenErrorCode, TokenRequests, TokenService, Verdict } from 'tokenwright';
import type { AskedScope, Scope, ScopeCatalog } from 'tokenwright/scope';

export type Authenticate = (credentials: Credentials, request: Request) => CallerAccount | null | Promise<CallerAccount | null>;

export type BearerGuard<out Entry extends string = string> = <const Asked extends string = never>(request: GuardedRequest, need?: GuardNeed<AskedScope<Entry, Asked>>) => GuardOutcome | Promise<GuardOutcome>;

export interface BearerGuardOptions<Entry extends string = string> {
  readonly tokens: Pick<TokenService, 'verify' | 'verifySync'> & Knowing<Entry>;
  readonly domain: string;
  readonly catalog?: ScopeCatalog | undefined;
  readonly rootName?: string | undefined;
  readonly realm?: string | undefined;
  readonly resource?: string | undefined;
  clientAddress?(request: GuardedRequest): string | undefined;
  readonly onRefusal?: ((refusal: GuardRefusal) => void) | undefined;
  readonly onError?: ((error: unknown) => void) | undefined;
}

export type CallerAccount = string | {
  readonly account: string;
  readonly user: string;
};

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

export interface FailureLimiter {
  waitSeconds(attempt: Attempt): number | Promise<number>;
  failed(attempt: Attempt): number | Promise<number>;
  succeeded(attempt: Attempt): unknown;
}

export interface FixedAccount {
  readonly username: string;
  readonly password?: string | undefined;
  readonly passwordHash?: string | undefined;
  readonly account?: string | undefined;
}

export interface GuardNeed<Asked extends string = string> {
  readonly scope?: Scope | Asked;
  readonly target?: string;
}

export type GuardOutcome = {
  readonly ok: true;
  readonly token: Token;
  readonly grantedBy: string;
  readonly reason?: undefined;
  readonly response?: undefined;
} | {
  readonly ok: false;
  readonly token?: undefined;
  readonly grantedBy?: undefined;
  readonly reason: GuardReason;
  readonly response: Response;
};

export interface GuardRefusal {
  readonly reason: GuardReason;
  readonly detail?: Verdict['detail'] | 'host_invalid' | 'method_overridden';
  readonly needed?: string | undefined;
  readonly explanation?: Explanation | undefined;
}

export type GuardedRequest = Pick<Request, 'method' | 'url' | 'headers'> | GuardedNodeRequest;

export type HttpErrorCode = TokenErrorCode | 'invalid_json' | 'unauthenticated' | 'insufficient_scope' | 'address_denied' | 'limit_exceeded' | 'cross_site' | 'method_not_allowed' | 'payload_too_large' | 'uri_too_long' | 'unsupported_media_type' | 'overloaded' | 'revocation_unconfirmed' | 'usage_not_recorded' | 'internal';

export interface OAuthMetadataOptions extends Omit<OAuthOptions, 'requests'> {
  readonly requests?: TokenRequests | boolean | undefined;
  readonly base?: string | undefined;
  readonly introspection?: boolean | undefined;
}

export interface OAuthOptions {
  readonly issuer: string;
  readonly exchange?: boolean | undefined;
  readonly requests?: TokenRequests | undefined;
}

export interface ProtectedResourceOptions {
  readonly resource: string;
  readonly authorizationServers: readonly string[];
  readonly scopes?: readonly string[] | undefined;
}

export interface SignIn {
  readonly outcome: 'accepted' | 'refused' | 'limited' | 'unavailable';
  readonly username: string;
  readonly address?: string;
  readonly account?: string;
  readonly at: Date;
}

export type SignInWay = {
  readonly authenticate: Authenticate;
} | {
  readonly session: SessionAccount;
};

export interface TokenHandler {
  (request: Request): Promise<Response>;
  readonly basePath: string;
}

export interface TokenHandlerOptions {
  readonly tokens: TokenService;
  readonly authenticate?: Authenticate | undefined;
  readonly session?: SessionAccount | undefined;
  readonly basePath?: string | undefined;
  readonly acceptLegacyBody?: boolean | undefined;
  readonly pathTokens?: 'any' | 'id-only' | undefined;
  readonly introspection?: {
    readonly authenticate: Authenticate;
  } | undefined;
  readonly revocation?: boolean | undefined;
  readonly derivation?: boolean | undefined;
  readonly oauth?: OAuthOptions | undefined;
  readonly docs?: boolean | undefined;
  readonly maxBodyBytes?: number | undefined;
  readonly bodyTimeoutMs?: number | undefined;
  readonly sendTimeoutMs?: number | undefined;
  readonly maxInFlight?: number | undefined;
  readonly limiter?: FailureLimiter | undefined;
  readonly clientAddress?: ((request: Request) => string | undefined) | undefined;
  readonly onSignIn?: ((signIn: SignIn) => void) | undefined;
  readonly onError?: ((error: unknown) => void) | undefined;
}

export declare function bearerGuard<Entry extends string = string>(options: BearerGuardOptions<Entry>): BearerGuard<Entry>;

export declare function errorResponse(error: unknown): Response;

export declare function expressGuard<Entry extends string, const Asked extends string = never>(guard: BearerGuard<Entry>, need?: RouteNeed<AskedScope<Entry, Asked>>): ExpressGuard;

export declare function failureLimiter(options: FailureLimiterOptions): FailureLimiter;

export declare function fastifyGuard<Entry extends string, const Asked extends string = never>(guard: BearerGuard<Entry>, need?: RouteNeed<AskedScope<Entry, Asked>>): FastifyGuard;

export declare function fixedAccounts(accounts: readonly FixedAccount[], options?: FixedAccountsOptions): (credentials: Credentials) => Promise<string | null>;

export declare function forwardedAddress(options: ForwardedAddressOptions): (request: GuardedRequest) => string | undefined;

export declare function gracefulStop(server: Server, options?: GracefulStopOptions): () => Promise<number>;

export declare function hashPassword(password: string): string;

export declare function honoGuard<Entry extends string, const Asked extends string = never>(guard: BearerGuard<Entry>, need?: RouteNeed<AskedScope<Entry, Asked>>): HonoGuard;

export declare function koaGuard<Entry extends string, const Asked extends string = never>(guard: BearerGuard<Entry>, need?: RouteNeed<AskedScope<Entry, Asked>>): KoaGuard;

export declare function nestGuard<Entry extends string, const Asked extends string = never>(guard: BearerGuard<Entry>, need?: RouteNeed<AskedScope<Entry, Asked>>): NestGuard;

export declare function nextGuard<Entry extends string, const Asked extends string = never>(guard: BearerGuard<Entry>, need?: RouteNeed<AskedScope<Entry, Asked>>): NextGuard;

export declare function oauthMetadata(options: OAuthMetadataOptions): (request: Request) => Response | undefined;

export declare function protectedResource(options: ProtectedResourceOptions): (request: Request) => Response | undefined;

export declare function remoteAddress(request: Request): string;

export declare function safeUrl(requestOrUrl: Addressed): string;

export declare function sendResponse(response: Response, to: ServerResponse | Http2ServerResponse): Promise<void>;

export declare function toNodeListener(handler: FetchHandler): (request: NodeRequest | Http2ServerRequest, response: ServerResponse | Http2ServerResponse) => Promise<void>;

export declare function tokenHandler(options: TokenHandlerOptions & SignInWay): TokenHandler;

// Not exported, but part of the above:

type Addressed = string | URL | {
  readonly url?: string | undefined;
  readonly originalUrl?: string | undefined;
};

interface Attempt {
  readonly username: string;
  readonly address: string;
}

type ExpressGuard = (request: GuardedNodeRequest, response: ServerResponse, next: (error?: unknown) => void) => Promise<void>;

interface FailureLimiterOptions {
  readonly userAndAddress?: PointsLimiter | undefined;
  readonly address?: PointsLimiter | undefined;
  readonly user?: PointsLimiter | undefined;
}

type FastifyGuard = (request: {
  readonly raw: IncomingMessage;
}, reply: FastifyReplyLike) => Promise<unknown>;

type FastifyReplyLike = {
  code(status: number): unknown;
  headers(headers: Record<string, string>): unknown;
  send(body: Uint8Array): unknown;
};

type FetchHandler = ((request: Request) => Response | Promise<Response>) & {
  readonly basePath?: string | undefined;
};

interface FixedAccountsOptions {
  readonly clock?: Clock | undefined;
  readonly onRenew?: ((username: string, passwordHash: string) => void) | undefined;
}

interface ForwardedAddressOptions {
  readonly proxies: readonly string[];
  readonly header?: string | undefined;
}

interface GracefulStopOptions {
  readonly graceMs?: number | undefined;
}

type GuardReason = RefusalReason | 'missing' | 'ambiguous_credentials' | 'unavailable';

type GuardedNodeRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers'> & {
  readonly rawHeaders?: readonly string[] | undefined;
  readonly originalUrl?: string | undefined;
  readonly socket?: {
    readonly remoteAddress?: string | undefined;
  } | undefined;
};

type HonoContextLike = {
  readonly env: unknown;
  readonly req: {
    readonly raw: Request;
  };
  readonly set: (key: never, value: never) => void;
};

type HonoGuard = (context: HonoContextLike, next: () => Promise<void>) => Promise<Response | undefined>;

interface Knowing<Entry extends string> {
  readonly scopes?: TokenService<Entry>['scopes'];
}

type KoaContextLike = {
  readonly req: NodeRequest;
  readonly originalUrl: string;
  readonly state: object;
  status: number;
  body: unknown;
  set(headers: Record<string, string>): void;
};

type KoaGuard = (context: KoaContextLike, next: () => Promise<unknown>) => Promise<void>;

type NestContextLike = {
  getType(): string;
  switchToHttp(): {
    getRequest(): unknown;
    getResponse(): unknown;
  };
};

type NestGuard = {
  canActivate(context: NestContextLike): Promise<boolean>;
};

type NextGuard = <Req extends Request, Context extends object>(handler: (request: Req, context: Context & {
  readonly token: Token;
}) => Response | Promise<Response>) => (request: Req, context: Context) => Promise<Response>;

type NodeRequest = IncomingMessage & {
  originalUrl?: string | undefined;
  body?: unknown;
};

interface PointsLimiter {
  readonly points: number;
  get(key: string): Promise<{
    readonly consumedPoints: number;
    readonly msBeforeNext: number;
  } | null>;
  consume(key: string): Promise<unknown>;
  reward(key: string, points: number): Promise<unknown>;
}

interface RouteNeed<Asked extends string = string> {
  readonly scope: Scope | Asked;
}

type SessionAccount = {
  accountOf(request: Request, incoming: IncomingMessage | undefined): CallerAccount | null | Promise<CallerAccount | null>;
}['accountOf'];
