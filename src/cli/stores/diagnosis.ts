import { withDeadline } from '../../deadline.ts';
import { isTokenError } from '../../errors.ts';
import { doctor, type TokenStore } from '../../store.ts';
import type { UsageStore } from '../../usage-store.ts';
import { MAX_CONNECT_MS } from './engines.ts';
import { messageOf, type StoreTarget } from './open.ts';
import { probeUsage } from './usage.ts';

/**
 * Says why calls of a store fail, as `tokenwright doctor` would; `undefined` if nothing is found.
 * Never rejects, and never names user or password of the URL.
 */
export async function diagnose(
  { file, name, open }: StoreTarget,
  store: TokenStore,
): Promise<string | undefined> {
  try {
    // A new connection says more than the broken one. A file is not opened: that could make it.
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

/** Like {@link diagnose}, for a store beside the tokens. Says nothing if that is another file. */
export async function diagnoseBeside(
  target: StoreTarget,
  store: TokenStore,
): Promise<string | undefined> {
  return target.file === undefined ? diagnose(target, store) : undefined;
}

/** Like {@link diagnose}, for the usage store beside that of the tokens. */
export async function diagnoseUsage(
  target: StoreTarget,
  store: TokenStore,
  usage: UsageStore,
): Promise<string | undefined> {
  const reason = await diagnoseBeside(target, store);
  if (reason !== undefined) return reason;
  try {
    await withDeadline(probeUsage(usage), MAX_CONNECT_MS);
    return undefined;
  } catch (error) {
    return isTokenError(error) ? error.message : 'it does not answer in time';
  }
}
