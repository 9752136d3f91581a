// API keys of better-auth over its memory adapter, with its rate limits off: a peer of two benchmarks.
import { randomBytes } from 'node:crypto';
import { apiKey } from '@better-auth/api-key';
import { betterAuth } from 'better-auth';
import { memoryAdapter } from 'better-auth/adapters/memory';

/** Makes `count` keys with these permissions, of which `needed` is asked for. */
export async function betterAuthKeys(names: readonly string[], needed: string, count: number) {
  const auth = betterAuth({
    baseURL: 'http://localhost',
    secret: randomBytes(48).toString('hex'),
    database: memoryAdapter({ user: [], session: [], account: [], verification: [], apikey: [] }),
    emailAndPassword: { enabled: true },
    rateLimit: { enabled: false },
    plugins: [apiKey({ rateLimit: { enabled: false } })],
    telemetry: { enabled: false },
  });
  const body = { name: 'ada', email: 'ada@shop.example', password: 'correct horse' };
  const { user } = await auth.api.signUpEmail({ body });
  const create = async (): Promise<string> => {
    const permissions = { shop: [...names] };
    return (await auth.api.createApiKey({ body: { userId: user.id, permissions } })).key;
  };
  const verify = async (key: string): Promise<boolean> => {
    const permissions = { shop: [needed] };
    return (await auth.api.verifyApiKey({ body: { key, permissions } })).valid;
  };
  const values: string[] = [];
  for (let i = 0; i < count; i++) values.push(await create());
  return { create, verify, values };
}
