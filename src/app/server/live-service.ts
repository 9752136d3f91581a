import type { RequestListener } from 'node:http';
import { inTurn } from '../../http/node/turns.ts';
import type { TokenService } from '../../service.ts';

/** A service, and the listener that answers its calls. */
export interface Generation {
  readonly listener: RequestListener;
  /** Its store stays open when it closes. */
  readonly tokens: TokenService;
}

/** A generation with the number of its calls in progress. */
interface Counted extends Generation {
  calls: number;
}

/**
 * Answers calls with a service that can be replaced. Each call ends with the service it began with,
 * and a replaced service is closed after its last call.
 */
export class LiveService {
  #current: Counted;
  #isClosed = false;
  readonly #onError: (error: unknown) => void;

  /** @param onError is called if a service that was replaced cannot be closed */
  constructor(first: Generation, onError: (error: unknown) => void) {
    this.#current = { ...first, calls: 0 };
    this.#onError = onError;
  }

  /** Does nothing for a call before it is its turn. */
  readonly listener: RequestListener = (request, response) => {
    void inTurn(request, response, () => this.#answer(request, response));
  };

  #answer(...[request, response]: Parameters<RequestListener>): void {
    const generation = this.#current;
    generation.calls += 1;
    response.once('close', () => {
      generation.calls -= 1;
      if (generation !== this.#current) this.#closeIdle(generation);
    });
    generation.listener(request, response);
  }

  /** The service that answers now. */
  get tokens(): TokenService {
    return this.#current.tokens;
  }

  replace(next: Generation): void {
    const old = this.#current;
    const counted = { ...next, calls: 0 };
    if (!this.#isClosed) this.#current = counted;
    this.#closeIdle(this.#isClosed ? counted : old);
  }

  /** Closes the service that answers now. Call it after the last call has ended. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.tokens.close();
  }

  #closeIdle(old: Counted): void {
    if (old.calls === 0) old.tokens.close().catch(this.#onError);
  }
}

/** Shares a store among several services: hides its `close`, so that none of them closes it. */
export function sharedStore<Store extends object>(store: Store): Store {
  return new Proxy(store, {
    get(_, name) {
      if (name === 'close') return undefined;
      const member: unknown = Reflect.get(store, name, store);
      return typeof member === 'function' ? member.bind(store) : member;
    },
  });
}
