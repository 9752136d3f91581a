// Unit tests of your own rules: scopes without a server, and time that moves only when the test says so.
import assert from 'node:assert/strict';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { ScopeSet } from 'tokenwright/scope';
import { manualClock } from 'tokenwright/testing';

/** What a project might keep: the scopes of a support agent. */
const SUPPORT = ['GET:shop.example/orders', 'POST:shop.example/orders/notes'];

/** Stands for `test` of your runner. */
async function test(_name: string, run: () => void | Promise<void>): Promise<void> {
  await run();
  passed += 1;
}
let passed = 0;

const cases: [method: string, target: string, isAllowed: boolean][] = [
  ['GET', '/orders/7', true],
  ['POST', '/orders/notes', true],
  ['POST', '/orders', false],
  ['GET', '/ordersx', false],
  ['GET', '/orders/../bills', false],
];
await test('support reads orders and writes notes', () => {
  const support = ScopeSet.from(SUPPORT);
  for (const [method, target, isAllowed] of cases) {
    const { allowed } = support.allows({ method, domain: 'shop.example', target });
    assert.equal(allowed, isAllowed, `${method} ${target}`);
  }
});

await test('a change of the role gives nothing by accident', () => {
  const { added } = ScopeSet.from(SUPPORT).diff(['GET:shop.example/orders/open']);
  assert.deepEqual(added.map(String), []);
});

await test('a token ends with its shift', async () => {
  const clock = manualClock();
  const tokens = new TokenService({
    store: new MemoryTokenStore(),
    keys: [generateKey()],
    prefix: 'acme',
    clock,
  });
  const scope = 'GET:shop.example/orders';
  const shift = { account: 'ada', scopes: SUPPORT, ttlSeconds: 8 * 3600 };
  const { value } = await tokens.issue(shift);

  clock.advance(8 * 3600 - 1);
  assert.equal((await tokens.verify(value, { scope })).ok, true);
  clock.advance(1);
  assert.equal((await tokens.verify(value, { scope })).ok, false);
});
console.log(`${passed} tests passed`); // 3 tests passed
