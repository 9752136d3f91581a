// Which scopes a service with a typed catalog accepts. Each line that must not compile has a similar one
// beside it that does.
import type { IncomingMessage } from 'node:http';
import {
  type BearerGuard,
  bearerGuard,
  expressGuard,
  fastifyGuard,
  type GuardedRequest,
  type GuardNeed,
  type GuardOutcome,
  honoGuard,
  koaGuard,
  nestGuard,
  nextGuard,
  tokenHandler,
} from '../../src/http/index.ts';
import {
  type IssuedToken,
  type IssueInput,
  MemoryTokenStore,
  type Need,
  type RotatedToken,
  type RotateOptions,
  type Token,
  TokenService,
  type TokenStore,
  type Verdict,
} from '../../src/index.ts';
import {
  type CatalogPattern,
  type CatalogScope,
  defineCatalog,
  parseScope,
  ScopeCatalog,
  scopeIn,
} from '../../src/scope/index.ts';
import { same } from './same.ts';

declare const tokenStore: TokenStore;
declare const text: string;
declare const texts: readonly string[];
declare const request: Request;

const catalog = defineCatalog([
  'GET:shop.example/orders',
  'POST:shop.example/orders$',
  'GET:shop.example/users/{id}$',
]);
type Entry = CatalogScope<typeof catalog>;
type Pattern = CatalogPattern<typeof catalog>;
declare const patterns: readonly Pattern[];

const options = { store: new MemoryTokenStore(), keys: [], prefix: 'tw' };
const account = 'ada';
new TokenService({ ...options, usage: true, limits: true });
new TokenService({ ...options, usage: { flushMs: 100 }, limits: {} });
const counts = new MemoryTokenStore();
new TokenService({ ...options, store: tokenStore });
new TokenService({ ...options, store: tokenStore, usage: { store: counts.usage } });
new TokenService({ ...options, store: tokenStore, limits: { store: counts.leases } });
// @ts-expect-error: this store keeps no counts
new TokenService({ ...options, store: tokenStore, usage: true });
// @ts-expect-error: the same for limits
new TokenService({ ...options, store: tokenStore, limits: true });
// @ts-expect-error: and without a store
new TokenService({ ...options, store: tokenStore, usage: { flushMs: 100 } });

const tokens = new TokenService({ ...options, catalog });

// The service infers the entries from its catalog: given directly, by a function, or by a promise.
same<typeof tokens, TokenService<Entry>>(true);
const byAccount = new TokenService({ ...options, catalog: () => catalog });
same<typeof byAccount, TokenService<Entry>>(true);
const later = new TokenService({ ...options, catalog: async () => catalog });
same<typeof later, TokenService<Entry>>(true);
same<Awaited<ReturnType<typeof tokens.scopes>>, Entry[]>(true);

// Without a typed catalog it accepts any text.
const untyped = new TokenService(options);
same<typeof untyped, TokenService>(true);
const plain = new TokenService({ ...options, catalog: ScopeCatalog.from(['GET:a.example/b']) });
same<typeof plain, TokenService>(true);
const plainLater = new TokenService({ ...options, catalog: async () => ScopeCatalog.from(texts) });
same<typeof plainLater, TokenService>(true);
same<Awaited<ReturnType<typeof untyped.scopes>>, string[]>(true);
untyped.issue({ account, scopes: ['anything'] });
untyped.verify(text, { scope: 'anything' });
plain.issue({ account, scopes: ['anything'] });
// @ts-expect-error: a list is not a catalog
new TokenService({ ...options, catalog: ['GET:a.example/b'] });

