// A process that issues and verifies, and then looks into its own heap. Prints how many secrets are
// still there, and whether a text that is kept on purpose was found.
import { randomBytes } from 'node:crypto';
import { getHeapSnapshot } from 'node:v8';
import { fixedAccounts, hashPassword, tokenHandler } from '../../src/http/index.ts';
import { generateKey, MemoryTokenStore, TokenService } from '../../src/index.ts';

const COUNT = 20;
const SECRET_LENGTH = 27;
const TAG_LENGTH = 6;
const need = { scope: 'GET:shop.example/orders' };
const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  cache: { maxStaleMs: 60_000 },
});

/** Bytes are not in the snapshot. */
const values: Buffer[] = [];
for (let i = 0; i < COUNT; i++) {
  const { value } = await tokens.issue({ account: 'ada', scopes: [need.scope] });
  values.push(Buffer.from(value, 'latin1'));
}
for (let round = 0; round < 2; round++) {
  for (const value of values) {
    const verdict = await tokens.verify(value.toString('latin1'), need);
    if (!verdict.ok) throw new Error('refused');
  }
}
/** So long that a part of the text that it came in would hold on to that. */
const username = 'ada.lovelace@shop.example';
const secret = Buffer.from(randomBytes(18).toString('base64url'));
const accounts = [{ username, passwordHash: hashPassword(secret.toString()) }];
const handler = tokenHandler({ tokens, authenticate: fixedAccounts(accounts) });
for (let i = 0; i < 3; i++) {
  const credentials = Buffer.concat([Buffer.from(`${username}:`), secret]).toString('base64');
  const headers = { authorization: `Basic ${credentials}` };
  const { status } = await handler(new Request('http://localhost/token?limit=1', { headers }));
  if (status !== 200) throw new Error('refused');
}

const keptOnPurpose = Buffer.from(values[0] as Buffer).toString('latin1');

// What native code holds goes with the second one.
for (let i = 0; i < 2; i++) {
  await new Promise((resolve) => setImmediate(resolve));
  global.gc?.();
}
const chunks: Buffer[] = [];
for await (const chunk of getHeapSnapshot()) chunks.push(Buffer.from(chunk));
const snapshot = Buffer.concat(chunks);
// Of the last one, parts may still lie on the stack.
const found = values.slice(1, -1).filter((value) => {
  return snapshot.includes(value.subarray(-SECRET_LENGTH - TAG_LENGTH, -TAG_LENGTH));
});
const figures = {
  looked: values.length - 2,
  found: found.length,
  hasPassword: snapshot.includes(secret),
  control: snapshot.includes(keptOnPurpose),
};
process.stdout.write(JSON.stringify(figures));
