import { describe, expect, it } from 'vitest';
import { readBasic } from '../../src/http/basic-auth.ts';
import { bearerGuard, tokenHandler } from '../../src/http/index.ts';
import { type ScopeRequest, ScopeSet, safeParseScope } from '../../src/scope/index.ts';
import { BLOCK, blocksOf, fuzz } from './fuzz.ts';
import { Random } from './random.ts';
import { SUBJECTS, SURFACES, type Subjects, type SurfaceName } from './surfaces.ts';

const SEED = 6;
const names = Object.keys(SURFACES) as SurfaceName[];

async function findingOf(name: SurfaceName, blocks: number, defect: Partial<Subjects> = {}) {
  const surface = SURFACES[name]({ ...SUBJECTS, ...defect });
  return fuzz(surface, SEED, blocksOf(blocks * BLOCK, 0, 1));
}

describe('a few thousand inputs of millions', () => {
  it.each(names)('%s: nothing is wrong', { timeout: 60_000 }, async (name) => {
    expect(await findingOf(name, 3)).toBeUndefined();
  });
});

/** A small defect for each surface, as it has been seen elsewhere. */
const DEFECTS: Readonly<Record<SurfaceName, Partial<Subjects>>> = {
  scopes: {
    safeParseScope: (value) => safeParseScope(typeof value === 'string' ? value.trim() : value),
  },
  targets: {
    readRequest: (request) => {
      const { target } = request as ScopeRequest;
      const isText = typeof target === 'string';
      return SUBJECTS.readRequest({
        ...request,
        target: isText ? target.replaceAll('//', '/') : target,
      });
    },
  },
  // A prefix without a boundary.
  decisions: {
    allows: (scopes) => {
      const set = ScopeSet.from(scopes);
      return {
        allows: (request) => {
          const answer = set.allows(request);
          const by = [...set].find(
            ({ domain, method, path }) =>
              domain === request.domain &&
              method === request.method &&
              (request as ScopeRequest).target.startsWith(`/${path}`),
          );
          return answer.allowed || by === undefined ? answer : { allowed: true, by };
        },
      };
    },
  },
  // Folds what a database might fold.
  values: {
    verify: (tokens) => (value, need) =>
      tokens.verifySync(typeof value === 'string' ? value.normalize('NFKC') : value, need),
  },
  // Takes the first of two headers, as Node does.
  guard: {
    guard: (options) => {
      const decide = bearerGuard(options);
      return (request, need) => decide({ ...request, rawHeaders: [] } as typeof request, need);
    },
  },
  basic: {
    readBasic: (header) => {
      const read = readBasic(header);
      return read && { ...read, password: read.password.split(':')[0] as string };
    },
  },
  // Bound to the filter, and not to the account.
  cursors: {
    list: (tokens) => (input) =>
      tokens.list(input).catch(() => tokens.list({ ...input, account: 'bob' })),
  },
  // `userId` in a body that switches authentication off.
  http: {
    handler: (options) => {
      const real = tokenHandler(options);
      const asBob = tokenHandler({ ...options, authenticate: () => 'bob' });
      const answer = async (request: Request) => {
        const body = await request.clone().text();
        if (!body.includes('"userId":"bob"')) return real(request);
        const headers = new Headers(request.headers);
        headers.set('authorization', 'Basic eDp5');
        return asBob(
          new Request(request.url, {
            method: request.method,
            headers,
            body: body.replace(',"userId":"bob"', ''),
          }),
        );
      };
      return Object.assign(answer, { basePath: '' });
    },
  },
  // Says of whatever has a right tag that it is live.
  forms: {
    handler: (options) => {
      const { tokens } = options;
      const introspect = async (value: string) =>
        tokens.verifySync(value, { scope: 'GET:shop.example/orders' }) === undefined
          ? ((await tokens.list({ account: 'ada' })).tokens[0] ?? undefined)
          : tokens.introspect(value);
      const lying = new Proxy(tokens, {
        get: (service, name) => {
          const member = name === 'introspect' ? introspect : Reflect.get(service, name, service);
          return typeof member === 'function' ? member.bind(service) : member;
        },
      });
      return tokenHandler({ ...options, tokens: lying });
    },
  },
  log: { redact: (text) => text.replace(/\bacme_1[0-9A-Za-z]{57}\b/g, 'acme_…') },
};

/** What each of them breaks. */
const RULES: Readonly<Record<SurfaceName, string>> = {
  scopes: 'is read just where it is a scope',
  targets: 'means what the URL standard says',
  decisions: 'allows just what a scope says',
  values: 'says malformed just of that',
  guard: 'lets in by one header only',
  basic: 'reads what is there',
  cursors: 'is good for its account and filter',
  http: 'nobody else’s tokens',
  forms: 'revokes the very token of the value',
  log: 'leaves no value',
};

describe('a defect would be found', () => {
  it.each(names)('%s', { timeout: 60_000 }, async (name) => {
    const finding = await findingOf(name, 5, DEFECTS[name]);

    expect(finding?.message).toContain(RULES[name]);
  });

  it('and be found again in its block, without those before it', async () => {
    const found = await findingOf('values', 5, DEFECTS.values);
    const surface = SURFACES.values({ ...SUBJECTS, ...DEFECTS.values });
    const again = await fuzz(surface, SEED, [found?.block ?? 0]);

    expect(again?.block).toBe(found?.block);
  });
});

describe('the inputs', () => {
  it('are the same for the same seed and block, and others for others', () => {
    const drawn = (seed: number, block: number) => {
      const random = new Random(seed, block);
      return Array.from({ length: 50 }, () => random.spoil('GET:shop.example/orders')).join('\n');
    };

    expect(drawn(1, 2)).toBe(drawn(1, 2));
    expect(new Set([drawn(1, 2), drawn(1, 3), drawn(2, 2), drawn(2, 3)]).size).toBe(4);
  });

  it('are all tried, each by one worker', () => {
    const blocks = [0, 1, 2].flatMap((worker) => [...blocksOf(9500, worker, 3)]);
    expect(blocks.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });
});
