import { getUnixTime } from 'date-fns/getUnixTime';
import * as z from 'zod/mini';
import { ScopeSet } from '../../../scope/index.ts';
import { BODY_LENGTH, ID_START, SECRET_START } from '../../../values/format.ts';
import { readId } from '../../../values/value.ts';
import { type CliError, inputError, usageError, withFlag } from '../../terminal/errors.ts';
import {
  type IfVersion,
  InvalidValue,
  type Login,
  listAll,
  NotFound,
  type TokenClient,
  type Verification,
  type WrittenNeed,
} from './index.ts';
import {
  adviceJson,
  explanationJson,
  findingJson,
  madeTokenJson,
  type TokenJson,
  time,
  tokenJson,
  usageJson,
  withoutValue,
} from './token-json.ts';

const ANSWER_MS = 30_000;
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const MAX_REASON_LENGTH = 1000;
const PAGE_TOKENS = 100;

/**
 * Connects to the tokens of an account in a running service. Without a login, it only derives.
 *
 * @throws {CliError} that never repeats the URL, which may hold a password
 */
export function remoteClient(url: string, login: Login | undefined): TokenClient {
  const service = new HttpClient(readBase(url), login);
  return {
    name: login === undefined ? service.base : `${login.user} at ${service.base}`,
    issue: ({ ttlSeconds, ...rest }) =>
      service.made('POST', '/token', { ...rest, ttl: ttlSeconds }),
    derive: (value, { ttlSeconds, ...rest }) => service.derive(value, { ...rest, ttl: ttlSeconds }),
    list: ({ limit, ...filter }) =>
      listAll(limit, PAGE_TOKENS, async (size, cursor) => {
        const page = await service.page({ ...filter, limit: String(size), cursor });
        return { tokens: page.data.map(withoutValue), cursor: page.cursor };
      }),
    async get(id, { state }) {
      const query = state === undefined ? '' : `?${new URLSearchParams({ state })}`;
      return withoutValue(await service.one('GET', `${pathOf(id)}${query}`));
    },
    usage: (id) => service.data(`${pathOf(id)}/usage`, usageJson),
    advise: (id, { unusedForDays }) => {
      const query = unusedForDays === undefined ? '' : `?unusedForDays=${unusedForDays}`;
      return service.data(`${pathOf(id)}/advice${query}`, adviceJson);
    },
    review: (days) => allFindings(service, days),
    explain: (id, need) => service.data(`${pathOf(id)}/explain`, explanationJson, need),
    async patch(id, { expiresAt, ...rest }, options) {
      const expire = expiresAt && getUnixTime(expiresAt);
      return withoutValue(await service.one('PATCH', pathOf(id), { ...rest, expire }, options));
    },
    async tryPatch() {
      throw usageError('--dry-run is for a store: a service cannot be asked for it');
    },
    async revoke(id, { descendants, ...options }) {
      const query = descendants === true ? '?descendants=true' : '';
      await service.call('DELETE', `${pathOf(id)}${query}`, undefined, options);
    },
    async revokeAll() {
      throw usageError('--all is for a store: a service revokes one token at a time');
    },
    rotate: (id, { ifVersion, ...body }) =>
      service.made('POST', `${pathOf(id)}/rotate`, body, { ifVersion }),
    cancelRotation: async (id, options) =>
      withoutValue(await service.one('POST', `${pathOf(id)}/rotate`, { cancel: true }, options)),
    verify: async (value, need, address) => {
      const { scope = '', ...answer } = await service.introspect(value, address);
      return judge(answer, service.scopesIn(scope), need);
    },
  };
}

async function* allFindings(
  service: HttpClient,
  days: Parameters<TokenClient['review']>[0],
): ReturnType<TokenClient['review']> {
  let cursor: string | undefined;
  do {
    const page = await service.findings({ ...days, cursor });
    yield* page.data;
    cursor = page.cursor;
  } while (cursor !== undefined);
}

/** The parameters of a call; those that are `undefined` are not sent. */
type Query = Readonly<Record<string, string | number | undefined>>;

function searchOf(query: Query): URLSearchParams {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) search.set(name, String(value));
  }
  return search;
}

