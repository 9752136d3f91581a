// An MCP server with SDK 1.x: each tool needs a scope, and clients see only the tools that they may call.
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { protectedResource, sendResponse, toNodeListener } from 'tokenwright/http';
import { mcpGuard, toolScope } from 'tokenwright/mcp';

const domain = 'shop.example';

/** One for each request: it has the tools that this token may call. */
function serverFor(allows: (tool: string) => boolean): McpServer {
  const server = new McpServer({ name: 'shop', version: '1.0.0' });
  const text = (words: string) => ({ content: [{ type: 'text' as const, text: words }] });
  const tools = {
    orders: server.registerTool('orders', { description: 'Counts orders' }, (extra) =>
      text(`${extra.authInfo?.clientId} has 3 orders`),
    ),
    refund: server.registerTool('refund', { description: 'Refunds an order' }, () => text('done')),
  };
  for (const [name, tool] of Object.entries(tools)) if (!allows(name)) tool.disable();
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
  return async (request, response) => {
    if (request.url !== new URL(resource).pathname) return others(request, response);
    const outcome = await guard(request);
    if (!outcome.ok) return sendResponse(outcome.response, response);
    const transport = new StreamableHTTPServerTransport({});
    await serverFor(outcome.allows).connect(transport as Transport);
    await transport.handleRequest(
      Object.assign(request, { auth: outcome.auth }),
      response,
      outcome.body,
    );
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
await client.connect(transport as Transport);

const { tools } = await client.listTools();
console.log(...tools.map(({ name }) => name)); // orders
const { content } = await client.callTool({ name: 'orders' });
console.log(JSON.stringify(content)); // [{"type":"text","text":"ada has 3 orders"}]
await client.callTool({ name: 'refund' }).catch(({ code }) => console.log(code)); // 403

// Where a client without a token learns which one it needs.
const { status, headers: answer } = await fetch(resource, { method: 'POST' });
const [, url = ''] = /resource_metadata="([^"]*)"/.exec(answer.get('www-authenticate') ?? '') ?? [];
const metadata = (await (await fetch(url)).json()) as { authorization_servers: string[] };
console.log(status, ...metadata.authorization_servers); // 401 https://auth.example
await client.close();
server.close();
