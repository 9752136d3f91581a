// Which scopes a service with a typed catalog accepts. Each line that must not compile has one beside it
// that does.
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
  type RotateOptions,
  type Token,
  TokenService,
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

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Equal<A, B>): void => {};

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
const tokens = new TokenService({ ...options, catalog });

// The service learns the entries from its catalog, however it gets it.
same<typeof tokens, TokenService<Entry>>(true);
const byAccount = new TokenService({ ...options, catalog: () => catalog });
same<typeof byAccount, TokenService<Entry>>(true);
const later = new TokenService({ ...options, catalog: async () => catalog });
same<typeof later, TokenService<Entry>>(true);
same<Awaited<ReturnType<typeof tokens.scopes>>, Entry[]>(true);

// Without types it knows none, and accepts any text.
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
// @ts-expect-error: misspelt
tokens.issue({ account, scopes: ['GET:shop.example/ordrs'] });
tokens.issue({ account, scopes: ['*:shop.example/*', 'GET:*.example/users/7$'] });
// @ts-expect-error: a wildcard that overlaps no entry
tokens.issue({ account, scopes: ['*:hop.example/*'] });
// @ts-expect-error: misspelt beside a good one
tokens.issue({ account, scopes: ['GET:shop.example/orders', 'GET:shop.example/ordrs'] });
tokens.issue({ account, scopes: [`GET:shop.example/users/${text}$`] });
// @ts-expect-error: misspelt before a part that is known at run time
tokens.issue({ account, scopes: [`GET:shop.example/user/${text}$`] });
tokens.issue({ account, scopes: [scopeIn(catalog, 'GET:shop.example/orders')] });
tokens.issue({ account, scopes: patterns });
tokens.issue({ account, scopes: [] });
byAccount.issue({ account, scopes: ['GET:shop.example/orders'] });
// @ts-expect-error: misspelt
byAccount.issue({ account, scopes: ['GET:shop.example/ordrs'] });
later.issue({ account, scopes: ['GET:shop.example/orders'] });
// @ts-expect-error: misspelt
later.issue({ account, scopes: ['GET:shop.example/ordrs'] });

// Texts that are known only at run time are checked then, all in one list with them as well.
declare const input: IssueInput;
tokens.issue(input);
tokens.issue({ account, scopes: texts });
tokens.issue({ account, scopes: [text] });
tokens.issue({ account, scopes: [text, 'GET:shop.example/ordrs'] });
// @ts-expect-error: not even a text
tokens.issue({ account, scopes: [7] });

// modify and patch
tokens.modify(account, text, { scopes: ['GET:shop.example/orders'] });
// @ts-expect-error: misspelt
tokens.modify(account, text, { scopes: ['GET:shop.example/ordrs'] });
tokens.patch(account, text, { scopes: ['GET:shop.example/orders'] });
// @ts-expect-error: misspelt
tokens.patch(account, text, { scopes: ['GET:shop.example/ordrs'] });
tokens.patch(account, text, { addScopes: ['GET:shop.example/orders'] });
// @ts-expect-error: misspelt
tokens.patch(account, text, { addScopes: ['GET:shop.example/ordrs'] });
// What the catalog no longer has can be dropped.
tokens.patch(account, text, { removeScopes: ['GET:shop.example/gone'] });
tokens.patch(account, text, { name: 'reader' });

// rotate: a new value, unless one is canceled
declare const rotation: RotateOptions;
const rotations = [
  tokens.rotate(account, text),
  tokens.rotate(account, text, rotation),
  tokens.rotate(account, text, { activate: 'first-use', graceSeconds: 60, ifVersion: 1 }),
];
same<typeof rotations, Promise<IssuedToken>[]>(true);
const canceled = tokens.rotate(account, text, { cancel: true, ifVersion: 1 });
same<typeof canceled, Promise<Token>>(true);
// @ts-expect-error: to cancel makes no new value
tokens.rotate(account, text, { cancel: true, graceSeconds: 60 });
// @ts-expect-error: there is no other time
tokens.rotate(account, text, { activate: 'now' });

