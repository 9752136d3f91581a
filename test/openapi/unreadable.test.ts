import { describe, expect, it } from 'vitest';
import { failureLimiter, fixedAccounts } from '../../src/http/index.ts';
import { catalogDiff, catalogFromOpenApi, readOpenApi } from '../../src/openapi/index.ts';

const boom = () => {
  throw new Error('of the caller');
};
const traps = { get: boom, has: boom, ownKeys: boom, getPrototypeOf: boom };

const UNREADABLE: [what: string, value: never][] = [
  ['a proxy', new Proxy({}, traps) as never],
  ['a proxy of a list', new Proxy([], { get: boom, ownKeys: boom }) as never],
  ['a list with a getter', Object.defineProperty(['x'], 0, { get: boom }) as never],
  ['an object with getters', withGetters() as never],
];

/** Has a getter for every member that one of the calls reads. */
function withGetters(): object {
  const names = ['openapi', 'swagger', 'paths', 'servers', 'info', 'url', 'get', 'id', 'scopes'];
  const more = ['granularity', 'tokens', 'clock', 'username', 'user', 'default', 'a'];
  const made = {};
  for (const name of [...names, ...more]) {
    Object.defineProperty(made, name, { enumerable: true, get: boom });
  }
  return made;
}

const servers = [{ url: 'https://{a}.example' }];
const paths = { '/a': { get: {} } };
const read = (members: object) => readOpenApi({ openapi: '3.1.0', servers, paths, ...members });

const CALLS: [what: string, call: (value: never) => unknown][] = [
  ['a document', (value) => readOpenApi(value)],
  ['a document of a list', (value) => catalogFromOpenApi([value])],
  ['the paths', (value) => read({ paths: value })],
  ['a path item', (value) => read({ paths: { '/a': value } })],
  ['an operation', (value) => read({ paths: { '/a': { get: value } } })],
  ['x-scope', (value) => read({ paths: { '/a': { get: { 'x-scope': value } } } })],
  ['the servers', (value) => read({ servers: value })],
  ['a server', (value) => read({ servers: [value] })],
  ['the variables', (value) => read({ servers: [{ ...servers[0], variables: value }] })],
  ['the options', (value) => readOpenApi({ openapi: '3.1.0', paths: {} }, value)],
  ['the hosts', (value) => readOpenApi({ openapi: '3.1.0', paths: {} }, { hosts: value })],
  ['a catalog', (value) => catalogDiff(value, [])],
  ['an entry', (value) => catalogDiff([], [value])],
  ['the options of catalogDiff', (value) => catalogDiff([], [], value)],
  ['the tokens', (value) => catalogDiff([], [], { tokens: value })],
  ['a token', (value) => catalogDiff([], [], { tokens: [value] })],
  [
    'the scopes of a token',
    (value) => catalogDiff([], [], { tokens: [{ id: 'x', scopes: value, requested: [] }] }),
  ],
  ['the accounts', (value) => fixedAccounts(value)],
  ['an account', (value) => fixedAccounts([value])],
  ['the options of fixedAccounts', (value) => fixedAccounts([HASHED], value)],
  ['the limiters', (value) => failureLimiter(value)],
  ['a limiter', (value) => failureLimiter({ user: value })],
];

const HASHED = {
  username: 'ada',
  passwordHash: `$scrypt$ln=14,r=8,p=5$${'a'.repeat(22)}$${'a'.repeat(43)}`,
};

describe.each(CALLS)('%s', (_, call) => {
  it.each(UNREADABLE)('that is %s is at most an error with a code', async (__, value) => {
    const error = await (async () => call(value))().then(
      () => undefined,
      (thrown) => thrown,
    );

    if (error === undefined) return;
    expect(error.code).toMatch(
      /^(?:invalid_options|catalog_not_concrete|scopes_required|scope_invalid|not_a_string)$/,
    );
    expect(error.message).not.toContain('of the caller');
  });
});

it('a document whose getter throws is refused by name', async () => {
  const paths = Object.defineProperty({}, '/a', { enumerable: true, get: boom });
  await expect(read({ paths })).rejects.toMatchObject({
    code: 'invalid_options',
    message: 'a document or an option could not be read: a getter or a proxy threw',
  });
  expect((await read({ servers: [{ url: 'https://a.example' }] })).catalog.toArray()).toHaveLength(
    1,
  );
});