const findingsSchema = z.object({ data: z.array(findingJson), cursor: z.optional(z.string()) });
const pageSchema = z.object({
  data: z.array(tokenJson).check(z.maxLength(PAGE_TOKENS)),
  cursor: z.optional(z.string()),
});
/** The one token of an answer, in `data` or, from an older service, by itself. */
const oneSchema = z.union([
  z.pipe(
    z.object({ data: z.tuple([z.unknown()]) }),
    z.transform(({ data }) => data[0]),
  ),
  z.unknown(),
]);
/** The error of the service, or one in the form of OAuth. */
const failureSchema = z.object({
  message: z.optional(z.string()),
  error_description: z.optional(z.string()),
  code: z.optional(z.string()),
  details: z.optional(z.object({ member: z.optional(z.string()) })),
});
const introspectionSchema = z.object({
  active: z.boolean(),
  scope: z.optional(z.string()),
  sub: z.optional(z.string()),
  exp: z.optional(time),
  jti: z.optional(z.string()),
});

type Introspection = z.infer<typeof introspectionSchema>;

/** The words of a call. */
type Call = readonly [method: string, path: string, body?: object | undefined, options?: IfVersion];

class HttpClient {
  readonly base: string;
  readonly #authorization: string | undefined;

  constructor(base: string, login: Login | undefined) {
    this.base = base;
    this.#authorization =
      login && `Basic ${Buffer.from(`${login.user}:${login.password}`).toString('base64')}`;
  }

  async one(...call: Call): Promise<TokenJson> {
    return this.#read(tokenJson, oneSchema.parse(await this.call(...call)));
  }

  /** Makes a call that makes a value. */
  async made(...call: Call): Promise<TokenJson> {
    return this.#read(madeTokenJson, oneSchema.parse(await this.call(...call)));
  }

  /** Makes a call, and reads the `data` of its answer. */
  async data<Data>(path: string, schema: z.ZodMiniType<Data>, body?: object): Promise<Data> {
    const answer = await this.call(body === undefined ? 'GET' : 'POST', path, body);
    const { data } = this.#read(z.object({ data: z.unknown() }), answer);
    return this.#read(schema, data);
  }

  page(query: Query) {
    return this.#page(pageSchema, '/token', query);
  }

  findings(query: Query) {
    return this.#page(findingsSchema, '/review', query);
  }

