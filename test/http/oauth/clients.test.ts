import { createServer } from 'node:http';
import * as oauth4webapi from 'oauth4webapi';
import * as openid from 'openid-client';
import { afterEach, describe, expect, it } from 'vitest';
import { oauthMetadata, toNodeListener } from '../../../src/http/index.ts';
import { ORDERS, setUp } from '../support.ts';
import { closeAll, portOf } from '../wire.ts';

afterEach(closeAll);

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
const INVOICES = 'GET:billing.example/invoices';
const type = 'urn:ietf:params:oauth:token-type:access_token';

/** A server over Node.js, its metadata and a token of two hosts. */
async function serving() {
  const server = createServer().listen(0, '127.0.0.1');
  const issuer = `http://127.0.0.1:${await portOf(server)}`;
  const oauth = { issuer, exchange: true };
  const requests = { verificationUri: `${issuer}/approve`, anonymous: true };
  const setting = setUp({ oauth, requests });
  const metadata = oauthMetadata({ ...oauth, requests: true });
  server.on(
    'request',
    toNodeListener(async (request) => metadata(request) ?? setting.handler(request)),
  );
  const { value } = await setting.tokens.issue({ account: 'ada', scopes: [ORDERS, INVOICES] });
  const form = { subject_token: value, subject_token_type: type };
  return { ...setting, issuer: new URL(issuer), form };
}

describe('oauth4webapi', () => {
  it('asks for more than a token holds, and gets it when somebody has approved', async () => {
    const { issuer, form, call } = await serving();
    const insecure = { [oauth4webapi.allowInsecureRequests]: true };
    const discovery = { ...insecure, algorithm: 'oauth2' as const };
    const found = await oauth4webapi.discoveryRequest(issuer, discovery);
    const server = await oauth4webapi.processDiscoveryResponse(issuer, found);
    const client = { client_id: 'agent' };
    const proof = oauth4webapi.None();
    const asked = new URLSearchParams({ ...form, scope: 'POST:shop.example/orders' });
    const opened = await oauth4webapi.processDeviceAuthorizationResponse(
      server,
      client,
      await oauth4webapi.deviceAuthorizationRequest(server, client, proof, asked, insecure),
    );
    const poll = async () =>
      oauth4webapi.processDeviceCodeResponse(
        server,
        client,
        await oauth4webapi.deviceCodeGrantRequest(
          server,
          client,
          proof,
          opened.device_code,
          insecure,
        ),
      );
    await expect(poll()).rejects.toMatchObject({ error: 'authorization_pending' });
    await expect(poll()).rejects.toMatchObject({ error: 'slow_down' });
    await call('POST', `/request/${opened.user_code}/approve`, { json: {} });
    await expect(poll()).rejects.toMatchObject({ error: 'slow_down' });
  });

  /** Discovers the server, and exchanges by its token endpoint. */
  async function exchange(issuer: URL, parameters: URLSearchParams) {
    const insecure = { [oauth4webapi.allowInsecureRequests]: true };
    const discovery = { ...insecure, algorithm: 'oauth2' as const };
    const response = await oauth4webapi.discoveryRequest(issuer, discovery);
    const server = await oauth4webapi.processDiscoveryResponse(issuer, response);
    const client = { client_id: 'agent' };
    return oauth4webapi.processGenericTokenEndpointResponse(
      server,
      client,
      await oauth4webapi.genericTokenEndpointRequest(
        server,
        client,
        oauth4webapi.None(),
        GRANT,
        parameters,
        insecure,
      ),
    );
  }

  it('discovers the server and exchanges a token for one resource', async () => {
    const { issuer, form, tokens } = await serving();
    const resource = 'https://shop.example/mcp';

    const answer = await exchange(issuer, new URLSearchParams({ ...form, resource }));

    expect(answer).toMatchObject({ token_type: 'bearer', expires_in: 3600, scope: ORDERS });
    expect(await tokens.allows(answer.access_token, { scope: ORDERS })).toBe(true);
    expect(await tokens.allows(answer.access_token, { scope: INVOICES })).toBe(false);
  });

  it('reads the error of a refusal', async () => {
    const { issuer, form } = await serving();

    await expect(
      exchange(issuer, new URLSearchParams({ ...form, resource: 'urn:x' })),
    ).rejects.toMatchObject({ error: 'invalid_target', status: 400 });
  });
});

describe('openid-client', () => {
  it('asks for a token, waits, and gets it when somebody has approved', async () => {
    const { issuer, tokens, call, clock } = await serving();
    const config = await discover(issuer);
    const asked = { scope: ORDERS, purpose: 'one task' };
    const opened = await openid.initiateDeviceAuthorization(config, asked);
    expect(opened).toMatchObject({ verification_uri: `${issuer.origin}/approve`, interval: 5 });

    await call('POST', `/request/${opened.user_code}/approve`, { json: {} });
    clock.advance(5);
    const answer = await openid.pollDeviceAuthorizationGrant(config, { ...opened, interval: 0.01 });

    expect(answer).toMatchObject({ expires_in: 3600, scope: ORDERS });
    const token = await tokens.introspect(answer.access_token);
    expect(token).toMatchObject({ account: 'ada', name: 'agent', purpose: 'one task' });
  });

  it('learns that the request was denied', async () => {
    const { issuer, call } = await serving();
    const config = await discover(issuer);
    const opened = await openid.initiateDeviceAuthorization(config, { scope: ORDERS });
    await call('POST', `/request/${opened.user_code}/deny`, { json: {} });

    await expect(
      openid.pollDeviceAuthorizationGrant(config, { ...opened, interval: 0.01 }),
    ).rejects.toMatchObject({ error: 'access_denied' });
  });

  const discover = (issuer: URL) =>
    openid.discovery(issuer, 'agent', undefined, openid.None(), {
      algorithm: 'oauth2',
      execute: [openid.allowInsecureRequests],
    });

  it('discovers the server and exchanges a token for several resources', async () => {
    const { issuer, form, tokens } = await serving();
    const parameters = new URLSearchParams({ ...form, purpose: 'one task' });
    for (const host of ['shop', 'billing']) {
      parameters.append('resource', `https://${host}.example`);
    }

    const answer = await openid.genericGrantRequest(await discover(issuer), GRANT, parameters);

    expect(answer).toMatchObject({ expires_in: 3600, scope: `${INVOICES} ${ORDERS}` });
    const token = await tokens.introspect(answer.access_token);
    expect(token).toMatchObject({ account: 'ada', purpose: 'one task' });
  });

  it('reads the error of a refusal', async () => {
    const { issuer, form } = await serving();
    const parameters = { ...form, scope: 'GET:shop.example/items' };

    await expect(
      openid.genericGrantRequest(await discover(issuer), GRANT, parameters),
    ).rejects.toMatchObject({ error: 'invalid_scope', status: 400 });
  });
});
