import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { gracefulStop } from '../../../src/http/index.ts';
import { nextTurn } from '../../../src/time/deadline.ts';

/** A server whose first call waits until the test answers it. */
async function setUp(graceMs?: number) {
  const arrival = Promise.withResolvers<() => void>();
  const server = createServer((_, response) => {
    arrival.resolve(() => response.end('answered'));
  });
  const stop = gracefulStop(server, { graceMs });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => server.closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const sent = request({ port, host: '127.0.0.1', agent: false });
  const response = once(sent.end(), 'response');
  response.catch(() => {});
  return { server, stop, port, response, answer: await arrival.promise };
}

/** A server that answers, and a stop whose clock only the test moves. */
async function setUpStanding() {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const server = createServer((_, response) => response.end('answered'));
  const stop = gracefulStop(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    server,
    stop,
    async call() {
      const sent = request({ port, host: '127.0.0.1', agent: false });
      const [response] = await once(sent.end(), 'response');
      return text(response);
    },
    /** Waits until the listener has closed, 30 ms without a change after it stops accepting. */
    async closed() {
      for (; server.listening; await nextTurn()) vi.advanceTimersByTime(30);
    },
  };
}

describe('gracefulStop', () => {
  it('accepts connections until none has come for 150 ms', async () => {
    const { stop, call, closed } = await setUpStanding();

    const stopped = stop();
    for (let i = 0; i < 6; i++) {
      vi.advanceTimersByTime(149);
      expect(await call()).toBe('answered');
    }
    vi.advanceTimersByTime(150);
    await closed();

    await expect(call()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    expect(await stopped).toBe(0);
  });

  it('answers calls in progress, closes their connections and accepts no new ones', async () => {
    const { server, stop, port, response, answer } = await setUp();

    const stopped = stop();
    // The listener closes in a second step.
    while (server.listening) await new Promise(setImmediate);
    const refused = await once(connect(port, '127.0.0.1'), 'connect').catch(({ code }) => code);
    answer();
    const [answered] = await response;

    expect(refused).toBe('ECONNREFUSED');
    expect(answered.headers.connection).toBe('close');
    expect(await text(answered)).toBe('answered');
    expect(await stopped).toBe(0);
    expect(stop()).toBe(stopped);
  });

  it('cuts off calls that exceed the grace period, and counts them', async () => {
    const { stop, response } = await setUp(1);

    expect(await stop()).toBe(1);
    await expect(response).rejects.toMatchObject({ code: 'ECONNRESET' });
  });

  it('leaves the listeners of the host unchanged', async () => {
    const { server, stop, answer } = await setUp();
    const before = server.listeners('request');

    answer();
    await stop();

    expect(server.listeners('request')).toEqual(before);
  });

  it.each([0, 1.5, 600_001, '1' as never])('refuses a grace period of %j', (graceMs) => {
    expect(() => gracefulStop(createServer(), { graceMs })).toThrow(
      'graceMs must be a whole number from 1 to 600000',
    );
  });

  it('refuses anything that is not a server of node:http', () => {
    for (const server of [createSecureServer(), {}, undefined]) {
      expect(() => gracefulStop(server as never)).toThrow('server must be a Server of node:http');
    }
  });
});
