import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inputError } from '../terminal/errors.ts';

/** Where a server listens. */
export interface ListenPlace {
  readonly host: string;
  readonly port: number;
}

/** A place, and the flags that name it, for messages. */
export interface ListenOptions extends ListenPlace {
  readonly hostFlag: string;
  readonly portFlag: string;
}

/**
 * Makes a server listen, and waits until it does.
 *
 * @throws {CliError} that names the flag to change
 */
export async function listenOn(server: Server, options: ListenOptions): Promise<void> {
  const { host, port } = options;
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const reason = faultOf((error as NodeJS.ErrnoException).code, options);
    if (reason === undefined) throw error;
    throw inputError(`port ${port} of ${host} ${reason}`);
  }
}

/** The URL of a server that listens. */
export function urlOf({ family, address, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

function faultOf(
  code: string | undefined,
  { hostFlag, portFlag }: ListenOptions,
): string | undefined {
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EADDRNOTAVAIL':
    case 'EINVAL':
      return `cannot be used: ${hostFlag} must be a name or an address of this machine, without a port`;
    case 'EADDRINUSE':
      return `is taken; give another ${portFlag}`;
    case 'EACCES':
      return `cannot be opened by this user; choose another ${portFlag}, such as one above 1023`;
    default:
      return undefined;
  }
}
