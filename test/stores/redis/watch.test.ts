import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { isTokenError } from '../../../src/errors.ts';
import type { Driver, RedisCommand, Subscriber } from '../../../src/stores/redis/driver.ts';
import { ChangeListener } from '../../../src/stores/redis/watch.ts';
import { refusalOf } from '../../support.ts';

/** A server whose messages arrive, or get lost as behind a proxy that passes none on. */
class EchoingServer {
  readonly state = 'ready';
  hears = true;
  subscriptions = 0;
  readonly #subscribers = new Set<Subscriber>();

  get open(): number {
    return this.#subscribers.size;
  }

  primaries() {
    return [Promise.resolve(this)];
  }

  async send([, channel = '', message = '']: RedisCommand): Promise<unknown> {
    if (!this.hears) return 1;
    for (const { onMessage } of this.#subscribers) onMessage(message, channel);
    return 1;
  }

  async subscribe(subscriber: Subscriber): Promise<() => void> {
    this.subscriptions += 1;
    this.#subscribers.add(subscriber);
    return () => void this.#subscribers.delete(subscriber);
  }

  endAll(): void {
    for (const { onEnd } of this.#subscribers) onEnd();
  }
}

describe('a listener on Redis', () => {
  beforeEach(() => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
  });

  function setUp() {
    const server = new EchoingServer();
    const calls: unknown[] = [];
    const listener = new ChangeListener(server as unknown as Driver, 'acme', {
      onChange: (ids) => calls.push(ids),
      onTrouble: (failure) =>
        calls.push(isTokenError(failure) ? failure.details?.['reason'] : 'heard again'),
    });
    onTestFinished(() => listener.stop());
    return { server, calls, listener };
  }

  it('says nothing while it hears itself', async () => {
    const { server, calls, listener } = setUp();
    await listener.start();
    await vi.advanceTimersByTimeAsync(600_000);

    expect(server.subscriptions).toBe(1);
    expect(calls).toEqual([]);
  });

  it('reports pooler once a minute while messages get lost, and evicts all only once', async () => {
    const { server, calls, listener } = setUp();
    await listener.start();
    server.hears = false;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(calls).toEqual(['all', 'pooler']);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(calls).toEqual(['all', 'pooler', 'pooler']);
    expect(server.open).toBe(0);

    server.hears = true;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(calls.slice(3)).toEqual(['heard again', 'all']);
    expect(server.open).toBe(1);
  });

  it('rejects with pooler, or with unreachable if the connection ended meanwhile', async () => {
    const deaf = setUp();
    deaf.server.hears = false;
    const refusal = refusalOf(deaf.listener.start());
    await vi.advanceTimersByTimeAsync(3_000);
    expect((await refusal).details).toEqual({ reason: 'pooler' });

    const lost = setUp();
    lost.server.hears = false;
    const ended = refusalOf(lost.listener.start());
    await vi.advanceTimersByTimeAsync(500);
    lost.server.endAll();
    expect((await ended).details).toEqual({ reason: 'unreachable' });
    expect([deaf.server.open, lost.server.open]).toEqual([0, 0]);
  });

  it('listens again while messages to itself cannot be sent', async () => {
    const { server, calls, listener } = setUp();
    await listener.start();
    vi.spyOn(server, 'send').mockRejectedValue(new Error('no connection'));
    server.endAll();
    await vi.advanceTimersByTimeAsync(100);

    expect(calls).toEqual(['all', 'all']);
    expect(server.open).toBe(1);
  });

  it('that is stopped while it starts resolves, and leaves nothing open', async () => {
    const { server, calls, listener } = setUp();
    server.hears = false;
    const starting = listener.start();
    await vi.advanceTimersByTimeAsync(500);
    listener.stop();

    await starting;
    expect(server.open).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
    expect(calls).toEqual([]);
  });
});
