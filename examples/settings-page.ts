// A settings page: people who are signed in make, see and end their own tokens, by their session alone.
import {
  generateKey,
  isTokenError,
  MemoryTokenStore,
  MemoryUsageStore,
  TokenService,
} from 'tokenwright';
import { ScopeCatalog } from 'tokenwright/scope';

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()], // in production: one that is kept, and the same for all processes
  prefix: 'acme',
  catalog: ScopeCatalog.from(['GET:shop.example/orders', 'POST:shop.example/orders']),
  usage: { store: new MemoryUsageStore() }, // so that people see which tokens they can revoke
});

// A stand-in. In production your own session, its cookie `HttpOnly`, `Secure` and `SameSite=Lax`.
const sessions = new Map([['session=of-ada', 'ada']]);
const accountOf = ({ headers }: Request) => sessions.get(headers.get('cookie') ?? '');

const PAGE = '/settings/tokens';
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store', // it shows a value, once
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
};

/** Answers `GET` and `POST` of the page. Its forms name no account, so that nobody can name another's. */
export async function settingsPage(request: Request): Promise<Response> {
  const account = accountOf(request);
  if (account === undefined) return new Response('Sign in first.', { status: 401 });
  if (request.method === 'GET') return answer(account);
  // No page of another site makes or ends a token: the browser says whose page has sent the form.
  const isOwn = request.headers.get('sec-fetch-site') === 'same-origin';
  if (request.method !== 'POST' || !isOwn) return new Response('Refused.', { status: 403 });
  const form = await request.formData();
  const text = (name: string) => String(form.get(name) ?? '');
  try {
    if (form.has('revoke')) {
      await tokens.revoke(account, text('revoke'));
      return new Response(null, { status: 303, headers: { location: PAGE } });
    }
    const scopes = form.getAll('scope').map(String);
    const ttlSeconds = Number(text('days')) * 86_400;
    const { value } = await tokens.issue({ account, scopes, ttlSeconds, name: text('name') });
    const made = html`<p role="status">Copy it now, it is shown this once: <code>${value}</code></p>`;
    return await answer(account, made);
  } catch (error) {
    if (!isTokenError(error) || error.code.startsWith('store_')) throw error; // your 500 or 503
    return answer(account, html`<p role="alert">${error.message}</p>`, 422);
  }
}

async function answer(account: string, notice = html``, status = 200): Promise<Response> {
  const { tokens: held } = await tokens.list({ account, limit: 1000 });
  const rows = held.map(
    ({ id, name = '', masked, scopes, expiresAt, lastUsedAt }) => html`
      <li>
        <strong>${name}</strong> <code>${masked}</code>
        <small>${scopes.join(', ')}, until ${expiresAt.toISOString().slice(0, 10)}</small>
        <small>Last used: ${lastUsedAt?.toISOString().slice(0, 10) ?? 'never'}</small>
        <form method="post"><button name="revoke" value="${id}">Revoke ${name}</button></form>
      </li>`,
  );
  const choices = (await tokens.scopes(account)).map(
    (scope) => html`<label><input type="checkbox" name="scope" value="${scope}"> ${scope}</label>`,
  );
  const page = html`<!doctype html>
    <html lang="en">
      <meta name="viewport" content="width=device-width">
      <title>Access tokens</title>
      <style>
        :root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
        body { max-width: 40rem; margin: 2rem auto; padding: 0 1rem }
        ul { list-style: none; padding: 0 }
        li, fieldset { border: 1px solid #8888; border-radius: 6px; padding: 1rem; margin: 1rem 0 }
        label, small { display: block; margin-bottom: .5rem }
        code { overflow-wrap: anywhere }
        button, input { font: inherit }
      </style>
      <h1>Access tokens</h1>
      ${notice}
      <ul>${rows}</ul>
      <form method="post">
        <fieldset>
          <legend>A new token</legend>
          <label>Name <input name="name" required></label>
          ${choices}
          <label>Days <input name="days" type="number" value="90" min="1" max="365"></label>
          <button>Make it</button>
        </fieldset>
      </form>
    </html>`;
  return new Response(page.markup, { status, headers: HEADERS });
}

type Html = { readonly markup: string };

/** Escapes each text, since names are what people typed; what it has made itself goes in as it is. */
function html(parts: TemplateStringsArray, ...values: (string | Html | Html[])[]): Html {
  const escaped = (text: string) => text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
  const markupOf = (one: string | Html) => (typeof one === 'string' ? escaped(one) : one.markup);
  const markups = values.map((value) => [value].flat().map(markupOf).join(''));
  return { markup: String.raw({ raw: parts }, ...markups) };
}

// What a browser sends, and gets.
const call = (form?: Record<string, string>, site = 'same-origin', cookie = 'session=of-ada') =>
  settingsPage(
    new Request(`https://shop.example${PAGE}`, {
      headers: { cookie, 'sec-fetch-site': site },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    }),
  );
const wanted = { name: '<b>ci</b>', scope: 'GET:shop.example/orders', days: '90' };
const shown = await (await call(wanted)).text();
const value = /acme_1\w{57}/.exec(shown)?.[0] ?? '';
const need = { scope: 'GET:shop.example/orders' };
console.log((await tokens.verify(value, need)).ok); // true
const later = await (await call()).text();
console.log(shown.includes('Last used: never'), later.includes('Last used: never')); // true false
console.log(later.includes(value), later.includes('<b>'), later.includes('&#60;b&#62;')); // false false true

const [{ id = '' } = {}] = (await tokens.list({ account: 'ada' })).tokens;
console.log((await call({ revoke: id }, 'cross-site')).status); // 403
console.log((await call({ revoke: id }, 'same-origin', '')).status); // 401
console.log((await call({ ...wanted, scope: 'GET:shop.example/bills' })).status); // 422
console.log((await call({ revoke: id })).status); // 303
console.log((await tokens.verify(value, need)).ok); // false
