import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { ERROR_PAGE } from '../src/errors.ts';
import { type HttpErrorCode, STATUS } from '../src/http/errors.ts';
import {
  generateKey,
  isTokenError,
  MemoryTokenStore,
  TokenError,
  type TokenId,
  type TokenRecord,
  TokenService,
} from '../src/index.ts';
import { ScopeCatalog, type ScopeErrorCode, safeParseScope } from '../src/scope/index.ts';
import { faults, manualClock, withFaults } from '../src/testing/index.ts';
import { CODES, REASONS } from './codes.ts';
import { newRequest, REQUEST_BOUNDS } from './stores/support.ts';

const ROOT = join(import.meta.dirname, '..');
const PAGE = readFileSync(join(ROOT, 'docs/errors.md'), 'utf8');

describe('docsUrl', () => {
  const error = new TokenError('not_found', 'this account has no such token', { id: 'x' });

  it('points to what the installed package says about the code', () => {
    expect(error.docsUrl).toBe('node_modules/tokenwright/docs/errors.md#not_found');
    expect(new TokenError('id_taken', '').docsUrl).toBe(`${ERROR_PAGE}#id_taken`);
  });

  it.each(CODES.TokenError)('points for %s to a place that the package ships', (code) => {
    const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const path = new TokenError(code, '').docsUrl.replace(/^node_modules\/tokenwright\//, '');
    const [file = '', anchor] = path.split('#');

    expect(existsSync(join(ROOT, file))).toBe(true);
    expect(manifest.files.some((shipped: string) => matchesGlob(`/${file}`, shipped))).toBe(true);
    expect(PAGE).toContain(` {#${anchor}}\n`);
  });

  it('does not show up when an error is printed, serialized or copied', () => {
    expect(inspect(error)).not.toContain(ERROR_PAGE);
    expect(inspect(error, { getters: true })).not.toContain(ERROR_PAGE);
    expect(JSON.stringify(error)).not.toContain(ERROR_PAGE);
    expect(Object.keys({ ...error })).not.toContain('docsUrl');
    expect(String(error)).toBe('TokenError: this account has no such token');
  });

  it('cannot be set, and does not make an object a TokenError', () => {
    expect(() => Object.assign(error, { docsUrl: 'elsewhere' })).toThrow(TypeError);
    expect(isTokenError(error)).toBe(true);
    expect(isTokenError({ docsUrl: error.docsUrl, code: 'not_found' })).toBe(false);
  });
});

/** Of the page about errors. */
const sections = new Map(
  PAGE.split(/^(?=## \w+ \{#)/m).map((text) => [/^## (\w+) \{#\1\}\n/.exec(text)?.[1] ?? '', text]),
);
const page = (code: string) => sections.get(code) ?? '';
const ALL: readonly string[] = [...new Set(Object.values(CODES).flat())];

describe('the page about errors', () => {
  it('has a section for each code, and for nothing else', () => {
    expect([...sections.keys()].sort()).toEqual(['', ...ALL].sort());
  });

  it.each(ALL)('explain %s and its cure, and are listed in the index', (code) => {
    const text = page(code);

    expect(text).toMatch(/\n```text\n.+\n```\n/);
    expect(text).toContain('\n### Cure\n');
    expect(page('')).toContain(`| [\`${code}\`](#${code}) |`);
  });

  it.each(CODES.HttpError)('state the HTTP status and the error number of %s', (code) => {
    const [status, error] = STATUS[code];

    expect(page(code)).toContain(`HTTP status ${status}, \`error\` ${error}.`);
    expect(rowOf(`[\`${code}\`](#${code})`)?.slice(-2)).toEqual([String(status), String(error)]);
  });

  it('do not state the status of another code (the control)', () => {
    const numbers = (code: HttpErrorCode) => STATUS[code].join();
    expect(numbers('not_found')).not.toBe(numbers('token_expired'));
    expect(page('not_found')).not.toContain('HTTP status 409');
  });

  it.each(ALL)('state which error class carries %s', (code) => {
    const has = (codes: readonly string[]) => codes.includes(code);
    const carriers = [
      ...(has(CODES.TokenError) ? ['`TokenError`'] : []),
      ...(has(CODES.ScopeError) ? ['`ScopeError`'] : []),
    ];
    const isAlone = carriers.length === 0;
    const said = isAlone ? 'Sent only over HTTP' : `Thrown as a ${carriers.join(' and as a ')}`;

    expect(page(code)).toContain(`\n${said}. `);
  });

  it.each(REASONS)('explain the reason %s', (reason) => {
    expect(readFileSync(join(ROOT, 'docs/refusals.md'), 'utf8')).toContain(`\`${reason}\``);
  });

  it('links only to sections that exist', () => {
    const linked = [...PAGE.matchAll(/\]\(#(\w+)\)/g)].map(([, name = '']) => name);

    expect(linked.filter((name) => name !== 'codes' && !sections.has(name))).toEqual([]);
  });
});

function rowOf(first: string): string[] | undefined {
  const row = page('')
    .split('\n')
    .find((line) => line.startsWith(`| ${first} |`));
  return row
    ?.split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}

describe('the message on the page', () => {
  const shown = (code: string) => /\n```text\n(.+)\n```\n/.exec(page(code))?.[1];
  const scope = 'GET:shop.example/orders';

  const setUp = async () => {
    const clock = manualClock();
    const service = (store = new MemoryTokenStore(), more = {}) =>
      new TokenService({ store, keys: [generateKey()], prefix: 'acme', clock, ...more });
    const tokens = service();
    const { id } = await tokens.issue({ account: 'ada', scopes: [scope], ttlSeconds: 60 });
    return { clock, service, tokens, id };
  };
  type SetUp = Awaited<ReturnType<typeof setUp>>;
  const failing = (fault = faults.lostRequest()) => withFaults(new MemoryTokenStore(), fault);
  const expand = (...scopes: string[]) => ScopeCatalog.from([scope]).expand(scopes);
  const many = Array.from({ length: 4097 }, (_, index) => `GET:shop.example/o${index}`);

  it.each<[string, (given: SetUp) => unknown]>([
    [
      'invalid_scope',
      ({ tokens }) => tokens.issue({ account: 'a', scopes: ['get:shop.example/orders'] }),
    ],
    ['scopes_required', ({ tokens }) => tokens.issue({ account: 'a', scopes: [] })],
    ['scope_unmatched', () => expand('GET:shop.example/ordres')],
    ['too_many_scopes', ({ tokens }) => tokens.issue({ account: 'a', scopes: many })],
    ['catalog_empty', () => ScopeCatalog.from([]).expand([scope])],
    ['invalid_ttl', ({ tokens }) => tokens.issue({ account: 'a', scopes: [scope], ttlSeconds: 0 })],
    ['invalid_expire', ({ tokens, id }) => tokens.patch('ada', id, { expiresAt: new Date(0) })],
    [
      'invalid_limits',
      ({ tokens, id }) => tokens.patch('ada', id, { limits: { addresses: ['10.0.0.1/8'] } }),
    ],
    [
      'invalid_request',
      ({ tokens, id }) => tokens.patch('ada', id, { scopes: [scope], addScopes: [scope] }),
    ],
    ['invalid_options', ({ service }) => service(undefined, { deadlineMs: 0 })],
    ['not_found', ({ tokens, id }) => tokens.rotate('eve', id)],
    [
      'token_expired',
      ({ tokens, id, clock }) => {
        clock.advance(60);
        return tokens.rotate('ada', id);
      },
    ],
    [
      'version_conflict',
      async ({ tokens, id }) => {
        await tokens.patch('ada', id, { name: 'a' });
        await tokens.patch('ada', id, { name: 'b' });
        return tokens.patch('ada', id, { name: 'c' }, { ifVersion: 1 });
      },
    ],
    [
      'code_taken',
      async () => {
        const { requests } = new MemoryTokenStore();
        await requests.insert(newRequest(1), REQUEST_BOUNDS);
        await requests.insert(newRequest(2, { userCode: newRequest(1).userCode }), REQUEST_BOUNDS);
      },
    ],
    [
      'id_taken',
      async () => {
        const store = new MemoryTokenStore();
        await store.insert(record);
        await store.insert(record);
      },
    ],
    [
      'store_unavailable',
      ({ service }) => service(failing() as MemoryTokenStore).get('ada', record.id),
    ],
    [
      'store_corrupt',
      ({ service }) => {
        const store = failing(async () => [{ id: record.id }]);
        return service(store as MemoryTokenStore).get('ada', record.id);
      },
    ],
    [
      'durability_unconfirmed',
      ({ service }) => {
        const store = failing(async () => {
          throw new TokenError('durability_unconfirmed', '');
        });
        return service(store as MemoryTokenStore).revoke('ada', record.id);
      },
    ],
    ['scope_invalid', () => expand('shop.example/orders')],
    ['catalog_not_concrete', () => ScopeCatalog.from(['GET:shop.example/*'])],
  ])('for %s is the one that the call gives', async (code, provoke) => {
    const given = await setUp();
    const error = await (async () => provoke(given))().catch((caught) => caught);

    expect(error).toMatchObject({ code, message: shown(code) });
  });

  const record = {
    id: 'A'.repeat(22) as TokenId,
    account: 'ada',
    prefix: 'acme',
    kid: 'k1',
    digest: new Uint8Array(32),
    scopes: [scope],
    requested: [scope],
    createdAt: new Date(0),
    expiresAt: new Date(1),
    version: 1,
  } satisfies TokenRecord;

  const quoted = /^"(.*)" is not a scope: /;
  const parsed = CODES.ScopeError.filter((code) => quoted.test(shown(code) ?? ''));

  it.each(parsed)('for %s is what the parser says about the text it quotes', (code) => {
    const text = quoted.exec(shown(code) ?? '')?.[1];

    expect(safeParseScope(text)).toMatchObject({ ok: false, error: code, message: shown(code) });
  });

  it.each<[ScopeErrorCode, unknown]>([
    ['not_a_string', 42],
    ['empty', ''],
    ['too_long', `GET:shop.example/${'a'.repeat(1100)}`],
    ['non_ascii', 'GET:shop.example/caf\u00e9'],
  ])('for %s ends like what the parser says about a similar text', (code, text) => {
    const reading = safeParseScope(text);
    const ending = (message = '') => message.replace(quoted, '');

    expect(reading).toMatchObject({ ok: false, error: code });
    expect(ending(reading.ok ? '' : reading.message)).toBe(ending(shown(code)));
  });

  /** A pattern for each text of the HTTP sources. Interpolated parts may be anything. */
  const patterns = globSync('src/http/**/*.ts', { cwd: ROOT }).flatMap((file) =>
    [...readFileSync(join(ROOT, file), 'utf8').matchAll(/'(\w[^'\n]{8,})'|`(\w[^`\n]{8,})`/g)].map(
      ([, plain, template]) => {
        const pieces = (plain ?? (template as string)).split(/\$\{[^}]*\}/);
        const literal = pieces.map((piece) => piece.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
        return new RegExp(`^${literal.join('.+')}$`);
      },
    ),
  );
  const httpOnly = CODES.HttpError.filter((code) => !(CODES.TokenError as string[]).includes(code));

  it.each(httpOnly)('for %s is a text of the HTTP sources', (code) => {
    const message = shown(code) as string;

    expect(patterns.some((text) => text.test(message))).toBe(true);
    expect(patterns.some((text) => text.test(`so ${message}`))).toBe(false);
  });
});
