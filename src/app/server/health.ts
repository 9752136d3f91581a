import { type HttpResponse, jsonResponse } from '../../http/responses.ts';
import { isTokenError, type TokenService } from '../../index.ts';
import { madeOnceATurn, type Page, publicJsonPage, publicPage } from './pages.ts';

/** Why the service should get no calls now. */
type Trouble = 'stopping' | 'store_unavailable' | 'store_corrupt';

/** An id and an account that no token has. */
const ABSENT_TOKEN = { account: 'readyz', id: '0'.repeat(22) } as const;

/**
 * Tells load balancers whether the process is up (`/healthz`), and whether it should get calls
 * (`/readyz`): it should if its store answers, and it is not about to end.
 */
export class Health {
  /** Concurrent probes share a check, so they cost the store one call at a time. */
  readonly #ask: () => Promise<Trouble | undefined>;
  #isStopping = false;

  /** @param tokens returns the service that answers now */
  constructor(tokens: () => Pick<TokenService, 'get'>) {
    this.#ask = madeOnceATurn(() => troubleOf(tokens()));
  }

  readonly pages: readonly Page[] = [
    publicJsonPage('/healthz', { status: 'ok' }),
    publicPage('/readyz', async () => answerTo(await this.#trouble())),
  ];

  /** From now on the service is not ready. */
  stop(): void {
    this.#isStopping = true;
  }

  async #trouble(): Promise<Trouble | undefined> {
    if (this.#isStopping) return 'stopping';
    const trouble = await this.#ask();
    return this.#isStopping ? 'stopping' : trouble;
  }
}

function answerTo(trouble: Trouble | undefined): HttpResponse {
  return trouble === undefined
    ? jsonResponse(200, { status: 'ready' })
    : { ...jsonResponse(503, { status: trouble }), failure: { code: trouble } };
}

/** Asks through the service, which sets a deadline and reports a failure. */
async function troubleOf(tokens: Pick<TokenService, 'get'>): Promise<Trouble | undefined> {
  try {
    await tokens.get(ABSENT_TOKEN.account, ABSENT_TOKEN.id);
    return undefined;
  } catch (error) {
    const isCorrupt = isTokenError(error) && error.code === 'store_corrupt';
    return isCorrupt ? 'store_corrupt' : 'store_unavailable';
  }
}
