// What tokenwright/mcp declares, as published. Written by: npm run api

import type { RefusalReason, Token, TokenService } from 'tokenwright';
import type { GuardRefusal, GuardedRequest } from 'tokenwright/http';
import type { Scope } from 'tokenwright/scope';

export interface AuthInfo {
  token: string;
  clientId: string;
  scopes: string[];
  expiresAt: number;
  resource: URL;
  resourceMetadataUrl: string;
  extra: {
    id: string;
    account: string;
    name?: string;
    parent?: string;
  } & Record<string, unknown>;
}

export type McpGuard = (request: GuardedRequest, body?: unknown) => Promise<McpOutcome>;

export interface McpGuardOptions {
  readonly tokens: TokenService;
  readonly domain: string;
  readonly resource: string;
  readonly tools?: Readonly<Record<string, Scope | string>> | undefined;
  readonly methods?: Readonly<Record<string, Scope | string | true>> | undefined;
  clientAddress?(request: GuardedRequest): string | undefined;
  readonly onRefusal?: ((refusal: McpRefusal) => void) | undefined;
  readonly onError?: ((error: unknown) => void) | undefined;
}

export type McpOutcome = {
  readonly ok: true;
  readonly auth: AuthInfo;
  readonly token: Token;
  readonly body: unknown;
  readonly allows: (tool: string) => boolean;
  readonly reason?: undefined;
  readonly response?: undefined;
} | {
  readonly ok: false;
  readonly auth?: undefined;
  readonly token?: undefined;
  readonly body?: undefined;
  readonly allows?: undefined;
  readonly reason: McpReason;
  readonly response: Response;
};

export type McpReason = GuardReason | 'other_server' | 'method_not_allowed' | 'payload_too_large' | 'unsupported_media_type' | 'invalid_json' | 'invalid_message' | 'unknown_method';

export interface McpRefusal extends Omit<GuardRefusal, 'reason'> {
  readonly reason: McpReason;
}

export declare function mcpGuard(options: McpGuardOptions): McpGuard;

export declare function toolScope(domain: string, tool: string): string;

// Not exported, but part of the above:

type GuardReason = RefusalReason | 'missing' | 'ambiguous_credentials' | 'unavailable';
