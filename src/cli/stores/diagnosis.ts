import { withDeadline } from '../../deadline.ts';
import { isTokenError } from '../../errors.ts';
import { doctor, type TokenStore } from '../../store.ts';
import type { UsageStore } from '../../usage-store.ts';
import { MAX_CONNECT_MS } from './engines.ts';
import { messageOf, type StoreTarget } from './open.ts';
import { readNothing } from './usage.ts';

/**
 * Says why calls of a store fail, as `tokenwright doctor` would; `undefined` if nothing is found. Never
 * rejects, and never names user or password of the URL.
 */
export async function diagnose(
  { file, name, open }: StoreTarget,
  store: TokenStore,
): Promise<string | undefined> {
  try {
    // A connection of its own says more than the broken one, but opening a file could make one.
    if (file === undefined) await (await open()).close();
    const findings = await withDeadline(doctor(store), MAX_CONNECT_MS);
    const reason = findings.find(
      ({ code }) => code.startsWith('schema_') || code === 'file_replaced',
    );
    return reason && messageOf(reason);
  } catch (error) {
    if (!isTokenError(error)) return 'its doctor does not answer in time';
    return error.message.replace(`${name} cannot be used: `, '');
  }
}

/** As {@link diagnose}, why calls of the usage store beside it fail. */
export async function diagnoseUsage(
  target: StoreTarget,
  store: TokenStore,
  usage: UsageStore,
): Promise<string | undefined> {
  // A file of its own says nothing about the file of the tokens.
  const reason = target.file === undefined ? await diagnose(target, store) : undefined;
  if (reason !== undefined) return reason;
  try {
    await withDeadline(readNothing(usage), MAX_CONNECT_MS);
    return undefined;
  } catch (error) {
    return isTokenError(error) ? error.message : 'it does not answer in time';
  }
}
