import { describe, expect, it } from 'vitest';
import { bearerGuard, tokenHandler } from '../../src/http/index.ts';
import { readBasic } from '../../src/http/sign-in/basic-auth.ts';
import { type ScopeRequest, ScopeSet, safeParseScope } from '../../src/scope/index.ts';
import { runs } from '../laws.ts';
import { BLOCK, blocksOf, fuzz } from './fuzz.ts';
import { Random } from './random.ts';
import { SUBJECTS, SURFACES, type Subjects, type SurfaceName } from './surfaces.ts';

const SEED = 6;
const names = Object.keys(SURFACES) as SurfaceName[];

async function findingOf(name: SurfaceName, blocks: number, defect: Partial<Subjects> = {}) {
  const surface = SURFACES[name]({ ...SUBJECTS, ...defect });
  return fuzz(surface, SEED, blocksOf(blocks * BLOCK, 0, 1));
}

describe('fuzzing the library', () => {
  it.each(names)('finds nothing wrong in inputs of %s', async (name) => {
    expect(await findingOf(name, runs(0.01).numRuns)).toBeUndefined();
  });
});

/** A small defect for each surface, each of a kind that real systems have had. */
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
  // Compares prefixes without a segment boundary.
  decisions: {
    allows: (scopes) => {
      const set = ScopeSet.from(scopes);
      return {
        allows: (request) => {
          const answer = set.allows(request);
          const asked = request as ScopeRequest;
          const by = [...set].find(
            ({ domain, method, path }) =>
              domain === asked.domain &&
              method === asked.method &&
              asked.target.startsWith(`/${path}`),
          );
          return answer.allowed || by === undefined ? answer : { allowed: true, by };
        },
      };
    },
  },
  // Normalizes values, as a database collation might.
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
  // Binds cursors to the filter, but not to the account.
  cursors: {
    list: (tokens) => (input) =>
      tokens.list(input).catch(() => tokens.list({ ...input, account: 'bob' })),
  },
  // Lets `userId` in a body replace authentication.
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
  // Reports every value with a valid tag as live.
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

/** The rule that each defect breaks. */
const RULES: Readonly<Record<SurfaceName, string>> = {
  scopes: 'accepts a text if and only if it is a scope',
  targets: 'reads the path as the URL standard does',
  decisions: 'allows exactly what the scopes cover',
  values: 'reports malformed if and only if the value is',
  guard: 'requires exactly one Authorization header',
  basic: 'returns exactly the encoded credentials',
  cursors: 'accepts a cursor only for its account and filter',
  http: 'tokens of other accounts',
  forms: 'revokes only the tokens of the values sent',
  log: 'masks every value',
};

describe('fuzzing with a deliberate defect', () => {
  it.each(names)('finds it in %s', { timeout: 60_000 }, async (name) => {
    const finding = await findingOf(name, 5, DEFECTS[name]);

    expect(finding?.message).toContain(RULES[name]);
  });

  it('reproduces the finding from its block alone', async () => {
    const found = await findingOf('values', 5, DEFECTS.values);
    const surface = SURFACES.values({ ...SUBJECTS, ...DEFECTS.values });
    const again = await fuzz(surface, SEED, [found?.block ?? 0]);

    expect(again?.block).toBe(found?.block);
  });
});

describe('fuzzing inputs', () => {
  it('are the same for the same seed and block, and differ for any other', () => {
    const drawn = (seed: number, block: number) => {
      const random = new Random(seed, block);
      return Array.from({ length: 50 }, () => random.spoil('GET:shop.example/orders')).join('\n');
    };

    expect(drawn(1, 2)).toBe(drawn(1, 2));
    expect(new Set([drawn(1, 2), drawn(1, 3), drawn(2, 2), drawn(2, 3)]).size).toBe(4);
  });

  it('are divided among workers so that each block is tried exactly once', () => {
    const blocks = [0, 1, 2].flatMap((worker) => [...blocksOf(9500, worker, 3)]);
    expect(blocks.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });
});
