import type { CarryingRequest } from './access/counted-requests.ts';
import type { Decider } from './access/decision.ts';
import type { Need } from './access/need.ts';
import {
  introspectOptions,
  readInput,
  readLongInput,
  verifyOptions,
  verifySyncOptions,
} from './inputs/schemas.ts';
import type {
  DeriveInput,
  DeriveOptions,
  IntrospectOptions,
  VerifyOptions,
  VerifySyncOptions,
} from './inputs/types.ts';
import type { AskedScope } from './scope/index.ts';
import type { IssuedToken, Token, Verdict } from './token/record.ts';
import { TokenUpkeep } from './upkeep.ts';
import { derived } from './verbs/derive.ts';
import type { ServiceParts } from './verbs/parts.ts';

type Decided = Verdict | Promise<Verdict>;

/**
 * The methods of a {@link TokenService} that take the value of a token and no account: what a bearer may
 * do.
 *
 * @example
 * const isWelcome = (tokens: TokenChecks, value: string) =>
 *   tokens.allows(value, { scope: 'GET:shop.example/orders' });
 */
export abstract class TokenChecks<out Entry extends string = string> extends TokenUpkeep {
  readonly #parts: ServiceParts;
  /** This instant, in milliseconds since 1970. */
  readonly #now: () => number;
  readonly #decider: Decider;

  /** @internal */
  constructor(parts: ServiceParts) {
    super(parts);
    this.#parts = parts;
    this.#now = parts.now;
    this.#decider = parts.decider;
  }

  /**
   * Decides whether a value allows something. A refused value is not an error but a verdict. The instant
   * of expiry already counts as expired. Only reads, with two exceptions: the first use of a value that
   * waits for it is written in the background, and if the uses of the token are limited, one is taken.
   *
   * If all accounts share one catalog, requests are read with it: a segment that one of its entries
   * names literally belongs to that entry, and no `{}` of a scope matches it.
   *
   * @param need a scope, or a request with its raw target, or one that a catalog has read
   * @param options `fresh` reads the store, whatever `cache` allows; `address` says where the request
   * comes from
   * @throws {TokenError} `invalid_scope` if `need.scope` is not a scope
   * @example
   * const need = { method: 'GET', domain: 'shop.example', target: '/orders/7?x=1' };
   * const verdict = await tokens.verify(value, need);
   * if (!verdict.ok) console.log(verdict.reason); // 'expired'
   */
  async verify<const Asked extends string = never>(
    value: string,
    need: Need<AskedScope<Entry, Asked>>,
    options?: VerifyOptions,
  ): Promise<Verdict> {
    const now = this.#now();
    const { fresh, address } = options === undefined ? {} : readInput(verifyOptions, options);
    const source = fresh === true ? 'store' : 'any';
    return this.#decider.decide(value, need, { now, source, address }) as Promise<Verdict>;
  }

  /**
   * Whether `verify` accepts a value. Never true for a refused one, unlike the verdict itself, which is
   * an object and so true in an `if`. If you need the token or the reason, call `verify`.
   *
   * @throws {TokenError} as `verify`. An outage of the store throws, too: it is not a `false`
   * @example
   * if (await tokens.allows(value, { scope: 'GET:shop.example/orders' })) console.log('welcome');
   */
  async allows<const Asked extends string = never>(
    value: string,
    need: Need<AskedScope<Entry, Asked>>,
    options?: VerifyOptions,
  ): Promise<boolean> {
    return (await this.verify(value, need, options)).ok;
  }

