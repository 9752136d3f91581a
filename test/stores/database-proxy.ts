import { startProxy, type TcpProxy } from '../faults/proxy.ts';

export interface DatabaseProxy extends Pick<TcpProxy, 'set' | 'close'> {
  readonly url: string;
  /** Kills the existing connections without closing them; new ones work. */
  silence(): Promise<void>;
}

/** Starts a proxy in front of the server of a URL. */
export async function startDatabaseProxy(target: string): Promise<DatabaseProxy> {
  const url = new URL(target);
  const { port, set, close } = await startProxy(Number(url.port));
  url.port = String(port);
  return {
    url: url.href,
    set,
    close,
    async silence() {
      await set('halfOpen');
      await set('pass');
    },
  };
}
