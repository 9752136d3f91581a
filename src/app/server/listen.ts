import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
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
    throw refusalOf(error, options);
  }
}

/**
 * Finds the address of a host on which a server could listen. Whether the port is free is not checked: the
 * service itself may be running.
 *
 * @throws {CliError} that names the flag to change
 */
export async function addressOf(options: ListenOptions): Promise<AddressInfo> {
  const { host, port } = options;
  try {
    const { address, family } = await lookup(host);
    // A socket of UDP takes an address as a server of TCP does, and nobody can connect to it.
    const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
    try {
      socket.bind(0, address);
      await once(socket, 'listening');
      return { ...socket.address(), port };
    } finally {
      socket.close();
    }
  } catch (error) {
    throw refusalOf(error, options);
  }
}

/** The URL of a server that listens. */
export function urlOf({ family, address, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

function refusalOf(error: unknown, options: ListenOptions): unknown {
  const reason = faultOf((error as NodeJS.ErrnoException).code, options);
  return reason === undefined
    ? error
    : inputError(`port ${options.port} of ${options.host} ${reason}`);
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
