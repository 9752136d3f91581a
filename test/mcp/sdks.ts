import { createServer, type RequestListener, type Server } from 'node:http';
import {
  Client as Client2,
  StreamableHTTPClientTransport as Transport2,
} from '@modelcontextprotocol/client';
import { type NodeIncomingMessageLike, toNodeHandler } from '@modelcontextprotocol/node';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer as Server1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { createMcpHandler, McpServer as Server2 } from '@modelcontextprotocol/server';
import { protectedResource, sendResponse, toNodeListener } from '../../src/http/index.ts';
import type { TokenService } from '../../src/index.ts';
import { type McpOutcome, mcpGuard } from '../../src/mcp/index.ts';
import { portOf } from '../http/wire.ts';
import { account, DOMAIN } from './support.ts';

/** The tools of each server, each of which says who called it. */
export const TOOLS = ['orders', 'refund', 'delete', 'x.y-z'];

type Accepted = Extract<McpOutcome, { readonly ok: true }>;

/** The parts of a server that both SDKs have. */
interface ToolServer {
  registerTool(
    name: string,
    config: { readonly description: string },
    call: (context: {
      readonly authInfo?: Accepted['auth'];
      readonly http?: { readonly authInfo?: Accepted['auth'] };
    }) => object,
  ): { disable(): void };
}

function addTools(server: unknown, runs: string[], allows: Accepted['allows'] | undefined): void {
  for (const name of TOOLS) {
    const tool = (server as ToolServer).registerTool(name, { description: name }, (context) => {
      runs.push(name);
      const { clientId } = context.authInfo ?? context.http?.authInfo ?? {};
      return { content: [{ type: 'text', text: `${clientId} calls ${name}` }] };
    });
    if (!allows?.(name)) tool.disable();
  }
}

type Serve = (
  outcome: Accepted,
  runs: string[],
) => (...args: Parameters<RequestListener>) => Promise<void>;

const serve1: Serve =
  ({ auth, body, allows }, runs) =>
  async (request, response) => {
    const server = new Server1({ name: 'shop', version: '1.0.0' });
    addTools(server, runs, allows);
    const transport = new StreamableHTTPServerTransport({});
    await server.connect(transport as Transport);
    await transport.handleRequest(Object.assign(request, { auth }), response, body);
  };

const serve2: Serve =
  ({ auth, body, allows }, runs) =>
  async (request, response) => {
    const handler = createMcpHandler(() => {
      const server = new Server2({ name: 'shop', version: '1.0.0' });
      addTools(server, runs, allows);
      return server;
    });
    const authorized = Object.assign(request, { auth });
    await toNodeHandler(handler)(authorized as unknown as NodeIncomingMessageLike, response, body);
  };

export const SERVERS = { '1.x': serve1, '2.x': serve2 } as const;

/** An MCP server of an SDK behind the guard, and an authorization server whose tokens it takes. */
export async function start(tokens: TokenService, version: keyof typeof SERVERS) {
  const server = createServer();
  const port = await portOf(server.listen(0, '127.0.0.1') as Server);
  const asked: string[] = [];
  const issuer = await authorizationServer(tokens, asked);
  const resource = `http://127.0.0.1:${port}/mcp`;
  const guard = mcpGuard({ tokens, domain: DOMAIN, resource });
  const metadata = protectedResource({ resource, authorizationServers: [issuer] });
  const others = toNodeListener((request) => metadata(request) ?? new Response(null, NOT_FOUND));
  const runs: string[] = [];
  const statuses: number[] = [];
  server.on('request', async (request, response) => {
    if (request.url !== '/mcp') return others(request, response);
    const outcome = await guard(request);
    if (request.method === 'POST') statuses.push(outcome.response?.status ?? 200);
    if (!outcome.ok) return sendResponse(outcome.response, response);
    return SERVERS[version](outcome, runs)(request, response);
  });
  return { resource, asked, runs, statuses };
}

