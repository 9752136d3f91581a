import { describe, expect, it } from 'vitest';
import { oauthMetadata } from '../../../src/http/index.ts';
import { codeOf } from '../../support.ts';

const ISSUER = 'https://auth.example';
const PATH = '/.well-known/oauth-authorization-server';
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';

const setUp = (options: object = {}) => oauthMetadata({ issuer: ISSUER, ...options });

const ask = (target: string, method = 'GET', answer = setUp()) =>
  answer(new Request(`http://127.0.0.1${target}`, { method }));

describe('oauthMetadata', () => {
  it.each<[what: string, options: object, more: object]>([
    ['nothing', {}, { grant_types_supported: [] }],
    ['exchange: false', { exchange: false }, { grant_types_supported: [] }],
    [
      'exchange',
      { exchange: true },
      { grant_types_supported: [EXCHANGE], token_endpoint: `${ISSUER}/oauth/token` },
    ],
    [
      'introspection',
      { introspection: true },
      { grant_types_supported: [], introspection_endpoint: `${ISSUER}/introspect` },
    ],
    [
      'exchange elsewhere',
      { exchange: true, introspection: true, base: 'https://api.example/auth/' },
      {
        grant_types_supported: [EXCHANGE],
        token_endpoint: 'https://api.example/auth/oauth/token',
        introspection_endpoint: 'https://api.example/auth/introspect',
      },
    ],
  ])('publishes the metadata of RFC 8414, with %s', async (_, options, more) => {
    const response = ask(PATH, 'GET', setUp(options));

    expect(response?.status).toBe(200);
    expect(response?.headers.get('content-type')).toBe('application/json');
    expect(await response?.json()).toEqual({
      issuer: ISSUER,
      response_types_supported: [],
      token_endpoint_auth_methods_supported: ['none'],
      ...more,
    });
  });

  it.each([
    ['GET', 200, true],
    ['HEAD', 200, false],
    ['OPTIONS', 204, false],
    ['POST', 405, true],
  ])('answers %s with %i', async (method, status, hasBody) => {
    const response = ask(PATH, method) as Response;

    expect(response.status).toBe(status);
    expect((await response.text()) !== '').toBe(hasBody);
    expect(response.headers.get('access-control-allow-origin')).toBe(status === 405 ? null : '*');
  });

  it.each([
    ['https://auth.example', PATH],
    ['https://auth.example/', PATH],
    ['https://auth.example/one/two', `${PATH}/one/two`],
    ['https://auth.example/one/', `${PATH}/one`],
    ['http://127.0.0.1:8787', PATH],
  ])('of the issuer %s is at %s, and nowhere else', async (issuer, path) => {
    const answer = setUp({ issuer, exchange: true });

    const metadata = await ask(path, 'GET', answer)?.json();
    expect(metadata).toMatchObject({ issuer });
    expect(metadata.token_endpoint).toBe(`${issuer.replace(/\/$/, '')}/oauth/token`);
    const others = [`${path}x`, `${path}/x`, '/', '/.well-known/openid-configuration'];
    for (const other of others) expect(ask(other, 'GET', answer), other).toBeUndefined();
  });

  it.each([
    ['no options', undefined],
    ['no issuer', {}],
    ['http', { issuer: 'http://auth.example' }],
    ['a query', { issuer: `${ISSUER}?x` }],
    ['a fragment', { issuer: `${ISSUER}#x` }],
    ['a base with http', { issuer: ISSUER, base: 'http://auth.example' }],
    ['a text for exchange', { issuer: ISSUER, exchange: 'on' }],
    ['an unknown option', { issuer: ISSUER, scopes: [] }],
  ])('refuses %s', async (_, options) => {
    expect(await codeOf(() => oauthMetadata(options as never))).toBe('invalid_options');
  });
});
