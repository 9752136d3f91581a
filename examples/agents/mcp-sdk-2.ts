// An MCP server with SDK 2.x: each tool needs a scope, and clients see only the tools that they may call.
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { type NodeIncomingMessageLike, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { protectedResource, sendResponse, toNodeListener } from 'tokenwright/http';
import { type McpOutcome, mcpGuard, toolScope } from 'tokenwright/mcp';

const domain = 'shop.example';

/** One for each request: it has the tools that this token may call. */
function serverFor(allows: McpOutcome['allows']): McpServer {
  const server = new McpServer({ name: 'shop', version: '1.0.0' });
  const text = (words: string) => ({ content: [{ type: 'text' as const, text: words }] });
  const tools = {
    orders: server.registerTool('orders', { description: 'Counts orders' }, ({ http }) =>
      text(`${http?.authInfo?.clientId} has 3 orders`),
    ),
    refund: server.registerTool('refund', { description: 'Refunds an order' }, () => text('done')),
  };
  for (const [name, tool] of Object.entries(tools)) if (!allows?.(name)) tool.disable();
  return server;
}

/** `resource` is the public URL of the server. */
export function listener(tokens: TokenService, resource: string): RequestListener {
  const guard = mcpGuard({ tokens, domain, resource, onError: console.error });
  const authorizationServers = ['https://auth.example'];
  const metadata = protectedResource({ resource, authorizationServers });
  const others = toNodeListener(
    (request) => metadata(request) ?? new Response(null, { status: 404 }),
  );
  // What the guard found travels to the factory of servers in `extra`.
  const handler = createMcpHandler(({ authInfo }) =>
    serverFor(authInfo?.extra?.['allows'] as McpOutcome['allows']),
  );
  const send = toNodeHandler(handler);
  return async (request, response) => {
    if (request.url !== new URL(resource).pathname) return others(request, response);
    const outcome = await guard(request);
    if (!outcome.ok) return sendResponse(outcome.response, response);
    const { auth, allows, body } = outcome;
    const extra = { ...auth.extra, allows };
    const authorized = Object.assign(request, { auth: { ...auth, extra } });
    return send(authorized as NodeIncomingMessageLike, response, body);
  };
}

const store = new MemoryTokenStore();
const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
const server = createServer().listen(0, '127.0.0.1');
await once(server, 'listening');
const resource = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
server.on('request', listener(tokens, resource));

const { value } = await tokens.issue({ account: 'ada', scopes: [toolScope(domain, 'orders')] });
const client = new Client({ name: 'agent', version: '1.0.0' });
const headers = { authorization: `Bearer ${value}` };
const transport = new StreamableHTTPClientTransport(new URL(resource), {
  requestInit: { headers },
});
await client.connect(transport);

const { tools } = await client.listTools();
console.log(...tools.map(({ name }) => name)); // orders
const { content } = await client.callTool({ name: 'orders' });
console.log(JSON.stringify(content)); // [{"type":"text","text":"ada has 3 orders"}]
await client.callTool({ name: 'refund' }).catch(({ requiredScope }) => console.log(requiredScope)); // POST:shop.example/tools/orders$ POST:shop.example/tools/refund$

// Where a client without a token learns which one it needs.
const { status, headers: answer } = await fetch(resource, { method: 'POST' });
const [, url = ''] = /resource_metadata="([^"]*)"/.exec(answer.get('www-authenticate') ?? '') ?? [];
const metadata = (await (await fetch(url)).json()) as { authorization_servers: string[] };
console.log(status, ...metadata.authorization_servers); // 401 https://auth.example
await client.close();
server.close();
