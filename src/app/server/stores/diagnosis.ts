import { doctor, isTokenError, type TokenStore } from '../../../index.ts';
import { withDeadline } from '../../../time/deadline.ts';
import { probeLeases, probeUsage } from './counts.ts';
import { MAX_CONNECT_MS } from './engines.ts';
import { COUNTS_LOST, fileReason, messageOf, type OpenStore, type StoreTarget } from './open.ts';

const TOKENS_LOST = 'stop the service and restore it from a backup';

/**
 * Says why calls of a store fail, as `tokenwright store doctor` would; `undefined` if nothing is found.
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

/** Like {@link diagnose}, for the counts of uses, or of those of limited tokens. */
export async function diagnosePart(
  part: 'usage' | 'leases',
  target: StoreTarget,
  opened: OpenStore,
): Promise<string | undefined> {
  const { file } = opened[part];
  // A database holds the tokens as well.
  const shared = file === undefined ? await diagnose(target, opened.store) : undefined;
  if (shared !== undefined) return shared;
  const probe = part === 'usage' ? probeUsage : probeLeases;
  try {
    await withDeadline(probe(opened), MAX_CONNECT_MS);
    return file && fileReason(file, COUNTS_LOST);
  } catch (error) {
    return isTokenError(error) ? error.message : 'it does not answer in time';
  }
}
