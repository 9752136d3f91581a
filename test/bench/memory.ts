// What a token costs in the memory store: `npm run bench:memory`.
import { generateKey, MemoryTokenStore, TokenService } from '../../src/index.ts';
import { METHODS } from './filling.ts';
import { needs } from './start.ts';

const { gc } = globalThis as { gc?: () => void };
if (gc === undefined) throw new Error('run with --expose-gc');

const TOKENS = 1_000_000;
const ACCOUNTS = 1000;

needs({ minutes: 1, gigabytes: 2 });

const used = () => {
  gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};

const store = new MemoryTokenStore();
const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
const before = used();
for (let i = 0; i < TOKENS; i++) {
  const scopes = METHODS.map((method) => `${method}:shop${i % 50}.example/orders`);
  await tokens.issue({ account: `account ${i % ACCOUNTS}`, scopes });
}
console.log(
  `${((used() - before) / TOKENS).toFixed(0)} bytes a token, at ${TOKENS} tokens with 5 scopes in ${ACCOUNTS} accounts`,
);
await tokens.close();