  /**
   * Decides immediately if nothing has to be awaited: the value is malformed, or its record is in the
   * cache (see the option `cache`) and the catalog is not a function. If the uses of the token are
   * limited, this process must have leased one in advance, or know that none is left.
   *
   * @returns the verdict that `verify` would give; `undefined` if you have to call `verify`
   * @throws {TokenError} as `verify`
   * @example
   * const verdict = tokens.verifySync(value, need) ?? (await tokens.verify(value, need));
   */
  verifySync<const Asked extends string = never>(
    value: string,
    need: Need<AskedScope<Entry, Asked>>,
    options?: VerifySyncOptions,
  ): Verdict | undefined {
    if (this.#parts.catalogs.arePerAccount) return undefined;
    const { address } = options === undefined ? {} : readInput(verifySyncOptions, options);
    const call = { now: this.#now(), source: 'cache', address } as const;
    return this.#decider.decide(value, need, call) as Verdict | undefined;
  }

  /**
   * Decides like `verify`, without a promise if nothing has to be awaited. For the guard. If a subclass
   * or a mock overrides `verify` or `verifySync`, calls these instead, and counts each call.
   *
   * @param addressOf is called only if the token is limited to addresses
   * @param request is counted once, even if several guards decide about it
   * @internal
   */
  decide(
    value: string,
    need: Need,
    addressOf?: () => string | undefined,
    request?: CarryingRequest,
  ): Decided {
    const { verify, verifySync } = TokenChecks.prototype;
    if (this.verify !== verify || this.verifySync !== verifySync) {
      const options = addressOf && { address: addressOf() };
      return this.verifySync(value, need, options) ?? this.verify(value, need, options);
    }
    const call = { now: this.#now(), source: 'any', address: addressOf, request } as const;
    return this.#decider.decide(value, need, call) as Decided;
  }

  /**
   * Returns the active token that a value belongs to. For answers about a token; use `verify` to grant
   * access. Always reads the store.
   *
   * @param options `includeSuspended` also returns a suspended token, to revoke it for example
   * @returns `undefined` if the value is malformed, unknown, revoked, expired or suspended, or if the
   * ancestors of its token leave it no scope
   * @throws {TokenError} `store_unavailable`, `store_corrupt`
   * @example
   * const token = await tokens.introspect(value);
   * console.log(token?.scopes); // ['GET:shop.example/orders']
   */
  async introspect(value: string, options: IntrospectOptions = {}): Promise<Token | undefined> {
    const now = this.#now();
    return this.#decider.introspect(value, now, readInput(introspectOptions, options));
  }

  /**
   * Issues a token that may do a part of what the token of this value may do: for a script, a job or an
   * agent that should get less than its owner has. It belongs to the same account, and is listed, changed,
   * rotated and revoked like any other.
   *
   * It never allows more than its parent and all other ancestors allow at the moment: `verify` accepts it
   * only while all of them are live and their scopes cover the need. So revoking, suspending or
   * narrowing a token reaches all tokens that were derived from it. Rotating it changes nothing for
   * them, except with `endDerived`.
   *
   * Requested scopes are expanded against those that the parent holds, as against a catalog. The token
   * expires with its parent at the latest, even if you ask for longer, and with the value: one that was
   * replaced and is in its grace period makes no token that lives longer than that. Its limits may only add
   * to those of its parent or be narrower. The limits of all ancestors apply to it as well: a use of it is a
   * use of each of them, and so is deriving it. There are at most 8 generations, and 100 live descendants of
   * one root by default (`quotas.derivedPerRoot`); they take no place from the account.
   *
   * @param options `address` says where the call comes from: needed if the token is limited to addresses
   * @throws {TokenError} `invalid_token` if `verify` would refuse the value whatever is needed, with the
   * reason in `details.reason`; `scope_unmatched`, naming what the parent does not hold; `quota_exceeded`
   * also beyond the eighth generation; else as `issue`
   * @example
   * const scopes = ['GET:shop.example/orders'];
   * const child = await tokens.derive(value, { scopes, ttlSeconds: 900, name: 'nightly job' });
   * console.log(child.parent); // the id of the token of `value`
   */
  async derive<const Asked extends string = never>(
    value: string,
    input: DeriveInput<AskedScope<Entry, Asked>>,
    options: DeriveOptions = {},
  ): Promise<IssuedToken> {
    const now = this.#now();
    const { deriveInput } = this.#parts.rules;
    const asked = await readLongInput(deriveInput, input);
    const { address } = readInput(verifySyncOptions, options);
    return derived(this.#parts, value, asked, { now, address });
  }
}