const NOT_FOUND = { status: 404 };

/** Issues what a client asks for; of all tools it gives the first one only. A code is the scope itself. */
async function authorizationServer(tokens: TokenService, asked: string[]): Promise<string> {
  const server = createServer();
  const port = await portOf(server.listen(0, '127.0.0.1') as Server);
  const issuer = `http://127.0.0.1:${port}`;
  const answer = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (pathname === '/.well-known/oauth-authorization-server') {
      return Response.json({
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        response_types_supported: ['code'],
        grant_types_supported: ['authorization_code'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: ['none'],
      });
    }
    if (pathname !== '/token') return new Response(null, NOT_FOUND);
    const scope = new URLSearchParams(await request.text()).get('code') ?? '';
    asked.push(scope);
    const first = `POST:${DOMAIN}/tools/${TOOLS[0]}$`;
    const scopes = scope.split(' ').map((one) => (one === `POST:${DOMAIN}/tools` ? first : one));
    const token = await tokens.issue({ account, scopes });
    const access = { access_token: token.value, token_type: 'Bearer', scope: scopes.join(' ') };
    return Response.json({ ...access, expires_in: 3600 });
  };
  server.on('request', toNodeListener(answer));
  return issuer;
}

/** The parts of a client that both SDKs have. */
export interface ToolClient {
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>;
  callTool(call: { readonly name: string }): Promise<{ readonly content?: unknown }>;
  close(): Promise<void>;
}

interface Connection {
  readonly client: ToolClient & { connect(transport: unknown): Promise<void> };
  readonly transport: { finishAuth(code: string): Promise<void> };
}

/** Keeps what a client of either SDK gets, and what it wants its user to approve. */
class Approvals {
  readonly redirectUrl = 'http://127.0.0.1/callback';
  readonly clientMetadata = { redirect_uris: [this.redirectUrl] };
  scope = '';
  #tokens: unknown;
  #verifier = '';
  #discovered: unknown;

  clientInformation() {
    return { client_id: 'agent' };
  }

  tokens() {
    return this.#tokens;
  }

  saveTokens(tokens: unknown) {
    this.#tokens = tokens;
  }

  redirectToAuthorization(url: URL) {
    this.scope = url.searchParams.get('scope') ?? '';
  }

  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier;
  }

  codeVerifier() {
    return this.#verifier;
  }

  saveDiscoveryState(state: unknown) {
    this.#discovered = state;
  }

  discoveryState() {
    return this.#discovered;
  }
}

const NAMED = { name: 'agent', version: '1.0.0' };

const CONNECT = {
  '1.x': (resource: string, options: object) => ({
    client: new Client1(NAMED),
    transport: new Transport1(new URL(resource), options),
  }),
  '2.x': (resource: string, options: object) => ({
    client: new Client2(NAMED),
    transport: new Transport2(new URL(resource), options),
  }),
} as const;

/** A client with a token; without one, its user approves whatever it asks for. */
export async function connect(
  version: keyof typeof CONNECT,
  resource: string,
  value?: string,
): Promise<ToolClient> {
  const authProvider = new Approvals();
  const headers = { authorization: `Bearer ${value}` };
  const options = value === undefined ? { authProvider } : { requestInit: { headers } };
  const next = () => CONNECT[version](resource, options) as unknown as Connection;
  const first = next();
  let { client, transport } = first;
  const approving = async <Result>(run: () => Promise<Result>): Promise<Result> => {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof Error) || !/Unauthorized/.test(error.constructor.name)) throw error;
      await transport.finishAuth(authProvider.scope);
      if (transport === first.transport) ({ client, transport } = next());
      return run();
    }
  };
  await approving(() => client.connect(transport));
  return {
    listTools: () => client.listTools(),
    callTool: (call) => approving(() => client.callTool(call)),
    close: () => client.close(),
  };
}
