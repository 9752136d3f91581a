// Your OpenAPI document as an MCP server: agents call your API with their own token, and can do no more than it allows.
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { type NodeIncomingMessageLike, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, Server, type Tool } from '@modelcontextprotocol/server';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard, sendResponse } from 'tokenwright/http';
import { type McpOutcome, mcpGuard } from 'tokenwright/mcp';
import { readOpenApi } from 'tokenwright/openapi';

const domain = 'shop.example';
const id = { name: 'id', in: 'path', required: true, schema: { type: 'string' } };
const limit = { name: 'limit', in: 'query', schema: { type: 'integer' } };
const refund = { type: 'object', properties: { reason: { type: 'string' } } };
const content = { 'application/json': { schema: refund } };
const document = {
  openapi: '3.1.0',
  servers: [{ url: `https://${domain}` }],
  paths: {
    '/orders': { get: { operationId: 'listOrders', summary: 'List orders', parameters: [limit] } },
    '/orders/{id}': {
      get: { operationId: 'getOrder', summary: 'Show an order', parameters: [id] },
    },
    '/orders/{id}/refund': {
      post: {
        operationId: 'refundOrder',
        summary: 'Refund an order',
        parameters: [id],
        requestBody: { content },
      },
    },
  },
};

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: object;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly content: Record<string, { readonly schema: object }> };
}

type Arguments = Readonly<Record<string, unknown>>;

/** A tool for each operation, with the scope that the operation needs and the request that it is. */
const tools = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods as Record<string, Operation>).map(([name, operation]) => {
    const { operationId, summary, parameters, requestBody } = operation;
    const method = name.toUpperCase();
    const body = requestBody?.content['application/json']?.schema;
    const tool = {
      name: operationId,
      description: summary,
      inputSchema: {
        type: 'object',
        properties: {
          ...Object.fromEntries(parameters.map((each) => [each.name, each.schema])),
          ...(body && { body }),
        },
        required: parameters.filter((each) => each.required).map((each) => each.name),
      },
    } as Tool;
    const requestFor = (args: Arguments, token: string): Request => {
      const url = new URL(`https://${domain}`);
      url.pathname = path.replace(/\{(\w+)\}/g, (_, parameter) => segmentOf(args[parameter]));
      for (const { name: query, in: place } of parameters) {
        const value = args[query];
        if (place === 'query' && value !== undefined) url.searchParams.set(query, String(value));
      }
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const sent = body && args['body'] !== undefined ? JSON.stringify(args['body']) : null;
      return new Request(url, { method, headers, body: sent });
    };
    return { tool, scope: `${method}:${domain}${path}$`, requestFor };
  }),
);

/** One segment: a slash is encoded, and dots cannot be. */
function segmentOf(value: unknown): string {
  const text = String(value ?? '');
  if (/^\.{0,2}$/.test(text)) throw new Error('a part of the path must be a name');
  return encodeURIComponent(text);
}

const { catalog } = await readOpenApi(document);
const store = new MemoryTokenStore();
const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme', catalog });

/** Your API, behind its guard. It does not know that agents call it. */
const guard = bearerGuard({ tokens, domain, onError: console.error });
async function api(request: Request): Promise<Response> {
  const outcome = await guard(request);
  if (!outcome.ok) return outcome.response;
  const { pathname, search } = new URL(request.url);
  const { account } = outcome.token;
  return Response.json({ account, asked: `${request.method} ${pathname}${search}` });
}

/** `resource` is the public URL of the MCP server. */
export function listener(resource: string): RequestListener {
  const entries = tools.map(({ tool, scope }) => [tool.name, scope] as const);
  const ofTools = Object.fromEntries(entries);
  const mcp = mcpGuard({ tokens, domain, resource, tools: ofTools, onError: console.error });
  const handler = createMcpHandler(({ authInfo }) => {
    const capabilities = { tools: {} };
    const server = new Server({ name: 'shop', version: '1.0.0' }, { capabilities });
    const allows = authInfo?.extra?.['allows'] as McpOutcome['allows'];
    server.setRequestHandler('tools/list', () => ({
      tools: tools.map(({ tool }) => tool).filter(({ name }) => allows?.(name)),
    }));
    server.setRequestHandler('tools/call', async ({ params }) => {
      const called = tools.find(({ tool }) => tool.name === params.name);
      if (called === undefined) throw new Error('there is no such tool');
      const response = await api(called.requestFor(params.arguments ?? {}, authInfo?.token ?? ''));
      const text = await response.text();
      return { content: [{ type: 'text', text }], isError: !response.ok };
    });
    return server;
  });
  const send = toNodeHandler(handler);
  return async (request, response) => {
    const outcome = await mcp(request);
    if (!outcome.ok) return sendResponse(outcome.response, response);
    const { auth, allows, body } = outcome;
    const authorized = Object.assign(request, { auth: { ...auth, extra: { allows } } });
    return send(authorized as unknown as NodeIncomingMessageLike, response, body);
  };
}

const server = createServer().listen(0, '127.0.0.1');
await once(server, 'listening');
const resource = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
server.on('request', listener(resource));

async function connect(scopes: readonly string[]): Promise<Client> {
  const { value } = await tokens.issue({ account: 'ada', scopes });
  const client = new Client({ name: 'agent', version: '1.0.0' });
  const requestInit = { headers: { authorization: `Bearer ${value}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(resource), { requestInit }));
  return client;
}

// An agent that may read sees the tools that read.
const reader = await connect([`GET:${domain}/*`]);
console.log(...(await reader.listTools()).tools.map(({ name }) => name)); // listOrders getOrder
const call = async (client: Client, name: string, args: Record<string, unknown>) => {
  const result = await client.callTool({ name, arguments: args });
  const [first] = result.content as { text: string }[];
  return `${result.isError ? 'refused: ' : ''}${first?.text}`;
};
console.log(await call(reader, 'listOrders', { limit: 2 })); // {"account":"ada","asked":"GET /orders?limit=2"}
console.log(await call(reader, 'getOrder', { id: '7' })); // {"account":"ada","asked":"GET /orders/7"}

// A refusal names what the token holds, and what the call needs as well.
const refused = call(reader, 'refundOrder', { id: '7' });
await refused.catch(({ requiredScope }) => console.log(requiredScope)); // GET:shop.example/orders$ GET:shop.example/orders/{}$ POST:shop.example/orders/{}/refund$

// The guard of the API has the last word, as for every other client.
const text = await call(reader, 'getOrder', { id: '7/refund' });
console.log(text.slice(0, 72)); // refused: {"success":false,"message":"the address can be read in more tha
await reader.close();
server.close();
