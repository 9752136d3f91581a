import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { type RedisClient, RedisTokenStore } from '../../../src/stores/redis/index.ts';
import { refusalOf } from '../../support.ts';
import { newRecord } from '../support.ts';

/** A client of ioredis for one server, whose calls fail as they do while it tries to connect. */
class Connecting extends EventEmitter {
  readonly isCluster = false;
  readonly status = 'reconnecting';
  readonly options = {};
  readonly call = async () => {
    throw new Error('Reached the max retries per request limit (which is 1).');
  };
  readonly pipeline = () => ({ exec: this.call });
  duplicate(): this {
    return this;
  }
}

describe('a client that does not become ready', () => {
  it.each([
    [['error'], 'credentials'],
    [['error', 'connect'], 'credentials'],
    [['error', 'connect', 'ready'], 'unreachable'],
    [[], 'unreachable'],
  ])('after %j gives the reason %s', async (events, reason) => {
    const client = new Connecting();
    const store = new RedisTokenStore(client as unknown as RedisClient);
    for (const event of events) client.emit(event, new Error('NOAUTH Authentication required.'));

    const { details } = await refusalOf(store.find([newRecord('one').id]));

    expect(details).toEqual({ reason });
  });
});
