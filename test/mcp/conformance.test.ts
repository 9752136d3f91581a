import { execFile } from 'node:child_process';
import { createServer, type RequestListener, request as send } from 'node:http';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { sendResponse } from '../../src/http/index.ts';
import { mcpGuard } from '../../src/mcp/index.ts';
import { closeAll, portOf } from '../http/wire.ts';
import { setUp } from '../support.ts';
import { suiteSessions } from './conformance-server.ts';
import { ALL_TOOLS, account, DOMAIN, RESOURCE } from './support.ts';

afterEach(closeAll);

const SUITE = join(
  import.meta.dirname,
  '../node_modules/@modelcontextprotocol/conformance/dist/index.js',
);
/** What the suite calls besides what the guard lets through. */
const METHODS = [
  ...['logging/setLevel', 'completion/complete', 'prompts/get', 'resources/read'],
  ...['resources/subscribe', 'resources/unsubscribe'],
];

const serve = (listener: RequestListener) => portOf(createServer(listener).listen(0, '127.0.0.1'));

/** Adds a token to each request: the suite cannot send one. */
const proxyTo = (port: number, value: string) =>
  serve((request, response) => {
    const { method, url, headers, socket } = request;
    const host = headers.host?.replace(`:${socket.localPort}`, `:${port}`);
    const all = { ...headers, host, authorization: `Bearer ${value}` };
    const outgoing = send(
      { host: '127.0.0.1', port, method, path: url, headers: all },
      (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        response.flushHeaders();
        answer.pipe(response);
      },
    );
    outgoing.on('error', () => response.destroy());
    response.on('close', () => outgoing.destroy());
    request.pipe(outgoing);
  });

/** How each scenario of the suite ended. */
async function resultsOf(port: number): Promise<Record<string, string>> {
  const url = `http://127.0.0.1:${port}/mcp`;
  const output = await new Promise<string>((resolve) => {
    const args = [SUITE, 'server', '--url', url, '--suite', 'active'];
    execFile(process.execPath, args, { maxBuffer: 2 ** 26 }, (_, stdout) => resolve(stdout));
  });
  const lines = output.matchAll(/^[✓✗] ([\w-]+): (\d+ passed, \d+ failed)/gm);
  return Object.fromEntries([...lines].map(([, name, result]) => [name, result]));
}

describe('the conformance suite of MCP', () => {
  it('sees no difference between a server behind the guard and one without', {
    timeout: 120_000,
  }, async () => {
    const { tokens } = setUp();
    const { value } = await tokens.issue({ account, scopes: [ALL_TOOLS] });
    const methods = Object.fromEntries(METHODS.map((method) => [method, true as const]));
    const reasons: string[] = [];
    const guard = mcpGuard({
      tokens,
      domain: DOMAIN,
      resource: RESOURCE,
      methods,
      onRefusal: ({ reason }) => reasons.push(reason),
    });
    const bare = suiteSessions();
    const open = await serve((request, response) => bare(request, response, undefined));
    const guarded = suiteSessions();
    const closed = await serve(async (request, response) => {
      const outcome = await guard(request);
      if (!outcome.ok) return sendResponse(outcome.response, response);
      return guarded(request, response, outcome.body);
    });

    const without = await resultsOf(open);
    expect(Object.keys(without).length).toBeGreaterThan(20);
    expect(await resultsOf(await proxyTo(closed, value))).toEqual(without);
    expect(reasons).toEqual([]);
    const passed = Object.values(without).filter((result) => result.endsWith(' 0 failed'));
    expect(passed.length).toBeGreaterThan(20);
  });
});
