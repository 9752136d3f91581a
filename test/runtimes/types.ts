// The types of every entry as a consumer sees them. An `any` would pass each check but the one that
// expects an error.
import {
  generateKey,
  type IssuedToken,
  MemoryTokenStore,
  TokenService,
  type TokenStore,
  type Verdict,
} from 'tokenwright';
import { type BearerGuard, bearerGuard, type TokenHandler, toNodeListener } from 'tokenwright/http';
import { type McpGuard, mcpGuard, toolScope } from 'tokenwright/mcp';
import { MysqlTokenStore } from 'tokenwright/mysql';
import { catalogFromOpenApi, readOpenApi } from 'tokenwright/openapi';
import { PostgresTokenStore } from 'tokenwright/postgres';
import { RedisTokenStore } from 'tokenwright/redis';
import { defineCatalog, type Scope, type ScopeCatalog, safeParseScope } from 'tokenwright/scope';
import { SqliteTokenStore } from 'tokenwright/sqlite';
import { manualClock, storeContract } from 'tokenwright/testing';

declare const text: string;
declare const request: Request;
declare const pool: ConstructorParameters<typeof PostgresTokenStore>[0];

const store = new MemoryTokenStore();
const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });

export async function root(): Promise<string> {
  const issued: IssuedToken = await tokens.issue({ account: 'ada', scopes: [text] });
  const verdict: Verdict = await tokens.verify(issued.value, { scope: text });
  // @ts-expect-error: a verdict that refuses has no token
  if (!verdict.ok) return verdict.token.id;
  return verdict.grantedBy;
}

export function scope(): Scope | undefined {
  const reading = safeParseScope(text);
  const catalog = defineCatalog(['GET:shop.example/orders']);
  catalog.expand(['GET:shop.example/orders']);
  // @ts-expect-error: misspelt
  catalog.expand(['GET:shop.example/order']);
  const typed = new TokenService({ store, keys: [], prefix: 'acme', catalog });
  void typed.issue({ account: 'ada', scopes: ['GET:shop.example/orders/7', text] });
  void typed.verify(text, { scope: 'GET:shop.example/orders/7' });
  // @ts-expect-error: misspelt
  void typed.issue({ account: 'ada', scopes: ['GET:shop.example/order'] });
  const guard = bearerGuard({ tokens: typed, domain: 'shop.example' });
  // @ts-expect-error: misspelt
  void guard(request, { scope: 'GET:shop.example/order' });
  return reading.ok ? reading.scope : undefined;
}

export async function mcp(): Promise<string> {
  const options = { tokens, domain: text, resource: text };
  // @ts-expect-error: a tool needs a scope
  mcpGuard({ ...options, tools: { refund: true } });
  const guard: McpGuard = mcpGuard({ ...options, methods: { 'prompts/get': true } });
  const outcome = await guard(request);
  // @ts-expect-error: a refusal has no account
  if (!outcome.ok) return outcome.auth.clientId;
  return outcome.allows('refund') ? outcome.auth.clientId : toolScope(text, 'refund');
}

export function http(handler: TokenHandler): BearerGuard {
  const listener: (request: never, response: never) => Promise<void> = toNodeListener(handler);
  listener.toString();
  // @ts-expect-error: the domain is missing
  bearerGuard({ tokens });
  return bearerGuard({ tokens, domain: 'shop.example' });
}

export async function openapi(): Promise<ScopeCatalog> {
  const { merged } = await readOpenApi({});
  // @ts-expect-error: an entry has no paths
  merged[0]?.paths;
  return catalogFromOpenApi([], { hosts: [text] });
}

export function stores(): TokenStore[] {
  // @ts-expect-error: neither a path nor a database
  SqliteTokenStore.open(1);
  // @ts-expect-error: no pool
  new PostgresTokenStore(text);
  // @ts-expect-error: no pool
  new MysqlTokenStore(text);
  // @ts-expect-error: no client
  new RedisTokenStore(text);
  return [SqliteTokenStore.open(text), new PostgresTokenStore(pool)];
}

export async function testing(): Promise<Date> {
  const clock = manualClock();
  clock.advance(60);
  // @ts-expect-error: not a number
  clock.advance('60');
  for (const { name, run } of storeContract) await run(() => store).then(() => name.length);
  return clock.now();
}
