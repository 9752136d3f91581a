import { getUnixTime } from 'date-fns/getUnixTime';
import * as z from 'zod';
import { ScopeSet } from '../scope/index.ts';
import type { Need } from '../service.ts';
import {
  type Account,
  type Finding,
  type IfVersion,
  listAll,
  NotFound,
  type ShownToken,
} from './account.ts';
import { InputError } from './files.ts';
import { UsageError } from './settings.ts';

const ANSWER_MS = 30_000;
const PAGE = 100;

/**
 * The tokens of an account behind a running service.
 *
 * @throws {UsageError} saying what the URL must be, never what it is: there may be a password in it
 */
export function remoteAccount(url: string, user: string, password: string): Account {
  const service = new Service(readBase(url), user, password);
  return {
    name: `${user} at ${service.base}`,
    async issue({ ttlSeconds, ...rest }) {
      return service.one('POST', '/token', { ...rest, ttl: ttlSeconds });
    },
    list: ({ limit, ...filter }) =>
      listAll(limit, PAGE, async (size, cursor) => {
        const page = await service.page({ ...filter, limit: String(size), cursor });
        return { tokens: page.data.map(withoutValue), cursor: page.cursor };
      }),
    get: async (id) => withoutValue(await service.one('GET', pathOf(id))),
    async patch(id, { expiresAt, ...rest }, options) {
      const expire = expiresAt && getUnixTime(expiresAt);
      return withoutValue(await service.one('PATCH', pathOf(id), { ...rest, expire }, options));
    },
    async tryPatch() {
      throw new UsageError('--dry-run is for a store: a service cannot be asked for it');
    },
    async revoke(id, options) {
      await service.call('DELETE', pathOf(id), undefined, options);
    },
    async revokeAll() {
      throw new UsageError('--all is for a store: a service revokes one token at a time');
    },
    rotate: (id, { graceSeconds, ...options }) =>
      service.one('POST', `${pathOf(id)}/rotate`, { graceSeconds }, options),
    verify: async (value, need) => judge(await service.introspect(value), need),
  };
}

const tokenSchema = z.object({
  scopes: z.array(z.string()),
  expire: z.int(),
  token: z.string(),
  id: z.string(),
  state: z.string(),
  createdAt: z.int(),
  version: z.int(),
  name: z.string().optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
});
const pageSchema = z.object({ data: z.array(tokenSchema), cursor: z.string().optional() });
/** In the envelope of the service, or in the shape of OAuth. */
const failureSchema = z.object({
  message: z.string().optional(),
  error_description: z.string().optional(),
  code: z.string().optional(),
});
const introspectionSchema = z.object({
  active: z.boolean(),
  scope: z.string().optional(),
  sub: z.string().optional(),
  exp: z.number().optional(),
  jti: z.string().optional(),
});

type Introspection = z.infer<typeof introspectionSchema>;

class Service {
  readonly base: string;
  readonly #authorization: string;

