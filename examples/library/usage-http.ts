// What a token is used for, over HTTP: the guard of an API counts, and the token service shows it.
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard, fixedAccounts, tokenHandler } from 'tokenwright/http';

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  usage: true,
});
const authenticate = fixedAccounts([{ username: 'ada', password: 'correct horse' }]);
const service = tokenHandler({ tokens, authenticate });
const guard = bearerGuard({ tokens, domain: 'shop.example' });

const account = `Basic ${btoa('ada:correct horse')}`;
interface Counts {
  readonly uses: number;
  readonly refusals: number;
  readonly lastUsed: number | null;
  readonly scopes: readonly { readonly uses: number }[];
}
const ask = async <Data>(path: string): Promise<Data> => {
  const headers = { authorization: account };
  const response = await service(new Request(`http://localhost${path}`, { headers }));
  return ((await response.json()) as { data: Data }).data;
};

const scopes = ['GET:shop.example/orders', 'POST:shop.example/orders'];
const { id, value } = await tokens.issue({ account: 'ada', scopes });
const [listed] = await ask<Counts[]>('/token');
console.log(listed?.lastUsed); // null

const call = async (path: string) => {
  const headers = { authorization: `Bearer ${value}` };
  const outcome = await guard(new Request(`https://shop.example${path}`, { headers }));
  return outcome.ok ? 200 : outcome.response.status;
};
console.log(await call('/orders'), await call('/orders/7'), await call('/invoices')); // 200 200 403

const counts = await ask<Counts>(`/token/${id}/usage`);
console.log(counts.uses, counts.refusals, Number.isInteger(counts.lastUsed)); // 2 1 true
console.log(JSON.stringify(counts.scopes.map(({ uses }) => uses))); // [2,0]
await tokens.close();
