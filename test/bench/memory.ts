// What a token costs in the memory store, and what a verify costs there: `npm run bench:memory`.
import { generateKey, MemoryTokenStore, TokenService } from '../../src/index.ts';

const { gc } = globalThis as { gc?: () => void };
if (gc === undefined) throw new Error('run with --expose-gc');

const TOKENS = 1_000_000;
const ACCOUNTS = 1000;
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

const used = () => {
  gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};

const store = new MemoryTokenStore();
const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
const values: string[] = [];
const before = used();
for (let i = 0; i < TOKENS; i++) {
  const scopes = METHODS.map((method) => `${method}:shop${i % 50}.example/orders`);
  const { value } = await tokens.issue({ account: `account ${i % ACCOUNTS}`, scopes });
  if (i % 10_000 === 0) values.push(value);
}
console.log(
  `${((used() - before) / TOKENS).toFixed(0)} bytes a token, at ${TOKENS} tokens with 5 scopes in ${ACCOUNTS} accounts`,
);

const need = { method: 'GET', domain: 'shop0.example', target: '/orders/7' };
const times: number[] = [];
for (let round = 0; round < 21; round++) {
  const start = performance.now();
  for (let i = 0; i < 20_000; i++) await tokens.verify(values[i % values.length] as string, need);
  times.push((performance.now() - start) / 20);
}
console.log(`${times.sort((a, b) => a - b)[10]?.toFixed(1)} us a verify`);