// list
tokens.list({ account, scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelt
tokens.list({ account, scope: 'GET:shop.example/ordrs' });
tokens.listAll({ account, scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelt
tokens.listAll({ account, scope: 'GET:shop.example/ordrs' });
tokens.list({ account });
tokens.list({ account, scope: text });

// verify, verifySync and allows
declare const need: Need;
tokens.verify(text, need);
tokens.verify(text, { scope: 'GET:shop.example/orders/7' });
// @ts-expect-error: misspelt
tokens.verify(text, { scope: 'GET:shop.example/ordrs/7' });
tokens.verifySync(text, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelt
tokens.verifySync(text, { scope: 'GET:shop.example/ordrs' });
tokens.allows(text, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelt
tokens.allows(text, { scope: 'GET:shop.example/ordrs' });
tokens.verify(text, { scope: parseScope('GET:shop.example/ordrs') });
tokens.verify(text, { scope: text });
tokens.verify(text, { method: 'GET', domain: 'shop.example', target: '/ordrs' });
// What nobody can ask for can be explained.
tokens.explain(account, text, { scope: 'GET:shop.example/ordrs' });

// Guards.
const guard = bearerGuard({ tokens, domain: 'shop.example' });
same<typeof guard, BearerGuard<Entry>>(true);
guard(request);
guard(request, { target: '/orders' });
guard(request, { scope: text });
guard(request, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelt
guard(request, { scope: 'GET:shop.example/ordrs' });
expressGuard(guard, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelt
expressGuard(guard, { scope: 'GET:shop.example/ordrs' });
fastifyGuard(guard, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelt
fastifyGuard(guard, { scope: 'GET:shop.example/ordrs' });
honoGuard(guard, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelt
honoGuard(guard, { scope: 'GET:shop.example/ordrs' });
koaGuard(guard, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelt
koaGuard(guard, { scope: 'GET:shop.example/ordrs' });
nestGuard(guard, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelt
nestGuard(guard, { scope: 'GET:shop.example/ordrs' });
nextGuard(guard, { scope: 'GET:shop.example/orders' });
// @ts-expect-error: misspelt
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

// A typed service and guard are a service and a guard, and not the other way round.
const service: TokenService = tokens;
service.issue({ account, scopes: ['anything'] });
// @ts-expect-error: nobody knows its entries
const unknown: TokenService<Entry> = untyped;
const anyGuard: BearerGuard = guard;
anyGuard(request, { scope: 'anything' });
const made: TokenService = new TokenService({ ...options, catalog });
tokenHandler({ tokens, authenticate: () => account });

// A session may name the request of its framework; an account that may be missing is not one.
interface WithSession extends IncomingMessage {
  readonly session: { readonly account?: string };
}
tokenHandler({ tokens, session: (_, incoming: WithSession) => incoming.session.account ?? null });
tokenHandler({ tokens, session: async ({ headers }) => headers.get('cookie') });
// @ts-expect-error undefined is no answer
tokenHandler({ tokens, session: (_, incoming: WithSession) => incoming.session.account });
// @ts-expect-error the request is one of Fetch
tokenHandler({ tokens, session: (request: WithSession) => request.session.account ?? null });

// A subclass names no types.
class Counted extends TokenService {
  override async issue(given: IssueInput): Promise<IssuedToken> {
    return await super.issue(given);
  }
}
new Counted({ ...options, catalog }).issue({ account, scopes: ['anything'] });

// Functions of the host pass scopes on, to any service.
const grant = (scope: Pattern): unknown[] => [
  tokens.issue({ account, scopes: [scope] }),
  untyped.issue({ account, scopes: [scope] }),
];
grant('GET:shop.example/orders/7');
// @ts-expect-error: misspelt
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
// @ts-expect-error: an interface may get members that are not JSON
tokens.issue({ account, scopes: texts, metadata: facts });
// @ts-expect-error: a Date is not JSON
tokens.issue({ account, scopes: texts, metadata: { ...facts, since: new Date(0) } });

export { canceled, made, rotations, unknown };
