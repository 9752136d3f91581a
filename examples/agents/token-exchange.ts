// An agent exchanges the token of a person for a narrower one, for one server and one task (RFC 8693).
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { allowInsecureRequests, discovery, genericGrantRequest, None } from 'openid-client';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { fixedAccounts, oauthMetadata, tokenHandler, toNodeListener } from 'tokenwright/http';

const store = new MemoryTokenStore();
const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
const server = createServer().listen(0, '127.0.0.1');
await once(server, 'listening');

// In production, your public URL: https://auth.example, for example.
const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const oauth = { issuer, exchange: true };
const authenticate = fixedAccounts([{ username: 'ada', password: 'correct horse' }]);
const handler = tokenHandler({ tokens, authenticate, oauth, onError: console.error });
const metadata = oauthMetadata(oauth);
server.on(
  'request',
  toNodeListener(async (request) => metadata(request) ?? handler(request)),
);

// Ada has given her token to the agent, which has one of its own.
const scopes = ['GET:shop.example/orders', 'POST:shop.example/orders', 'GET:bank.example/bills'];
const ada = await tokens.issue({ account: 'ada', scopes });
const agent = await tokens.issue({ account: 'agent', scopes: ['GET:agents.example/tasks'] });

// What the agent does: no registration, no secret, and nothing that knows this service.
const type = 'urn:ietf:params:oauth:token-type:access_token';
const config = await discovery(new URL(issuer), 'agent', undefined, None(), {
  algorithm: 'oauth2',
  execute: [allowInsecureRequests],
});
const grant = 'urn:ietf:params:oauth:grant-type:token-exchange';
const exchanged = await genericGrantRequest(config, grant, {
  subject_token: ada.value,
  subject_token_type: type,
  actor_token: agent.value,
  actor_token_type: type,
  resource: 'https://shop.example/',
  scope: 'GET:*/*',
  ttl: '900',
  purpose: 'count the orders of today',
});
console.log(exchanged.scope, exchanged.expires_in); // GET:shop.example/orders 900

// What the shop learns about the token, and what becomes of it once Ada ends hers.
const token = await tokens.introspect(exchanged.access_token);
console.log(token?.account, token?.actor?.sub, token?.purpose); // ada agent count the orders of today
await tokens.revoke('ada', ada.id);
const verdict = await tokens.verify(exchanged.access_token, { scope: 'GET:shop.example/orders' });
console.log(verdict.reason); // ancestor_revoked
server.close();
