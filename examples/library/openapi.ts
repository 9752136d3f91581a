// From an OpenAPI document to a token for one resource, and what the next version of the document would change.
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard } from 'tokenwright/http';
import { catalogDiff, readOpenApi } from 'tokenwright/openapi';

const document = {
  openapi: '3.0.3',
  servers: [{ url: 'https://api.github.com' }],
  paths: {
    '/repos/{owner}/{repo}': { get: {}, delete: {} },
    '/repos/{owner}/{repo}/issues': { get: {}, post: {} },
    '/repos/{owner}/{repo}/issues/comments': { get: {} },
    '/repos/{owner}/{repo}/issues/{issue_number}': { get: {} },
    '/repos/{owner}/{repo}/issues/{issue_number}.patch': { get: {} },
  },
};
const { catalog, merged } = await readOpenApi(document);
const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  catalog,
});

// A template in a part of a segment is the whole segment: these operations can only be granted together.
const [both] = merged;
console.log(both?.scope); // GET:api.github.com/repos/{}/{}/issues/{}$
console.log(both?.operations.map(({ path }) => path.split('/').at(-1)).join(' ')); // {issue_number} {issue_number}.patch

// Ask with the path of one repository. The token gets every operation that reads below it.
const site = 'GET:api.github.com/repos/acme/site';
const { id, scopes, value } = await tokens.issue({ account: 'ada', scopes: [site] });
console.log(scopes[0]); // GET:api.github.com/repos/acme/site$
console.log(scopes[1]); // GET:api.github.com/repos/acme/site/issues$
console.log(scopes[2]); // GET:api.github.com/repos/acme/site/issues/comments$
console.log(scopes[3]); // GET:api.github.com/repos/acme/site/issues/{}$
console.log(scopes.length); // 4

// The guard reads each request by the catalog. In production this is your own API and your own host.
const guard = bearerGuard({ tokens, domain: 'api.github.com', catalog, onError: console.error });
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

// The next version has pulls, and no issues. Does it break a token that is out?
const next = await readOpenApi({
  ...document,
  paths: {
    '/repos/{owner}/{repo}': { get: {}, delete: {} },
    '/repos/{owner}/{repo}/pulls': { get: {} },
  },
});
const change = catalogDiff(catalog, next.catalog, { tokens: [{ id, scopes, requested: [site] }] });
console.log('new', ...change.added); // new GET:api.github.com/repos/{}/{}/pulls$
console.log('gone', change.removed.length); // gone 4
console.log(change.isBreaking); // true