// issue
tokens.issue({ account, scopes: ['GET:shop.example/orders', 'GET:shop.example/orders/7'] });
// @ts-expect-error: misspelled
tokens.issue({ account, scopes: ['GET:shop.example/ordrs'] });
tokens.issue({ account, scopes: ['*:shop.example/*', 'GET:*.example/users/7$'] });
// @ts-expect-error: a wildcard that overlaps no entry
tokens.issue({ account, scopes: ['*:hop.example/*'] });
// @ts-expect-error: misspelled beside a good one
tokens.issue({ account, scopes: ['GET:shop.example/orders', 'GET:shop.example/ordrs'] });
tokens.issue({ account, scopes: [`GET:shop.example/users/${text}$`] });
// @ts-expect-error: misspelled before a part that is known at run time
tokens.issue({ account, scopes: [`GET:shop.example/user/${text}$`] });
tokens.issue({ account, scopes: [scopeIn(catalog, 'GET:shop.example/orders')] });
tokens.issue({ account, scopes: patterns });
tokens.issue({ account, scopes: [] });
byAccount.issue({ account, scopes: ['GET:shop.example/orders'] });
// @ts-expect-error: misspelled
byAccount.issue({ account, scopes: ['GET:shop.example/ordrs'] });
later.issue({ account, scopes: ['GET:shop.example/orders'] });
// @ts-expect-error: misspelled
later.issue({ account, scopes: ['GET:shop.example/ordrs'] });

// Texts known only at run time are checked then, and so are all others in the same list.
declare const input: IssueInput;
tokens.issue(input);
tokens.issue({ account, scopes: texts });
tokens.issue({ account, scopes: [text] });
tokens.issue({ account, scopes: [text, 'GET:shop.example/ordrs'] });
// @ts-expect-error: not even a text
tokens.issue({ account, scopes: [7] });

// modify and patch
tokens.modify(account, text, { scopes: ['GET:shop.example/orders'] });
// @ts-expect-error: misspelled
tokens.modify(account, text, { scopes: ['GET:shop.example/ordrs'] });
tokens.patch(account, text, { scopes: ['GET:shop.example/orders'] });
// @ts-expect-error: misspelled
tokens.patch(account, text, { scopes: ['GET:shop.example/ordrs'] });
tokens.patch(account, text, { addScopes: ['GET:shop.example/orders'] });
// @ts-expect-error: misspelled
tokens.patch(account, text, { addScopes: ['GET:shop.example/ordrs'] });
// A scope that the catalog no longer has can still be removed.
tokens.patch(account, text, { removeScopes: ['GET:shop.example/gone'] });
tokens.patch(account, text, { name: 'reader' });

// rotate: returns a new value, unless it cancels a rotation
declare const rotation: RotateOptions;
const rotations = [
  tokens.rotate(account, text),
  tokens.rotate(account, text, rotation),
  tokens.rotate(account, text, { activate: 'first-use', graceSeconds: 60, ifVersion: 1 }),
];
same<typeof rotations, Promise<RotatedToken>[]>(true);
const canceled = tokens.rotate(account, text, { cancel: true, ifVersion: 1 });
same<typeof canceled, Promise<Token>>(true);
// @ts-expect-error: canceling makes no new value
tokens.rotate(account, text, { cancel: true, graceSeconds: 60 });
// @ts-expect-error: 'first-use' is the only value
tokens.rotate(account, text, { activate: 'now' });

