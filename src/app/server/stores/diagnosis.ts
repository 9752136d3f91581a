import { isTokenError } from '../../../errors.ts';
import { doctor, type TokenStore } from '../../../ports/token-store.ts';
import type { UsageStore } from '../../../ports/usage-store.ts';
import { withDeadline } from '../../../time/deadline.ts';
import { MAX_CONNECT_MS } from './engines.ts';
import type { TokenLeases } from './leases.ts';
import { COUNTS_LOST, fileReason, messageOf, type StoreTarget } from './open.ts';
import { probeUsage } from './usage.ts';

const TOKENS_LOST = 'stop the service and restore it from a backup';

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
    return reason === undefined ? file && fileReason(file, TOKENS_LOST) : messageOf(reason);
  } catch (error) {
    const reason = file && fileReason(file, TOKENS_LOST);
    if (reason !== undefined) return reason;
    if (!isTokenError(error)) return 'its doctor does not answer in time';
    return error.message.replace(`${name} cannot be used: `, '');
  }
}

/** Like {@link diagnose}, for the usage store beside that of the tokens. */
export async function diagnoseUsage(
  target: StoreTarget,
  store: TokenStore,
  { usage, file }: { readonly usage: UsageStore; readonly file: string | undefined },
): Promise<string | undefined> {
  return diagnoseBeside(target, store, { file, probe: () => probeUsage(usage) });
}

/** Like {@link diagnose}, for the leases beside the store of the tokens. */
export async function diagnoseLeases(
  target: StoreTarget,
  store: TokenStore,
  leases: TokenLeases,
): Promise<string | undefined> {
  return diagnoseBeside(target, store, { file: leases.file, probe: () => leases.probe() });
}

interface Beside {
  /** Absent in a database, which holds the tokens as well. */
  readonly file: string | undefined;
  /** @throws {TokenError} that says what is wrong */
  probe(): Promise<void>;
}

async function diagnoseBeside(
  target: StoreTarget,
  store: TokenStore,
  { file, probe }: Beside,
): Promise<string | undefined> {
  const shared = file === undefined ? await diagnose(target, store) : undefined;
  if (shared !== undefined) return shared;
  try {
    await withDeadline(probe(), MAX_CONNECT_MS);
    return file && fileReason(file, COUNTS_LOST);
  } catch (error) {
    const reason = file && fileReason(file, COUNTS_LOST);
    return reason ?? (isTokenError(error) ? error.message : 'it does not answer in time');
  }
}
