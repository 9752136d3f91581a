import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { DEFAULT_SEND_TIMEOUT_MS } from '../../bounds.ts';
import {
  type BearerGuard,
  type BearerGuardOptions,
  bearerGuard,
  type GuardOutcome,
  sendResponse,
} from '../../http/index.ts';
import { sendByNode } from '../../http/node/sending.ts';
import { COMMON_HEADERS, failureIn, noteFailure } from '../../http/responses.ts';
import { isTokenError, type TokenService } from '../../index.ts';
import { usageError } from '../terminal/errors.ts';
import { clientOfGateway } from './client-address.ts';
import { rootNameOf } from './files/catalog-files.ts';
import type { Page } from './pages.ts';
import type { ServeSettings } from './settings.ts';

export type Gateway = NonNullable<ServeSettings['gateway']>;

/** A request that a gateway asks about. */
interface Asked {
  readonly method: string;
  /** With or without a port; needed only if there are several domains. */
  readonly host: string | undefined;
  readonly target: string;
}

/** The path at which a gateway asks. */
export const CHECK = '/check';

/**
 * Reads the request that a gateway asks about. Only the headers of the configured gateway are read:
 * callers can send those of the others.
 */
const READERS: Readonly<Record<Gateway, (request: IncomingMessage) => Asked | undefined>> = {
  nginx: headerReader('x-original-method', 'x-original-host', 'x-original-uri'),
  traefik: headerReader('x-forwarded-method', 'x-forwarded-host', 'x-forwarded-uri'),
  envoy(request) {
    const { method = '', url = '' } = request;
    if (!url.startsWith(`${CHECK}/`)) return undefined;
    return { method, host: onlyHeader(request, 'host'), target: url.slice(CHECK.length) };
  },
};

function headerReader(...names: readonly [method: string, host: string, target: string]) {
  return (request: IncomingMessage): Asked | undefined => {
    const [method, host, target] = names.map((name) => onlyHeader(request, name));
    if (request.url !== CHECK || method === undefined || target === undefined) return undefined;
    return { method, host, target };
  };
}

/** The value of a header that came exactly once. */
function onlyHeader({ headersDistinct }: IncomingMessage, name: string): string | undefined {
  const values = headersDistinct[name];
  return values?.length === 1 ? values[0] : undefined;
}

/** Whether a target is one that gateways call. */
function isCheck(target: string): boolean {
  return target === CHECK || target.startsWith(`${CHECK}/`) || target.startsWith(`${CHECK}?`);
}

/** The options of {@link gatewayCheck}. */
export interface GatewayCheckOptions
  extends Pick<
    ServeSettings,
    'gateway' | 'domains' | 'granularity' | 'trustProxy' | 'clientHeader'
  > {
  readonly tokens: TokenService;
  readonly onError?: ((error: unknown) => void) | undefined;
}

/**
 * Answers a gateway that asks whether to pass a request on: 200 with the account in `X-Account`, or
 * 401, 403 or 503 with the challenge for the bearer. If the gateway does not name the request, the
 * answer is 500. If it names a host that is not one of the domains, the answer is 403.
 *
 * @throws {CliError} if a domain is missing, or is not one
 */
export function gatewayCheck(options: GatewayCheckOptions): Page | undefined {
  const { tokens, gateway, domains, granularity, onError } = options;
  checkSettings(options);
  if (gateway === undefined) return undefined;
  const rootName = rootNameOf(granularity);
  const clientAddress = clientOfGateway(options);
  // A stack would only show where it was noticed.
  const unknown = Object.assign(new Error(UNKNOWN_ADDRESS), { stack: `Error: ${UNKNOWN_ADDRESS}` });
  const onGuardError = (error: unknown) => onError?.(isTokenError(error) ? error : unknown);
  const shared = {
    tokens,
    rootName,
    ...(clientAddress && { clientAddress }),
    onError: onGuardError,
  };
  const guards = new Map(
    domains.map((domain) => [domain.toLowerCase(), guardFor({ ...shared, domain })]),
  );
  const read = READERS[gateway];
  const answerCall: RequestListener = async (request, response) => {
    try {
      const asked = read(request);
      if (asked === undefined) return send(500, {}, response);
      const guard = guardOf(guards, asked);
      if (guard === undefined) return send(403, {}, response);
      const outcome = await guard({ ...asked, url: asked.target, ...senderOf(request) });
      await answer(outcome, gateway, response);
    } catch (error) {
      onError?.(error);
      send(500, {}, response);
    }
  };
  return { route: CHECK, isAt: isCheck, answer: answerCall };
}

const UNKNOWN_ADDRESS =
  'refused a token that is restricted to certain addresses: the gateway must name the client, in X-Forwarded-For with --trust-proxy (TOKENWRIGHT_TRUST_PROXY), or in the header that --client-header (TOKENWRIGHT_CLIENT_HEADER) says';

function guardFor(options: BearerGuardOptions): BearerGuard {
  try {
    return bearerGuard(options);
  } catch (error) {
    if (!isTokenError(error)) throw error;
    throw usageError(error.message.replace(/^domain/, '--domain (TOKENWRIGHT_DOMAIN)'));
  }
}

/** The guard of the only domain, whatever the host; with several domains, that of the host. */
function guardOf(guards: ReadonlyMap<string, BearerGuard>, { host = '' }: Asked) {
  const [[, single] = []] = guards.size === 1 ? guards : [];
  return single ?? guards.get(host.toLowerCase().replace(/:\d{1,5}$/, ''));
}

/** The parts of a gateway's request that tell the guard the bearer's value and address. */
function senderOf({ headers, rawHeaders, socket }: IncomingMessage) {
  return { headers, rawHeaders, socket };
}

async function answer(
  outcome: GuardOutcome,
  gateway: Gateway,
  response: ServerResponse,
): Promise<void> {
  if (outcome.ok) {
    return send(200, { 'x-account': encodeURIComponent(outcome.token.account) }, response);
  }
  // The bearer learns less than the log.
  const failure = failureIn(outcome.response);
  if (failure !== undefined) {
    noteFailure(response, { code: failure.code, reason: failure.reason ?? outcome.reason });
  }
  // nginx passes 401 and 403 on, and turns any other refusal into 500.
  const { body, status, headers: answered } = outcome.response;
  const isUnknown = status === 400 || (status === 429 && gateway === 'nginx');
  const known = { status: isUnknown ? 403 : status, headers: answered };
  await sendResponse(new Response(body, known), response);
}

function checkSettings({ gateway, domains }: Pick<ServeSettings, 'gateway' | 'domains'>): void {
  if (gateway !== undefined && domains.length === 0) {
    throw usageError('--gateway (TOKENWRIGHT_GATEWAY) needs --domain, the host in the scopes');
  }
  if (gateway === undefined && domains.length > 0) {
    throw usageError('--domain (TOKENWRIGHT_DOMAIN) needs --gateway, which asks at /check');
  }
}

function send(
  status: number,
  more: Readonly<Record<string, string>>,
  response: ServerResponse,
): void {
  const headers = { ...COMMON_HEADERS, ...more };
  void sendByNode({ status, headers, body: null }, 'GET', response, DEFAULT_SEND_TIMEOUT_MS);
}
