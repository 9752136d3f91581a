import type { IncomingMessage } from 'node:http';
import { isTokenError } from '../errors.ts';
import { forwardedAddress } from '../http/forwarded-address.ts';
import type { GuardedRequest } from '../http/guard.ts';
import { remoteAddress } from '../http/login-limiter.ts';
import { usageError } from './errors.ts';
import type { ServeSettings } from './settings.ts';

type ProxySettings = Pick<ServeSettings, 'trustProxy' | 'clientHeader'>;
type AddressReader = (request: GuardedRequest) => string | undefined;

/**
 * Finds the address of a caller of the service: as the settings say, else the one at the other end of the
 * connection.
 *
 * @throws {CliError} as {@link clientOfGateway}
 */
export function callerAddress(settings: ProxySettings): (request: Request) => string {
  const { clientHeader } = settings;
  const forwarded = forwardedBy(settings);
  if (forwarded !== undefined) return (request) => forwarded(request) ?? remoteAddress(request);
  // The function itself: the handler knows it, and builds no request for it.
  if (clientHeader === undefined) return remoteAddress;
  return (request) => {
    // The last of several: only this one was written by the proxy itself.
    const named = request.headers.get(clientHeader)?.split(',').at(-1);
    return named?.trim() || remoteAddress(request);
  };
}

/**
 * Finds the address for which a gateway asks; `undefined` if no setting says how.
 *
 * @throws {CliError} if a proxy is not an address or a block
 */
export function clientOfGateway(settings: ProxySettings): AddressReader | undefined {
  const { clientHeader } = settings;
  const forwarded = forwardedBy(settings);
  if (forwarded !== undefined || clientHeader === undefined) return forwarded;
  const header = clientHeader.toLowerCase();
  // A header that came twice is not an address.
  return ({ headers }) => (headers as IncomingMessage['headers'])[header] as string | undefined;
}

function forwardedBy({ trustProxy, clientHeader }: ProxySettings): AddressReader | undefined {
  if (trustProxy.length === 0) return undefined;
  try {
    return forwardedAddress({ proxies: trustProxy, header: clientHeader });
  } catch (error) {
    if (!isTokenError(error)) throw error;
    const setting = '--trust-proxy (TOKENWRIGHT_TRUST_PROXY)';
    throw usageError(error.message.replace(/^proxies(?:\[\d+\])?/, setting));
  }
}
