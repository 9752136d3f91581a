import { afterEach, describe, expect, it } from 'vitest';
import { toolScope } from '../../src/mcp/index.ts';
import { closeAll } from '../http/wire.ts';
import { setUp } from '../support.ts';
import { connect, SERVERS, start, TOOLS, type ToolClient } from './sdks.ts';
import { ALL_TOOLS, account, callOf, DOMAIN, requestOf } from './support.ts';

afterEach(closeAll);

const versions = Object.keys(SERVERS) as (keyof typeof SERVERS)[];
const pairs = versions.flatMap((client) => versions.map((server) => [client, server] as const));
const [ORDERS, REFUND] = ['orders', 'refund'].map((tool) => toolScope(DOMAIN, tool));

const namesOf = async (client: ToolClient) =>
  (await client.listTools()).tools.map(({ name }) => name).sort();
const textOf = async (client: ToolClient, name: string) =>
  (await client.callTool({ name })).content;
const said = (name: string) => [{ type: 'text', text: `${account} calls ${name}` }];

describe.each(pairs)('a client of SDK %s and a server of SDK %s', (client, server) => {
  const held = [ORDERS as string, toolScope(DOMAIN, 'x.y-z')];

  it.each([
    ['two tools', held],
    ['all tools', [ALL_TOOLS]],
    ['none that there is', [toolScope(DOMAIN, 'other')]],
  ])('lists the tools that it may call: of a token for %s', async (_, scopes) => {
    const { tokens } = setUp();
    const { resource, runs } = await start(tokens, server);
    const { value } = await tokens.issue({ account, scopes });
    const agent = await connect(client, resource, value);

    const listed = scopes.includes(toolScope(DOMAIN, 'other')) ? [] : await namesOf(agent);
    const called: string[] = [];
    for (const name of TOOLS) {
      const content = await textOf(agent, name).catch(() => undefined);
      if (content === undefined) continue;
      expect(content).toEqual(said(name));
      called.push(name);
    }
    expect(listed).toEqual(called.sort());
    expect([...runs].sort()).toEqual(called);
    await agent.close();
  });

  it('steps up from a 403, keeps what it had, and succeeds', async () => {
    const { tokens } = setUp();
    const { resource, asked, statuses, runs } = await start(tokens, server);
    const agent = await connect(client, resource);

    expect(asked).toEqual([ALL_TOOLS]);
    expect(await namesOf(agent)).toEqual(['orders']);
    expect(await textOf(agent, 'orders')).toEqual(said('orders'));
    expect(statuses).not.toContain(403);
    expect(await textOf(agent, 'refund')).toEqual(said('refund'));
    expect(statuses.filter((status) => status === 403)).toHaveLength(1);
    expect(asked[1]?.split(' ')).toEqual([ORDERS, REFUND]);
    expect(asked).toHaveLength(2);
    expect(await namesOf(agent)).toEqual(['orders', 'refund']);
    expect(await textOf(agent, 'orders')).toEqual(said('orders'));
    expect(runs).toEqual(['orders', 'refund', 'orders']);
    await agent.close();
  });

  it('gets another token if its own is no longer live', async () => {
    const { tokens } = setUp();
    const { resource, asked } = await start(tokens, server);
    const agent = await connect(client, resource);

    await tokens.revokeAll(account);
    expect(await textOf(agent, 'orders')).toEqual(said('orders'));
    expect(asked).toEqual([ALL_TOOLS, ALL_TOOLS]);
    await agent.close();
  });
});

describe.each(versions)('a server of SDK %s', (version) => {
  it('runs no tool for a refused body', async () => {
    const { tokens } = setUp();
    const { resource, runs } = await start(tokens, version);
    const { value } = await tokens.issue({ account, scopes: [ORDERS as string] });
    const send = async (body: string, headers: Record<string, string> = {}) => {
      const accept = 'application/json, text/event-stream';
      const request = requestOf(body, { value, headers: { accept, ...headers } });
      return (await fetch(resource, request)).status;
    };
    const call = (name: string) => JSON.stringify(callOf(name));
    const [allowed, refused] = [call('orders'), call('refund')];

    const sent: readonly [string, Record<string, string>?][] = [
      [refused],
      [refused, { 'mcp-method': 'tools/call', 'mcp-name': 'orders' }],
      [refused, { 'mcp-method': 'ping', 'mcp-protocol-version': '2026-07-28' }],
      [`[${allowed}]`],
      [`[${allowed},${refused}]`],
      [allowed.replace('{', '{"method":"ping",')],
      [allowed.replace('"name"', '"name":"refund","name"')],
      [allowed.replace('"name"', '"__proto__":{"name":"refund"},"name"')],
      [allowed.replace('{', '{"__proto__":{"params":{"name":"refund"}},')],
      ['{"jsonrpc":"2.0","id":1,"result":{},"__proto__":{"method":"tools/call"}}'],
      [`${allowed}${refused}`],
    ];
    for (const [body, headers] of sent) expect([400, 403]).toContain(await send(body, headers));
    expect(runs).toEqual([]);
    expect(await send(allowed)).toBe(200);
    expect(runs).toEqual(['orders']);
  });
});
