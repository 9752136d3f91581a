// The console in Hono, with a signed cookie as the session: no server, no store for sessions, any runtime.
import { Hono } from 'hono';
import { setSignedCookie } from 'hono/cookie';
import { parseSigned } from 'hono/utils/cookie';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { tokenConsole } from 'tokenwright/console';
import { tokenHandler } from 'tokenwright/http';
import { ScopeCatalog } from 'tokenwright/scope';

const SECRET = 'correct horse'; // in production: from your environment

export function createApp(tokens: TokenService): Hono {
  const service = tokenHandler({
    tokens,
    basePath: '/auth',
    async session({ headers }) {
      const { account } = await parseSigned(headers.get('cookie') ?? '', SECRET, 'account');
      return account || null; // false if somebody else has written it
    },
    onError: console.error,
  });
  const page = tokenConsole({ basePath: '/settings/tokens', api: '/auth', brand: 'Acme' });

  return new Hono()
    .post('/sign-in', async (c) => {
      // In production: only after you have checked who this is.
      const attributes = { httpOnly: true, secure: true, sameSite: 'Lax', maxAge: 3600 } as const;
      await setSignedCookie(c, 'account', 'ada', SECRET, attributes);
      return c.redirect('/settings/tokens', 303);
    })
    .all('/settings/tokens/*', (c) => page(c.req.raw))
    .all('/auth/*', (c) => service(c.req.raw));
}

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()], // in production: one that is kept, and the same for all processes
  prefix: 'acme',
  catalog: ScopeCatalog.from(['GET:shop.example/orders', 'POST:shop.example/orders']),
});
const app = createApp(tokens);

// What a browser sends, and gets.
const signedIn = await app.request('/sign-in', { method: 'POST' });
const [cookie = ''] = signedIn.headers.get('set-cookie')?.split(';') ?? [];
console.log((await app.request('/settings/tokens')).headers.get('content-type')); // text/html; charset=utf-8
const list = (cookie: string) => app.request('/auth/token', { headers: { cookie } });
console.log((await list('')).status, (await list('account=ada')).status); // 401 401
console.log((await list(cookie)).status); // 200

const issue = (headers: Record<string, string>) =>
  app.request('/auth/token', {
    method: 'POST',
    headers: { cookie, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ scopes: ['GET:shop.example/orders'], name: 'ci' }),
  });
console.log((await issue({})).status); // 403
console.log((await issue({ 'x-tokenwright': 'console', 'sec-fetch-site': 'cross-site' })).status); // 403
console.log((await issue({ 'x-tokenwright': 'console', 'sec-fetch-site': 'same-origin' })).status); // 200
console.log((await tokens.list({ account: 'ada' })).tokens.map(({ name }) => name).join()); // ci
