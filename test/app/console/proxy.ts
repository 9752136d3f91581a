import { once } from 'node:events';
import { request as ask, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A proxy in front of a service. */
export interface StartedProxy {
  /** Its address, without a path. */
  readonly url: string;
  readonly close: () => Promise<void>;
}

/** Forwards every request to a service, with the path that `rewrite` returns. */
export async function startProxy(
  target: string,
  rewrite: (path: string) => string,
): Promise<StartedProxy> {
  const server = createServer((incoming, outgoing) => {
    const { method, headers, url = '/' } = incoming;
    const onward = ask(target + rewrite(url), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    incoming.pipe(onward);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      await once(server.close(), 'close');
    },
  };
}
