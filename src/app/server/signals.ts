import { closeSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';
import { count } from '../../text/wording.ts';
import { describeError } from '../terminal/error-message.ts';
import type { Reloaded } from './files/service-files.ts';
import { theLog, warn } from './logs/log.ts';

/** A process that a signal ends has this exit code, plus the number of the signal. */
const SIGNAL_EXIT = 128;

/** What the service does on signals, once it is ready. */
export interface Signals {
  /** Sets the function that ends the process in order, on SIGTERM and SIGINT. */
  onEnd(end: () => Promise<void>): void;
  /** Sets the function that reads the files again, on SIGHUP. If it rejects, nothing changes. */
  onHangup(reload: () => Promise<Reloaded>): void;
}

/**
 * Listens for signals. SIGTERM and SIGINT end the process: in order once `onEnd` has said how, and
 * immediately before that and on a second signal. SIGHUP reads the files again; while the service
 * starts or stops, it does nothing. It ends the process only if the terminal of the process was
 * closed.
 *
 * Without a listener, the first process of a container would ignore SIGTERM, and SIGHUP would end
 * any process.
 */
export function listenForSignals(): Signals {
  let end: (() => Promise<void>) | undefined;
  let reload: (() => Promise<Reloaded>) | undefined;
  let reloads = Promise.resolve();
  const handle = (_: NodeJS.Signals, number: number) => {
    if (end === undefined) process.exit(SIGNAL_EXIT + number);
    const inOrder = end;
    end = undefined;
    reload = undefined;
    void inOrder();
  };
  process.on('SIGTERM', handle).on('SIGINT', handle);
  const hasTerminal = isatty(0);
  process.on('SIGHUP', (signal: NodeJS.Signals, number: number) => {
    if (hasTerminal && isTerminalClosed()) return handle(signal, number);
    reloads = reloads.then(() => reload && runReload(reload));
  });
  return {
    onEnd(inOrder) {
      end = inOrder;
    },
    onHangup(readAgain) {
      reload = readAgain;
    },
  };
}

function isTerminalClosed(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return false;
  } catch {
    return true;
  }
}

async function runReload(reload: () => Promise<Reloaded>): Promise<void> {
  try {
    const { keys, catalog, presets, accounts } = await reload();
    const parts = [
      count(keys.length, 'key'),
      count(catalog.size, 'scope'),
      ...(presets.length === 0 ? [] : [count(presets.length, 'preset')]),
    ];
    theLog().info(`reloaded ${parts.join(', ')} and ${count(accounts.length, 'account')}`);
  } catch (error) {
    warn(
      `nothing was reloaded, and keys, catalog and accounts stay as they were: ${describeError(error)}`,
    );
  }
}
