// A process that makes the calls of its parent to a service with derived tokens, one after the other.
// Argument: the place of its store as JSON.
import { isTokenError, type TokenError } from '../../src/errors.ts';
import { type Process, processOn } from '../service/lineage-schedules.ts';
import { openStore } from './engines.ts';

/** A call of the service; `begin` creates a new service with a `maxStaleMs`. */
export interface NodeCall {
  readonly verb: keyof Process | 'begin';
  readonly args: readonly unknown[];
  /** The current time of the service. */
  readonly now: Date;
}

export interface NodeAnswer {
  readonly result?: unknown;
  readonly refusal?: Pick<TokenError, 'code' | 'message' | 'details'>;
}

const { store } = openStore(JSON.parse(process.argv[2] ?? ''));
let now = new Date(0);
let tokens: Process | undefined;

process.on('message', async ({ verb, args, now: instant }: NodeCall) => {
  now = instant;
  answer(await resultOf(verb, args));
});
process.on('disconnect', () => process.exit());
answer({});

function answer(message: NodeAnswer): void {
  process.send?.(message);
}

async function resultOf(verb: NodeCall['verb'], args: readonly unknown[]): Promise<NodeAnswer> {
  if (verb === 'begin') {
    const clock = { now: () => now };
    tokens = processOn({ store, leases: store.leases }, { maxStaleMs: Number(args[0]), clock });
    return {};
  }
  try {
    const method = tokens?.[verb] as (...given: unknown[]) => Promise<unknown>;
    return { result: plain(await method.apply(tokens, [...args])) };
  } catch (error) {
    if (!isTokenError(error)) throw error;
    const { code, message, details } = error;
    return { refusal: { code, message, ...(details && { details }) } };
  }
}

/** A verdict without the fields that are computed on access. */
function plain(result: unknown): unknown {
  if (typeof result !== 'object' || result === null || !('ok' in result)) return result;
  const { ok, reason, token } = result as Awaited<ReturnType<Process['verify']>>;
  return { ok, reason, token };
}
