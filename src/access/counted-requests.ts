import type { LimitHit } from '../limits/leases.ts';

/** A request that carries a value, as a guard sees it. */
export interface CarryingRequest {
  /** The same object for all guards that see this request. */
  readonly object: object;
  readonly value: string;
  readonly method: string;
  readonly target: string;
}

/** What was counted of a request already. */
export interface Counted {
  /** Whether a use was spent, or the attempt that is under way. */
  spent: true | Promise<true | LimitHit> | undefined;
  isUsed: boolean;
  isRefused: boolean;
}

interface Entry extends Counted {
  readonly request: CarryingRequest;
}

/** A host may reuse one object for all its calls. Its entries must not grow with them. */
const MAX_VALUES = 8;

/**
 * Remembers what was counted of each request, so that one request is one use, whichever guards see it. An
 * object that was changed to another method or target is another request.
 */
export class CountedRequests {
  readonly #entries = new WeakMap<object, Entry[]>();

  /** To be read and written by the caller, who counts. */
  of(request: CarryingRequest): Counted {
    const entries = this.#entries.get(request.object);
    const index = entries?.findIndex((each) => each.request.value === request.value) ?? -1;
    const known = entries?.[index];
    const { method, target } = known?.request ?? {};
    if (known !== undefined && method === request.method && target === request.target) return known;
    const entry: Entry = { request, spent: undefined, isUsed: false, isRefused: false };
    if (entries === undefined) this.#entries.set(request.object, [entry]);
    else {
      if (known !== undefined || entries.length === MAX_VALUES)
        entries.splice(Math.max(index, 0), 1);
      entries.push(entry);
    }
    return entry;
  }
}
