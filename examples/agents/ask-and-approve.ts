// A day with an agent: a narrow token, a request for more, an approval, and the end of all of it.
import { generateKey, MemoryTokenStore, TokenRequests, TokenService } from 'tokenwright';

const store = new MemoryTokenStore();
const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme', usage: true });
const verificationUri = 'https://acme.example/approve';
const requests = new TokenRequests({ tokens, verificationUri, onEvent: console.error });

// Ada gives the agent what it needs every day, for eight hours.
const read = 'GET:shop.example/orders';
const refund = 'POST:shop.example/refunds';
const narrow = { account: 'ada', scopes: [read], ttlSeconds: 28_800, name: 'support agent' };
const agent = await tokens.issue({ ...narrow, createdBy: 'ada', purpose: 'answer tickets' });

// A ticket needs a refund: the agent is refused, and asks for as much as was missing.
const verdict = await tokens.verify(agent.value, { scope: refund });
console.log(verdict.reason, verdict.needed); // insufficient_scope POST:shop.example/refunds
const { deviceCode, userCode } = await requests.open({
  client: 'support agent',
  scopes: [verdict.needed ?? refund],
  purpose: 'refund order 4711',
  elevate: agent.value,
});

// Ada types the code on her phone, and sees what is asked for.
const request = await requests.get('ada', userCode);
console.log(request?.client, request?.beyond); // support agent [ 'POST:shop.example/refunds' ]
await requests.approve('ada', userCode, { ttlSeconds: 300, by: 'ada' });

// The agent polls, and gets a second token: the refund alone, for five minutes.
const { token } = await requests.poll(deviceCode, { client: 'support agent' });
const elevation = token?.value ?? '';
console.log((await tokens.verify(elevation, { scope: refund })).ok); // true

// Whatever becomes of the first token ends the second one, even a new name.
await tokens.patch('ada', agent.id, { name: 'support agent, day 2' });
console.log((await tokens.verify(elevation, { scope: refund })).reason); // ancestor_changed

// In the evening Ada ends everything that she has started.
const { count } = await tokens.revokeAll('ada', { createdBy: 'ada', dryRun: true });
console.log(count, await tokens.revokeAll('ada', { createdBy: 'ada' })); // 1 1
await tokens.close();
