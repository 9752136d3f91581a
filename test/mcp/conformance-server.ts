import { randomUUID } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const image = { type: 'image', data: PNG, mimeType: 'image/png' } as const;
const audio = { type: 'audio', data: 'UklGRiQAAABXQVZF', mimeType: 'audio/wav' } as const;
const text = (words: string) => ({ type: 'text', text: words }) as const;
const embedded = {
  type: 'resource',
  resource: { uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'embedded' },
} as const;

/** What the suite of the protocol asks a server for, as far as sessions of SDK 1.x have it. */
function serverForSuite(): McpServer {
  const server = new McpServer(
    { name: 'suite', version: '1.0.0' },
    { capabilities: { logging: {}, resources: { subscribe: true } } },
  );
  const tool = (name: string, content: object[], isError = false) =>
    server.registerTool(name, { description: name }, () => ({ content, isError }) as never);
  tool('test_simple_text', [text('This is a simple text response for testing.')]);
  tool('test_image_content', [image]);
  tool('test_audio_content', [audio]);
  tool('test_embedded_resource', [embedded]);
  tool('test_multiple_content_types', [text('Multiple content types test:'), image, embedded]);
  tool('test_error_handling', [text('This tool intentionally returns an error for testing')], true);
  server.registerTool('test_tool_with_logging', { description: 'logs' }, async (extra) => {
    for (const data of [
      'Tool execution started',
      'Tool processing data',
      'Tool execution completed',
    ])
      await extra.sendNotification({
        method: 'notifications/message',
        params: { level: 'info', data },
      });
    return { content: [text('logged')] };
  });
  server.registerTool('test_tool_with_progress', { description: 'progress' }, async (extra) => {
    const progressToken = extra._meta?.progressToken ?? 0;
    for (const progress of [0, 50, 100]) {
      const params = { progressToken, progress, total: 100 };
      await extra.sendNotification({ method: 'notifications/progress', params });
    }
    return { content: [text('done')] };
  });
  const prompt = { prompt: z.string() };
  server.registerTool(
    'test_sampling',
    { description: 'samples', inputSchema: prompt },
    async (args) => {
      const content = text(args.prompt);
      const { content: answer } = await server.server.createMessage({
        messages: [{ role: 'user', content }],
        maxTokens: 100,
      });
      return { content: [text(`LLM response: ${JSON.stringify(answer)}`)] };
    },
  );
  const message = { message: z.string() };
  server.registerTool(
    'test_elicitation',
    { description: 'asks', inputSchema: message },
    async (args) => {
      const properties = { username: { type: 'string' }, email: { type: 'string' } } as const;
      const requestedSchema = {
        type: 'object',
        properties,
        required: ['username', 'email'],
      } as const;
      const answer = await server.server.elicitInput({
        message: args.message,
        requestedSchema: requestedSchema as never,
      });
      return { content: [text(`User response: ${JSON.stringify(answer)}`)] };
    },
  );
  const words = { mimeType: 'text/plain' };
  const contents = (uri: string, more: object) => ({ contents: [{ uri, ...more }] }) as never;
  server.registerResource('text', 'test://static-text', words, ({ href }) =>
    contents(href, { ...words, text: 'This is the content of the static text resource.' }),
  );
  server.registerResource('binary', 'test://static-binary', { mimeType: 'image/png' }, ({ href }) =>
    contents(href, { mimeType: 'image/png', blob: PNG }),
  );
  server.registerResource('watched', 'test://watched-resource', words, ({ href }) =>
    contents(href, { ...words, text: 'watched' }),
  );
  const template = new ResourceTemplate('test://template/{id}/data', { list: undefined });
  server.registerResource('template', template, { mimeType: 'application/json' }, (uri, { id }) =>
    contents(uri.href, {
      mimeType: 'application/json',
      text: JSON.stringify({ id, data: `Data for ID: ${id}` }),
    }),
  );
  server.server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  server.server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));
  const said = (content: object) => ({ messages: [{ role: 'user', content }] }) as never;
  server.registerPrompt('test_simple_prompt', { description: 'simple' }, () =>
    said(text('This is a simple prompt for testing.')),
  );
  const arg1 = completable(z.string(), (value) => [`${value}-1`]);
  const withTwo = { description: 'two', argsSchema: { arg1, arg2: z.string() } };
  server.registerPrompt('test_prompt_with_arguments', withTwo, (args) =>
    said(text(`Prompt with arguments: arg1='${args.arg1}', arg2='${args.arg2}'`)),
  );
  const ofResource = { description: 'resource', argsSchema: { resourceUri: z.string() } };
  server.registerPrompt('test_prompt_with_embedded_resource', ofResource, ({ resourceUri }) =>
    said({ ...embedded, resource: { ...embedded.resource, uri: resourceUri } }),
  );
  server.registerPrompt('test_prompt_with_image', { description: 'image' }, () => said(image));
  return server;
}

/** Serves sessions. `body` is what the guard has read. */
export function suiteSessions(): (
  ...args: [...Parameters<RequestListener>, body: unknown]
) => Promise<void> {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  return async (request, response, body) => {
    const id = String(request.headers['mcp-session-id']);
    let transport = sessions.get(id);
    if (transport === undefined) {
      const added: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (session) => void sessions.set(session, added),
        enableDnsRebindingProtection: true,
        allowedHosts: [String(`127.0.0.1:${request.socket.localPort}`)],
      });
      transport = added;
      await serverForSuite().connect(transport as Transport);
    }
    await transport.handleRequest(request, response, body);
  };
}
