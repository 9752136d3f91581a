// Two nodes on one Redis: a token issued on the one is good on the other, and so is its end.
import { Redis } from 'ioredis';
import { generateKey, TokenService } from 'tokenwright';
import { RedisTokenStore } from 'tokenwright/redis';

const url = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379';
const keys = [generateKey()]; // in production: kept, and the same for all nodes

/** What each process does when it starts. */
function startNode() {
  const client = new Redis(url, { maxRetriesPerRequest: 1, socketTimeout: 1000 });
  const store = new RedisTokenStore(client);
  const tokens = new TokenService({ store, keys, prefix: 'acme', cache: { maxStaleMs: 500 } });
  const stop = async () => {
    await tokens.close();
    client.disconnect();
  };
  return { tokens, stop };
}

const [one, two] = [startNode(), startNode()];
const scope = 'GET:shop.example/orders';
const { id, value } = await one.tokens.issue({ account: 'ada', scopes: [scope] });
console.log((await two.tokens.verify(value, { scope })).ok); // true

// Redis notifies the other node. Even if that message is lost, no cached record is older than 500 ms.
await one.tokens.revoke('ada', id);
console.log((await one.tokens.verify(value, { scope })).ok); // false

// If even 500 ms are too long, a call can skip the cache.
console.log((await two.tokens.verify(value, { scope }, { fresh: true })).ok); // false

await Promise.all([one.stop(), two.stop()]);