  async #page<Page extends { readonly cursor?: string | undefined }>(
    schema: z.ZodMiniType<Page>,
    path: string,
    query: Query,
  ): Promise<Page> {
    const page = this.#read(schema, await this.call('GET', `${path}?${searchOf(query)}`));
    // It would go on without end.
    if (page.cursor !== undefined && page.cursor === query['cursor']) throw this.#noService(200);
    return page;
  }

  async introspect(value: string, address: string | undefined): Promise<Introspection> {
    const response = await this.#fetch('/introspect', {
      method: 'POST',
      body: new URLSearchParams({
        token: value,
        ...(address !== undefined && { client_address: address }),
      }),
    });
    if (response.status === 404) {
      throw inputError(
        `${this.base} answers no introspection: run it with --introspection, or verify in its --store`,
      );
    }
    if (response.status === 401) {
      throw inputError(
        `${this.base} refuses with 401: to verify, the credentials must be those of --introspection, not those of an account`,
      );
    }
    return this.#read(introspectionSchema, await this.#answer(response));
  }

  /** The scopes of an introspection. */
  scopesIn(text: string): ScopeSet {
    try {
      return ScopeSet.from(text.split(' ').filter((scope) => scope !== ''));
    } catch {
      throw this.#noService(200);
    }
  }

  async derive(value: string, body: object): Promise<TokenJson> {
    // A header cannot have other characters, and no value has any.
    if (!/^[\x21-\x7e]+$/.test(value)) throw new InvalidValue();
    const response = await this.#fetch('/token/derive', {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${value}` },
      body: JSON.stringify(body),
    });
    // A service without --derivation takes `derive` for the id of a token, and asks for a password.
    const challenge = response.headers.get('www-authenticate') ?? '';
    if (response.status === 401 && !challenge.startsWith('Bearer')) {
      throw inputError(
        `${this.base} derives no tokens: run it with --derivation, or derive in its --store`,
      );
    }
    if (response.status === 404) throw this.#noService(404);
    return this.#read(madeTokenJson, await this.#answer(response));
  }

  async call(...[method, path, body, { ifVersion } = {}]: Call): Promise<unknown> {
    const response = await this.#fetch(path, {
      method,
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(ifVersion !== undefined && { 'if-match': `"${ifVersion}"` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    // Every service has the paths without an id, so this is not one.
    if (response.status === 404 && !path.startsWith('/token/')) throw this.#noService(404);
    return this.#answer(response);
  }

  /** Refuses redirects: the credentials are for this service alone. */
  async #fetch(path: string, init: RequestInit): Promise<Response> {
    try {
      return await fetch(this.base + path, {
        ...init,
        headers: {
          ...(this.#authorization !== undefined && { authorization: this.#authorization }),
          ...init.headers,
        },
        redirect: 'error',
        signal: AbortSignal.timeout(ANSWER_MS),
      });
    } catch {
      throw inputError(`${this.base} cannot be reached, or does not answer`);
    }
  }

  async #answer(response: Response): Promise<unknown> {
    const answer = await jsonOf(response).catch(() => undefined);
    if (response.ok && answer !== undefined) return answer;
    const failure = failureSchema.safeParse(answer).data;
    if (failure?.code === 'not_found') throw new NotFound();
    if (failure?.code === 'invalid_token') throw new InvalidValue();
    const reason = failure?.message ?? failure?.error_description;
    if (reason === undefined) throw this.#noService(response.status);
    const seconds = response.headers.get('retry-after') ?? '';
    const later = /^\d{1,9}$/.test(seconds) ? `; try again in ${seconds} s` : '';
    const named = withFlag(reason.slice(0, MAX_REASON_LENGTH), failure?.details?.member);
    throw inputError(`${this.base} refuses with ${response.status}: ${named}${later}`);
  }

  #read<Shape>(schema: z.ZodMiniType<Shape>, answer: unknown): Shape {
    const reading = schema.safeParse(answer);
    if (reading.success) return reading.data;
    throw this.#noService(200);
  }

  #noService(status: number): CliError {
    return inputError(
      `${this.base} does not answer as a token service does (${status}); is the path right?`,
    );
  }
}

/** @throws if it is longer than any answer of a service, or not JSON */
async function jsonOf({ body }: Response): Promise<unknown> {
  // Not a list of chunks, which may be tiny. The system gives only the memory that is written.
  const bytes = Buffer.alloc(MAX_ANSWER_BYTES);
  let length = 0;
  for await (const chunk of body ?? []) {
    bytes.set(chunk, length);
    length += chunk.length;
  }
  return JSON.parse(new TextDecoder().decode(bytes.subarray(0, length)));
}

function readBase(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isWeb = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (url === undefined || !isWeb || url.search !== '' || url.hash !== '') {
    throw usageError('--url (TOKENWRIGHT_URL) must be like http://127.0.0.1:8787');
  }
  if (url.username !== '' || url.password !== '') {
    throw usageError(
      '--url (TOKENWRIGHT_URL) must hold no user and password: they are for TOKENWRIGHT_USER and TOKENWRIGHT_PASSWORD',
    );
  }
  return url.href.replace(/\/$/, '');
}

/** Refuses values, because paths end up in logs. The id within a value is not secret. */
function pathOf(id: string): string {
  if (readId(id) !== undefined) return `/token/${id}`;
  const body = id.slice(-BODY_LENGTH);
  const own = readId(body.slice(ID_START, SECRET_START));
  if (own === undefined || !id.endsWith(`_${body}`)) throw new NotFound();
  throw inputError(
    `a service is asked by the id: addresses end up in logs, and a value must not; the id of this one is ${own}`,
  );
}

/** Decides from the introspection response alone, as a resource server does. */
function judge(
  { active, sub, exp, jti }: Introspection,
  held: ScopeSet,
  need: WrittenNeed,
): Verification {
  if (!active) return { ok: false, reason: 'inactive' };
  const explained = held.explain('scope' in need ? need.scope : need);
  if (explained.allowed) {
    const token = { id: jti, account: sub, expire: exp };
    return { ok: true, grantedBy: explained.by.toString(), token };
  }
  return 'needed' in explained
    ? { ok: false, reason: 'insufficient_scope', needed: explained.needed.toString() }
    : { ok: false, reason: explained.reason };
}
