// A small application: people sign in, make tokens in the console, and call an API that checks them. Start it with `npm run example`.
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import express from 'express';
import session from 'express-session';
import pg from 'pg';
import { generateKey, TokenService } from 'tokenwright';
import { tokenConsole } from 'tokenwright/console';
import {
  bearerGuard,
  expressGuard,
  fixedAccounts,
  gracefulStop,
  tokenHandler,
  toNodeListener,
} from 'tokenwright/http';
import { migrate, PostgresTokenStore } from 'tokenwright/postgres';
import { ScopeCatalog } from 'tokenwright/scope';

declare module 'express-session' {
  interface SessionData {
    account: string;
  }
}

const {
  DATABASE_URL,
  PORT = '3000',
  KEYS_FILE = new URL('keys.json', import.meta.url).pathname,
  SESSION_SECRET = randomBytes(32).toString('hex'), // set it, or a restart signs everybody out
} = process.env;
if (DATABASE_URL === undefined) {
  console.error(
    'Set DATABASE_URL. For a database to try: docker run -d -p 5432:5432 -e POSTGRES_PASSWORD=secret postgres, and DATABASE_URL=postgres://postgres:secret@127.0.0.1/postgres',
  );
  process.exit(1);
}

// The tables: those of the tokens, and the orders that the API is about.
const pool = new pg.Pool({
  connectionString: DATABASE_URL,
  connectionTimeoutMillis: 2000,
  statement_timeout: 2000,
});
await migrate(pool);
await pool.query(
  'CREATE TABLE IF NOT EXISTS acme_orders (id serial PRIMARY KEY, account text NOT NULL, item text NOT NULL)',
);

// The keys stay outside the database. In production, a secret that all processes share.
if (!existsSync(KEYS_FILE)) {
  writeFileSync(KEYS_FILE, JSON.stringify([generateKey('k1')]), { mode: 0o600, flag: 'wx' });
}

const DOMAIN = 'shop.example';
const store = new PostgresTokenStore(pool);
const tokens = new TokenService({
  store,
  keys: JSON.parse(readFileSync(KEYS_FILE, 'utf8')),
  prefix: 'acme',
  catalog: ScopeCatalog.from([
    `GET:${DOMAIN}/orders$`,
    `POST:${DOMAIN}/orders$`,
    `GET:${DOMAIN}/orders/{id}$`,
  ]),
  lifetime: { defaultSeconds: 90 * 86_400 },
  usage: true, // the console shows when each token was last used
});
const upkeep = tokens.upkeep(); // removes old records in the background

const app = express();

// For people: a session. In production, keep sessions in a store, such as connect-pg-simple.
app.use(
  session({
    secret: SESSION_SECRET,
    resave: false,
    saveUninitialized: false,
    cookie: { sameSite: 'lax', secure: 'auto', httpOnly: true, maxAge: 8 * 3_600_000 },
  }),
);
const checkPassword = fixedAccounts([
  { username: 'ada', password: 'correct-horse' },
  { username: 'grace', password: 'battery-staple' },
]);

app.get('/', (request, response) => {
  response.send(
    request.session.account === undefined
      ? `<form method="post" action="/sign-in"><h1>Acme</h1>
         <p><label>User <input name="username" value="ada"></label>
         <p><label>Password <input name="password" type="password"></label> (correct-horse)
         <p><button>Sign in</button></form>`
      : `<h1>Acme</h1><p><a href="/settings/tokens">Your access tokens</a>
         <form method="post" action="/sign-out"><button>Sign out</button></form>`,
  );
});

app.post('/sign-in', express.urlencoded(), async (request, response, next) => {
  const { username = '', password = '' } = request.body ?? {};
  const account = await checkPassword({ username: String(username), password: String(password) });
  if (account === null) return void response.status(401).send('Wrong user or password.');
  // A new id, so that nobody can plant a session before the sign-in.
  request.session.regenerate((error) => {
    if (error) return next(error);
    request.session.account = account;
    response.redirect(303, '/settings/tokens');
  });
});

app.post('/sign-out', (request, response) => {
  request.session.destroy(() => response.redirect(303, '/'));
});

// The console, and the token service that it calls by the session.
app.use(
  '/settings/tokens',
  toNodeListener(tokenConsole({ basePath: '/settings/tokens', api: '/auth', brand: 'Acme' })),
);
app.use(
  '/auth',
  toNodeListener(
    tokenHandler({
      tokens,
      session: (_request, incoming: express.Request) => incoming.session.account ?? null,
      onError: console.error,
    }),
  ),
);

// For programs: the API, with a token. Each account sees its own orders.
const guard = bearerGuard({ tokens, domain: DOMAIN, onError: console.error });
app.use('/orders', expressGuard(guard), express.json());

app.get('/orders', async (request, response) => {
  const { rows } = await pool.query('SELECT id, item FROM acme_orders WHERE account = $1', [
    request.token?.account,
  ]);
  response.json(rows);
});

app.post('/orders', async (request, response) => {
  const { rows } = await pool.query(
    'INSERT INTO acme_orders (account, item) VALUES ($1, $2) RETURNING id, item',
    [request.token?.account, String(request.body?.item ?? 'a book')],
  );
  response.status(201).json(rows[0]);
});

app.get('/orders/:id', async (request, response) => {
  const { rows } = await pool.query(
    'SELECT id, item FROM acme_orders WHERE account = $1 AND id::text = $2',
    [request.token?.account, request.params.id],
  );
  if (rows[0] === undefined) response.status(404).json({ error: 'no such order' });
  else response.json(rows[0]);
});

const server = createServer(app);
const stop = gracefulStop(server);
server.listen(Number(PORT), '127.0.0.1', () => {
  console.log(`Sign in as ada with correct-horse at http://127.0.0.1:${PORT}/ and make a token.`);
  console.log(`Then: curl -H 'Authorization: Bearer VALUE' http://127.0.0.1:${PORT}/orders`);
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await stop();
    await upkeep.stop();
    await tokens.close();
    await pool.end();
  });
}