// list
tokens.list({ account, scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelled
tokens.list({ account, scope: 'GET:shop.example/ordrs' });
tokens.listAll({ account, scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelled
tokens.listAll({ account, scope: 'GET:shop.example/ordrs' });
tokens.list({ account });
tokens.list({ account, scope: text });

// verify, verifySync and allows
declare const need: Need;
tokens.verify(text, need);
tokens.verify(text, { scope: 'GET:shop.example/orders/7' });
// @ts-expect-error: misspelled
tokens.verify(text, { scope: 'GET:shop.example/ordrs/7' });
tokens.verifySync(text, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelled
tokens.verifySync(text, { scope: 'GET:shop.example/ordrs' });
tokens.allows(text, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelled
tokens.allows(text, { scope: 'GET:shop.example/ordrs' });
tokens.verify(text, { scope: parseScope('GET:shop.example/ordrs') });
tokens.verify(text, { scope: text });
tokens.verify(text, { method: 'GET', domain: 'shop.example', target: '/ordrs' });
// A scope that cannot be requested can still be explained.
tokens.explain(account, text, { scope: 'GET:shop.example/ordrs' });

// Guards.
const guard = bearerGuard({ tokens, domain: 'shop.example' });
same<typeof guard, BearerGuard<Entry>>(true);
guard(request);
guard(request, { target: '/orders' });
guard(request, { scope: text });
guard(request, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelled
guard(request, { scope: 'GET:shop.example/ordrs' });
expressGuard(guard, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelled
expressGuard(guard, { scope: 'GET:shop.example/ordrs' });
fastifyGuard(guard, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelled
fastifyGuard(guard, { scope: 'GET:shop.example/ordrs' });
honoGuard(guard, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelled
honoGuard(guard, { scope: 'GET:shop.example/ordrs' });
koaGuard(guard, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelled
koaGuard(guard, { scope: 'GET:shop.example/ordrs' });
nestGuard(guard, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelled
nestGuard(guard, { scope: 'GET:shop.example/ordrs' });
nextGuard(guard, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelled
nextGuard(guard, { scope: 'GET:shop.example/ordrs' });
bearerGuard({ tokens: untyped, domain: 'shop.example' })(request, { scope: 'anything' });

// Anything that verifies like a service, and anything that guards like a guard.
const double = bearerGuard({
  tokens: {
    verify: async (value, asked): Promise<Verdict> => {
      same<typeof value, string>(true);
      return await untyped.verify(value, asked);
    },
    verifySync: () => undefined,
  },
  domain: 'shop.example',
});
double(request, { scope: 'anything' });
const wrapped = (of: GuardedRequest, asked?: GuardNeed): GuardOutcome | Promise<GuardOutcome> =>
  guard(of, asked);
expressGuard(wrapped, { scope: 'anything' });
expressGuard(guard);

// A typed service is a service, but not the other way round. The same holds for guards.
const service: TokenService = tokens;
service.issue({ account, scopes: ['anything'] });
// @ts-expect-error: its entries are unknown
const unknown: TokenService<Entry> = untyped;
const anyGuard: BearerGuard = guard;
anyGuard(request, { scope: 'anything' });
const made: TokenService = new TokenService({ ...options, catalog });
tokenHandler({ tokens, authenticate: () => account });

// A session may use the request type of its framework. It must return an account or null.
interface WithSession extends IncomingMessage {
  readonly session: { readonly account?: string };
}
tokenHandler({ tokens, session: (_, incoming: WithSession) => incoming.session.account ?? null });
tokenHandler({ tokens, session: async ({ headers }) => headers.get('cookie') });
// @ts-expect-error undefined is not an answer
tokenHandler({ tokens, session: (_, incoming: WithSession) => incoming.session.account });
// @ts-expect-error the first argument is a Fetch request
tokenHandler({ tokens, session: (request: WithSession) => request.session.account ?? null });

// A subclass needs no type parameters.
class Counted extends TokenService {
  override async issue(given: IssueInput): Promise<IssuedToken> {
    return await super.issue(given);
  }
}
new Counted({ ...options, catalog }).issue({ account, scopes: ['anything'] });

// Functions of the host can pass scopes on to any service.
const grant = (scope: Pattern): unknown[] => [
  tokens.issue({ account, scopes: [scope] }),
  untyped.issue({ account, scopes: [scope] }),
];
grant('GET:shop.example/orders/7');
// @ts-expect-error: misspelled
grant('GET:shop.example/ordrs/7');
const pass = <Scope extends string>(scope: Scope): unknown =>
  untyped.issue({ account, scopes: [scope] });
pass(text);

// Metadata.
interface Facts {
  readonly team: string;
  readonly seats?: number;
}
declare const facts: Facts;
tokens.issue({ account, scopes: texts, metadata: { ...facts } });
// @ts-expect-error: an interface can be extended with members that are not JSON
tokens.issue({ account, scopes: texts, metadata: facts });
// @ts-expect-error: a Date is not JSON
tokens.issue({ account, scopes: texts, metadata: { ...facts, since: new Date(0) } });

export { canceled, made, rotations, unknown };
