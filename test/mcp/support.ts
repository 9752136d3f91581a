import type { TokenLimits, TokenServiceOptions } from '../../src/index.ts';
import {
  type McpGuardOptions,
  type McpOutcome,
  type McpRefusal,
  mcpGuard,
  toolScope,
} from '../../src/mcp/index.ts';
import { setUp as setUpService } from '../support.ts';

export const DOMAIN = 'shop.example';
export const RESOURCE = 'https://shop.example/mcp';
export const METADATA = 'https://shop.example/.well-known/oauth-protected-resource/mcp';
export const REFUND = toolScope(DOMAIN, 'refund');
export const ALL_TOOLS = 'POST:shop.example/tools';

export const account = 'ada';

/** A guard of `shop.example`, and by default a token for its tool `refund`. */
export async function setUp({
  service = {},
  scopes = [REFUND],
  limits,
  ...options
}: Partial<McpGuardOptions> & {
  readonly service?: Partial<TokenServiceOptions>;
  readonly scopes?: readonly string[];
  readonly limits?: TokenLimits;
} = {}) {
  const setting = setUpService(service);
  const { tokens } = setting;
  const refusals: McpRefusal[] = [];
  const errors: unknown[] = [];
  const guard = mcpGuard({
    tokens,
    domain: DOMAIN,
    resource: RESOURCE,
    onRefusal: (refusal) => refusals.push(refusal),
    onError: (error) => errors.push(error),
    ...options,
  });
  const token = await tokens.issue({ account, scopes, ...(limits && { limits }) });
  setting.store.takeCalls();
  const { value } = token;
  /** Sends a body, or a message as JSON. */
  const post = (body: unknown, sent: Sent = {}) => guard(requestOf(body, { value, ...sent }));
  const call = (name: unknown, sent: Sent = {}) => post(callOf(name), sent);
  return { ...setting, guard, refusals, errors, token, value, post, call };
}

export interface Sent {
  /** The value that is presented; `null` for none. */
  readonly value?: string | null;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function requestOf(body: unknown, { value, method = 'POST', headers }: Sent): Request {
  const text = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  return new Request('http://127.0.0.1/mcp', {
    method,
    headers: {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(typeof value === 'string' && { authorization: `Bearer ${value}` }),
      ...headers,
    },
    ...(body !== undefined && { body: text as string }),
  });
}

export const message = (method: string, params?: unknown) => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  ...(params !== undefined && { params }),
});

export const callOf = (name: unknown) => message('tools/call', { name, arguments: {} });

/** What the client sees of an outcome. */
export async function answerTo(outcome: McpOutcome) {
  const { response } = outcome;
  if (response === undefined) return { status: 200 };
  const text = await response.text();
  return {
    status: response.status,
    challenge: response.headers.get('www-authenticate'),
    body: text === '' ? undefined : JSON.parse(text),
  };
}
