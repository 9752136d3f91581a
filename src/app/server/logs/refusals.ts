import { systemClock, type TokenEvent, type ValueFault } from '../../../index.ts';
import { ERROR_LOG_PAUSE_MS } from './errors.ts';
import { warn } from './log.ts';

/** What the operator can mend. Other faults are those of the caller. */
const WARNINGS: Partial<Record<ValueFault, string>> = {
  unknown_key:
    'a value was refused: it was made with a key that this service does not have; check --keys (TOKENWRIGHT_KEYS)',
  other_prefix:
    'a value was refused: it has another prefix than this service; check --prefix (TOKENWRIGHT_PREFIX)',
  bad_tag:
    'a value was refused: it was mistyped or forged, or a key of this service has the name of another one; check --keys (TOKENWRIGHT_KEYS)',
};

/**
 * Warns of values that are refused because the service may have the wrong keys or the wrong prefix: each
 * reason at most once a minute, because any caller can cause them.
 */
export function refusalWarnings(write = warn): (event: TokenEvent) => void {
  const writtenAt = new Map<string, number>();
  return (event) => {
    if (event.type !== 'refused' || event.reason !== 'malformed') return;
    const message = WARNINGS[event.detail as ValueFault];
    if (message === undefined) return;
    const now = systemClock.now().getTime();
    const last = writtenAt.get(message);
    if (last !== undefined && Math.abs(now - last) < ERROR_LOG_PAUSE_MS) return;
    writtenAt.set(message, now);
    write(`${message} (${event.detail})`);
  };
}
