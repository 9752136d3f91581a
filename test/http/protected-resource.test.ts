import { createServer } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { protectedResource, toNodeListener } from '../../src/http/index.ts';
import { codeOf } from '../support.ts';
import { closeAll, portOf } from './wire.ts';

afterEach(closeAll);

const RESOURCE = 'https://shop.example/mcp';
const PATH = '/.well-known/oauth-protected-resource/mcp';
const SERVERS = ['https://auth.example'];

const OPTIONS = { resource: RESOURCE, authorizationServers: SERVERS };

const setUp = (options: object = {}) => protectedResource({ ...OPTIONS, ...options });

const ask = (target: string, method = 'GET', answer = setUp()) =>
  answer(new Request(`http://127.0.0.1${target}`, { method }));

describe('protectedResource', () => {
  it('publishes the metadata of RFC 9728', async () => {
    const response = ask(PATH);

    expect(response?.status).toBe(200);
    expect(response?.headers.get('content-type')).toBe('application/json');
    expect(await response?.json()).toEqual({
      resource: RESOURCE,
      authorization_servers: SERVERS,
      bearer_methods_supported: ['header'],
    });
  });

  it('names the scopes that clients may ask for, in canonical spelling', async () => {
    const answer = setUp({ scopes: ['POST:Shop.example/tools', 'GET:shop.example/orders/{id}'] });

    expect(await ask(PATH, 'GET', answer)?.json()).toMatchObject({
      scopes_supported: ['POST:shop.example/tools', 'GET:shop.example/orders/{}'],
    });
  });

  it.each([
    ['GET', 200, true],
    ['HEAD', 200, false],
    ['OPTIONS', 204, false],
    ['POST', 405, true],
    ['DELETE', 405, true],
  ])('answers %s with %i', async (method, status, hasBody) => {
    const response = ask(PATH, method) as Response;

    expect(response.status).toBe(status);
    expect((await response.text()) !== '').toBe(hasBody);
    expect(response.headers.get('allow')).toBe(status === 405 ? 'GET, HEAD, OPTIONS' : null);
    expect(response.headers.get('access-control-allow-origin')).toBe(status === 405 ? null : '*');
    expect(response.headers.get('access-control-allow-headers')).toBe(status === 405 ? null : '*');
  });

  it.each([
    ['https://shop.example', '/.well-known/oauth-protected-resource'],
    ['https://shop.example/', '/.well-known/oauth-protected-resource'],
    ['https://shop.example/mcp/', '/.well-known/oauth-protected-resource/mcp/'],
    ['https://shop.example:8443/a/b', '/.well-known/oauth-protected-resource/a/b'],
    ['http://127.0.0.1:8787/mcp', PATH],
    ['http://localhost:8787/mcp', PATH],
    ['http://[::1]:8787/mcp', PATH],
  ])('of %s are at %s, and nowhere else', async (resource, path) => {
    const answer = setUp({ resource });

    expect(await ask(path, 'GET', answer)?.json()).toMatchObject({ resource });
    expect(ask(`${path}?x=1`, 'GET', answer)?.status).toBe(200);
    const others = [`${path}x`, `${path}/x`, '/mcp', '/', '/.well-known/oauth-protected-resourc'];
    for (const other of others) expect(ask(other, 'GET', answer), other).toBeUndefined();
  });

  it('takes nothing of the answer from a header', async () => {
    const listener = toNodeListener(
      (request) => setUp()(request) ?? new Response('none', { status: 404 }),
    );
    const port = await portOf(createServer(listener).listen(0, '127.0.0.1'));
    const response = await fetch(`http://127.0.0.1:${port}${PATH}`, {
      headers: { 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' },
    });

    expect(response.status).toBe(200);
    expect(await response.text()).not.toContain('evil');
  });

  it.each([
    ['no options', undefined],
    ['no resource', { ...OPTIONS, resource: undefined }],
    ['a resource that is no URL', { ...OPTIONS, resource: 'shop.example/mcp' }],
    ['http', { ...OPTIONS, resource: 'http://shop.example/mcp' }],
    [
      'http on a host that only begins like this machine',
      { ...OPTIONS, resource: 'http://127.0.0.1.example' },
    ],
    ['another scheme', { ...OPTIONS, resource: 'ftp://shop.example/mcp' }],
    ['a query', { ...OPTIONS, resource: `${RESOURCE}?x=1` }],
    ['an empty query', { ...OPTIONS, resource: `${RESOURCE}?` }],
    ['a fragment', { ...OPTIONS, resource: `${RESOURCE}#x` }],
    ['an empty fragment', { ...OPTIONS, resource: `${RESOURCE}#` }],
    ['a user', { ...OPTIONS, resource: 'https://ada@shop.example/mcp' }],
    ['a host in upper case', { ...OPTIONS, resource: 'https://SHOP.example/mcp' }],
    ['a default port', { ...OPTIONS, resource: 'https://shop.example:443/mcp' }],
    ['dots in the path', { ...OPTIONS, resource: 'https://shop.example/a/../mcp' }],
    ['a quote', { ...OPTIONS, resource: 'https://shop.example/"mcp' }],
    ['a space', { ...OPTIONS, resource: 'https://shop.example/mcp ' }],
    ['no authorization servers', { ...OPTIONS, authorizationServers: undefined }],
    ['an empty list of authorization servers', { ...OPTIONS, authorizationServers: [] }],
    [
      'one authorization server as a text',
      { ...OPTIONS, authorizationServers: 'https://auth.example' },
    ],
    [
      'an authorization server with http',
      { ...OPTIONS, authorizationServers: ['http://auth.example'] },
    ],
    ['a text that is not a scope', { ...OPTIONS, scopes: ['orders'] }],
    ['an unknown option', { ...OPTIONS, scope: [] }],
  ])('refuses %s', async (_, options) => {
    expect(await codeOf(() => protectedResource(options as never))).toBe('invalid_options');
  });
});
