import { closeSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';
import { describeError } from './error-message.ts';
import { count } from './layout.ts';
import { theLog } from './log.ts';
import type { ServiceFiles } from './service-files.ts';
import { warn } from './start-checks.ts';

/** What a shell adds to the number of a signal that ended a process. */
const SIGNAL_EXIT = 128;

/** What the service does on signals, once it is ready. */
export interface Signals {
  /** Sets what ends the process in order, on SIGTERM and SIGINT. */
  onEnd(end: () => Promise<void>): void;
  /** Sets what reads the files again, on SIGHUP. If it rejects, the service goes on as it was. */
  onHangup(reload: () => Promise<ServiceFiles>): void;
}

/**
 * Listens for signals. SIGTERM and SIGINT end the process: in order once it knows how, and immediately
 * before that and on a second signal. SIGHUP ends it only if its terminal was closed: while it starts or
 * stops, nothing happens.
 *
 * Without a listener, the first process of a container would ignore SIGTERM, and SIGHUP would end others.
 */
export function listenForSignals(): Signals {
  let end: (() => Promise<void>) | undefined;
  let reload: (() => Promise<ServiceFiles>) | undefined;
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
    reloads = reloads.then(() => reload && report(reload));
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

async function report(reload: () => Promise<ServiceFiles>): Promise<void> {
  try {
    const { keys, catalog, accounts } = await reload();
    const parts = [count(keys.length, 'key'), count(catalog.size, 'scope')];
    theLog().info(`reloaded ${parts.join(', ')} and ${count(accounts.length, 'account')}`);
  } catch (error) {
    warn(
      `nothing was reloaded, and keys, catalog and accounts stay as they were: ${describeError(error)}`,
    );
  }
}
