import type { IncomingMessage } from 'node:http';
import { forwardedAddress, type GuardedRequest, remoteAddress } from '../../http/index.ts';
import { ownForms } from '../../http/request.ts';
import { isTokenError } from '../../index.ts';
import { usageError } from '../terminal/errors.ts';
import type { ServeSettings } from './settings.ts';

type ProxySettings = Pick<ServeSettings, 'trustProxy' | 'clientHeader'>;
type AddressReader = (request: GuardedRequest) => string | undefined;

/**
 * Returns a reader of a caller's address: the one in the header that the settings name, else the
 * one at the other end of the connection.
 *
 * @throws {CliError} if a proxy is not an address or a block
 */
export function callerAddress(settings: ProxySettings): (request: Request) => string {
  const { clientHeader } = settings;
  const forwarded = forwardedBy(settings);
  if (forwarded !== undefined) {
    const reader = (request: Request) => forwarded(request) ?? remoteAddress(request);
    // Keeps what the handler knows about the proxies.
    ownForms.set(reader, ownForms.get(forwarded) ?? {});
    return reader;
  }
  // Exactly this function: the handler recognizes it, and builds no `Request` to call it.
  if (clientHeader === undefined) return remoteAddress;
  return (request) => {
    // Of several values, the last one: only that was written by the proxy itself.
    const named = request.headers.get(clientHeader)?.split(',').at(-1);
    return named?.trim() || remoteAddress(request);
  };
}

/**
 * Returns a reader of the client's address in a request of a gateway; `undefined` if no setting
 * says where that is.
 *
 * @throws {CliError} if a proxy is not an address or a block
 */
export function clientOfGateway(settings: ProxySettings): AddressReader | undefined {
  const { clientHeader } = settings;
  const forwarded = forwardedBy(settings);
  if (forwarded !== undefined || clientHeader === undefined) return forwarded;
  const header = clientHeader.toLowerCase();
  // Node joins the values of a repeated header, and the result is not an address.
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
