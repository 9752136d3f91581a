import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { TokenError } from '../src/errors.ts';
import { Events } from '../src/events.ts';
import { HttpError } from '../src/http/errors.ts';
import { fixedAccounts } from '../src/http/index.ts';
import { generateKey, type KeyOptions, MemoryTokenStore, TokenService } from '../src/index.ts';
import type { TokenRecord } from '../src/token/record.ts';
import { type Channel, keepInspected, mute, takeFindings } from './canary.ts';
import { NO_ID, partsOf, SCOPE, setUp } from './support.ts';

const account = 'ada';
const key = generateKey('k7');
const PASSWORD = 'a password of the tests';

/** The findings while `work` runs. Takes them, because findings that remain fail the test. */
async function foundBy(work: () => unknown): Promise<string[]> {
  takeFindings();
  // A store may refuse an invalid record, but the canary has seen the call.
  await mute(work).catch(() => {});
  const found = takeFindings().map(({ channel, kind }) => `${channel}: ${kind}`);
  return [...new Set(found)];
}

/** One secret of each kind. The canary must learn them without being told. */
async function secretsOf(): Promise<Record<'value' | 'secret' | 'key' | 'password', string>> {
  const { tokens } = setUp({ keys: [key] });
  const { value } = await tokens.issue({ account, scopes: [SCOPE] });
  await fixedAccounts([{ username: account, password: PASSWORD }])({
    username: account,
    password: PASSWORD,
  });
  return { value, secret: partsOf(value).secret, key: String(key.secret), password: PASSWORD };
}

const SECRETS = await secretsOf();

/** Careless code for each output channel. */
const LEAKS: Record<Channel, readonly [name: string, leak: (secret: string) => unknown][]> = {
  error: [
    ['message', (secret) => new TokenError('not_found', `no token ${secret}`)],
    ['details', (secret) => new TokenError('not_found', 'no', { scopes: [{ a: secret }] })],
    [
      'cause, set later',
      (secret) => Object.assign(new TokenError('not_found', 'no'), { cause: new Error(secret) }),
    ],
    ['message of a refusal', (secret) => new HttpError('not_found', secret)],
    [
      'header of a refusal',
      (secret) => new HttpError('not_found', 'no', { headers: { link: secret } }),
    ],
  ],
  event: [
    [
      'event of a service without a listener',
      (secret) => new Events(undefined, () => 0).refused({ reason: 'unknown', needed: secret }, 0),
    ],
  ],
  'log line': [
    // biome-ignore lint/suspicious/noConsole: the canary must notice it
    ['console.log', (secret) => console.log('a', { b: [secret] })],
    // biome-ignore lint/suspicious/noConsole: the canary must notice it
    ['console.error', (secret) => console.error(new Error(secret))],
    ['standard output', (secret) => process.stdout.write(secret)],
    ['standard error', (secret) => process.stderr.write(Buffer.from(secret))],
  ],
  warning: [
    [
      'process.emitWarning',
      async (secret) => {
        process.emitWarning(`careless ${secret}`);
        await new Promise(setImmediate);
      },
    ],
  ],
  'inspect output': [
    ['public field', (secret) => keepInspected({ a: { b: { secret } } })],
    [
      'inspection of its own',
      (secret) => keepInspected({ [inspect.custom]: () => `Key ${secret}` }),
    ],
    [
      'hidden member',
      (secret) => keepInspected(Object.defineProperty({}, 'secret', { value: secret })),
    ],
  ],
  'store call': [
    [
      'record',
      (secret) =>
        new MemoryTokenStore().insert({ id: NO_ID, account, name: secret } as TokenRecord),
    ],
    [
      'bytes of a record',
      (secret) =>
        new MemoryTokenStore().insert({
          id: NO_ID,
          account,
          box: Buffer.from(secret),
        } as unknown as TokenRecord),
    ],
    ['id', (secret) => new MemoryTokenStore().find([secret as TokenRecord['id']])],
  ],
  answer: [
    ['body of an error', (secret) => new Response(secret, { status: 404 })],
    ['header of an error', (secret) => new Response(null, { status: 401, headers: { a: secret } })],
    [
      'header object',
      (secret) => new Response('', { status: 503, headers: new Headers({ a: secret }) }),
    ],
  ],
};

describe('the canary', () => {
  const leaks = Object.entries(LEAKS).flatMap(([channel, list]) =>
    list.flatMap(([name, leak]) =>
      (['value', 'secret', 'key', 'password'] as const).map(
        (kind) => [channel as Channel, name, kind, leak] as const,
      ),
    ),
  );

  it.each(leaks)('detects in the channel "%s" (%s) a leaked %s', async (channel, _, kind, leak) => {
    const { [kind]: secret } = SECRETS;

    expect(await foundBy(() => leak(secret))).toContain(`${channel}: ${kind}`);
  });

  it.each(leaks.filter(([, , kind]) => kind === 'value'))(
    'ignores in the channel "%s" (%s) text that is not secret',
    async (_channel, _name, _kind, leak) => {
      const { tokens } = setUp();
      const { id, masked } = await tokens.issue({ account, scopes: [SCOPE] });

      expect(await foundBy(() => leak(`${id} ${masked.replace('…', '...')}`))).toEqual([]);
    },
  );

  it('allows a value in a successful answer, but never a key or a password', async () => {
    const { value, key: secretKey, password } = SECRETS;

    expect(await foundBy(() => new Response(value))).toEqual([]);
    expect(await foundBy(() => Response.json({ value }))).toEqual([]);
    expect(await foundBy(() => new Response(secretKey))).toEqual(['answer: key']);
    expect(await foundBy(() => new Response(password))).toEqual(['answer: password']);
  });

  it.each<[string, (bytes: Buffer) => string]>([
    ['base64url', (bytes) => bytes.toString('base64url')],
    ['Base64', (bytes) => bytes.toString('base64')],
    ['hex', (bytes) => bytes.toString('hex')],
  ])('recognizes a key in %s if it was given as bytes', async (_, write) => {
    const bytes = randomBytes(32);
    const keys: KeyOptions[] = [{ kid: 'k1', secret: bytes, status: 'active' }];
    setUp({ keys });

    expect(await foundBy(() => new TokenError('not_found', write(bytes)))).toEqual(['error: key']);
    expect(await foundBy(() => new TokenError('not_found', write(randomBytes(32))))).toEqual([]);
  });

  it('recognizes a verifier key', async () => {
    const { tokens } = setUp({ keys: [key] });
    const [verifier] = tokens.verifierKeys();

    expect(await foundBy(() => new TokenError('not_found', String(verifier?.secret)))).toEqual([
      'error: key',
    ]);
  });

  it('finds nothing in the normal work of the library', async () => {
    const found = await foundBy(async () => {
      const { tokens } = setUp({ keys: [key], reveal: 'always' });
      const { id, value } = await tokens.issue({ account, scopes: [SCOPE], name: 'deploy' });
      await tokens.verify(value, { scope: SCOPE });
      await tokens.get(account, value);
      await tokens.modify(account, value, { scopes: [SCOPE] });
      await tokens.rotate(account, value);
      await tokens.list({ account });
      await tokens.verify(value, { scope: SCOPE });
      await tokens.issue({ account, scopes: [value] }).catch(() => {});
      await tokens.get(account, `${value}x`);
      await tokens.revoke(account, id);
      keepInspected(
        new TokenService({ store: new MemoryTokenStore(), keys: [key], prefix: 'acme' }),
      );
    });

    expect(found).toEqual([]);
  });
});
