// From an OpenAPI document to a token for one resource: six operations of GitHub's API, its catalog, its guard.
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard } from 'tokenwright/http';
import { catalogFromOpenApi } from 'tokenwright/openapi';

const catalog = await catalogFromOpenApi({
  openapi: '3.0.3',
  servers: [{ url: 'https://api.github.com' }],
  paths: {
    '/repos/{owner}/{repo}': { get: {}, delete: {} },
    '/repos/{owner}/{repo}/issues': { get: {}, post: {} },
    '/repos/{owner}/{repo}/issues/comments': { get: {} },
    '/repos/{owner}/{repo}/issues/{issue_number}': { get: {} },
  },
});
const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  catalog,
});

// Ask with the path of one repository. The token gets every operation that reads below it.
const site = 'GET:api.github.com/repos/acme/site';
const { scopes, value } = await tokens.issue({ account: 'ada', scopes: [site] });
console.log(scopes[0]); // GET:api.github.com/repos/acme/site$
console.log(scopes[1]); // GET:api.github.com/repos/acme/site/issues$
console.log(scopes[2]); // GET:api.github.com/repos/acme/site/issues/comments$
console.log(scopes[3]); // GET:api.github.com/repos/acme/site/issues/{}$
console.log(scopes.length); // 4

// The guard reads each request by the catalog. In production this is your own API and your own host.
const guard = bearerGuard({ tokens, domain: 'api.github.com', catalog });
async function call(bearer: string, target: string, method = 'GET'): Promise<string> {
  const headers = { authorization: `Bearer ${bearer}` };
  const outcome = await guard(new Request(`https://api.github.com${target}`, { method, headers }));
  if (outcome.ok) return outcome.grantedBy;
  return outcome.response.headers.get('www-authenticate')?.split('scope=')[1] ?? outcome.reason;
}
console.log(await call(value, '/repos/acme/site/issues/7')); // GET:api.github.com/repos/acme/site/issues/{}$

// Refused: the challenge names what the request needs. Another repository, then another method.
console.log(await call(value, '/repos/acme/blog')); // "GET:api.github.com/repos/{}/{}$"
console.log(await call(value, '/repos/acme/site', 'DELETE')); // "DELETE:api.github.com/repos/{}/{}$"

// One operation, in every repository. It reads any issue, and not the endpoint beside it.
const issues = 'GET:api.github.com/repos/{owner}/{repo}/issues/{issue_number}$';
const reader = await tokens.issue({ account: 'ada', scopes: [issues] });
console.log(...reader.scopes); // GET:api.github.com/repos/{}/{}/issues/{}$
console.log(await call(reader.value, '/repos/acme/blog/issues/3')); // GET:api.github.com/repos/{}/{}/issues/{}$
console.log(await call(reader.value, '/repos/acme/blog/issues/comments')); // "GET:api.github.com/repos/{}/{}/issues/comments$"