  constructor(base: string, user: string, password: string) {
    this.base = base;
    this.#authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  }

  async one(method: string, path: string, body?: object, options?: IfVersion): Promise<ShownToken> {
    const answer = await this.call(method, path, body, options);
    const single = pageSchema.safeParse(answer).data?.data[0] ?? answer;
    return this.#read(tokenSchema, single);
  }

  async page(query: Readonly<Record<string, string | undefined>>) {
    const given = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as [string, string]],
    );
    const answer = await this.call('GET', `/token?${new URLSearchParams(given)}`);
    return this.#read(pageSchema, answer);
  }

  async introspect(value: string): Promise<Introspection> {
    const response = await this.#fetch('/introspect', {
      method: 'POST',
      body: new URLSearchParams({ token: value }),
    });
    if (response.status === 404) {
      throw new InputError(
        `${this.base} answers no introspection: run it with --introspection, or verify in its --store`,
      );
    }
    if (response.status === 401) {
      throw new InputError(
        `${this.base} refuses with 401: to verify, the credentials must be those of --introspection, not those of an account`,
      );
    }
    return this.#read(introspectionSchema, await this.#answer(response));
  }

  async call(
    method: string,
    path: string,
    body?: object,
    { ifVersion }: IfVersion = {},
  ): Promise<unknown> {
    const response = await this.#fetch(path, {
      method,
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(ifVersion !== undefined && { 'if-match': `"${ifVersion}"` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    // Of an address that names no token it says that the service is elsewhere.
    if (response.status === 404 && !path.startsWith('/token/')) throw this.#noService(404);
    return this.#answer(response);
  }

  /** Follows nobody: the credentials are for this service alone. */
  async #fetch(path: string, init: RequestInit): Promise<Response> {
    try {
      return await fetch(this.base + path, {
        ...init,
        headers: { ...init.headers, authorization: this.#authorization },
        redirect: 'error',
        signal: AbortSignal.timeout(ANSWER_MS),
      });
    } catch {
      throw new InputError(`${this.base} cannot be reached, or does not answer`);
    }
  }

  async #answer(response: Response): Promise<unknown> {
    const answer: unknown = await response.json().catch(() => undefined);
    if (response.ok && answer !== undefined) return answer;
    const failure = failureSchema.safeParse(answer).data;
    if (failure?.code === 'not_found') throw new NotFound();
    const reason = failure?.message ?? failure?.error_description;
    if (reason === undefined) throw this.#noService(response.status);
    const seconds = response.headers.get('retry-after');
    const later = seconds === null ? '' : `; try again in ${seconds} s`;
    throw new InputError(`${this.base} refuses with ${response.status}: ${reason}${later}`);
  }

  #read<Shape>(schema: z.ZodType<Shape>, answer: unknown): Shape {
    const reading = schema.safeParse(answer);
    if (reading.success) return reading.data;
    throw this.#noService(200);
  }

  #noService(status: number): InputError {
    return new InputError(
      `${this.base} does not answer as a token service does (${status}); is the path right?`,
    );
  }
}

/** Never repeats what was given. */
function readBase(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isWeb = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (url === undefined || !isWeb || url.search !== '' || url.hash !== '') {
    throw new UsageError('--url (TOKENWRIGHT_URL) must be like http://127.0.0.1:8787');
  }
  if (url.username !== '' || url.password !== '') {
    throw new UsageError(
      '--url (TOKENWRIGHT_URL) must hold no user and password: they are for TOKENWRIGHT_USER and TOKENWRIGHT_PASSWORD',
    );
  }
  return url.href.replace(/\/$/, '');
}

/** An address ends up in logs, so that no value may be in it; the id in a value is no secret. */
function pathOf(id: string): string {
  if (/^[0-9A-Za-z]{22}$/.test(id)) return `/token/${id}`;
  const own = /_1[0-9A-Za-z]{2}([0-9A-Za-z]{22})[0-9A-Za-z]{33}$/.exec(id)?.[1];
  if (own === undefined) throw new NotFound();
  throw new InputError(
    `a service is asked by the id: addresses end up in logs, and a value must not; the id of this one is ${own}`,
  );
}

/** A service may show values to their account again; commands do not. */
function withoutValue(token: ShownToken): ShownToken {
  return { ...token, token: token.id };
}

/** Decides as a resource server does that has only the answer of an introspection. */
function judge({ active, scope = '', sub, exp, jti }: Introspection, need: Need): Finding {
  if (!active) return { ok: false, reason: 'inactive' };
  const held = ScopeSet.from(scope.split(' ').filter((text) => text !== ''));
  const explained = held.explain('scope' in need ? need.scope : need);
  if (explained.allowed) {
    const token = { id: jti, account: sub, expire: exp };
    return { ok: true, grantedBy: explained.by.toString(), token };
  }
  return 'needed' in explained
    ? { ok: false, reason: 'insufficient_scope', needed: explained.needed.toString() }
    : { ok: false, reason: explained.reason };
}
