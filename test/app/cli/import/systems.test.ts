import { describe, expect, it } from 'vitest';
import { plainName } from '../../../../src/app/cli/import/rows.ts';
import { type OldToken, SYSTEMS, type SystemName } from '../../../../src/app/cli/import/systems.ts';

type Row = Readonly<Record<string, unknown>>;

function readerOf(system: SystemName): (row: Row) => OldToken {
  const read = SYSTEMS[system].reader();
  return (row) => read(new Map(Object.entries(row).map(([name, cell]) => [plainName(name), cell])));
}

const MAY = new Date('2027-05-01T12:00:00Z');
const APRIL = new Date('2027-04-01T00:00:00Z');

/** A complete row of each system, in the form of its export. */
const ROWS = {
  sanctum: {
    tokenable_type: 'App\\Models\\User',
    tokenable_id: 7,
    name: 'ci',
    token: 'ab',
    abilities: '["orders:read","*"]',
    created_at: '2027-04-01 00:00:00',
    expires_at: '2027-05-01 12:00:00',
  },
  'better-auth': {
    key: 'ab',
    referenceId: '7',
    name: 'ci',
    permissions: '{"orders":["read","write"],"bills":[]}',
    metadata: '{"team":"web"}',
    enabled: 1,
    createdAt: '2027-04-01T00:00:00.000Z',
    expiresAt: '2027-05-01T12:00:00.000Z',
  },
  'unkey-export': {
    hash: 'ab',
    owner_id: '7',
    name: 'ci',
    permissions: ['orders:read'],
    meta: '{"team":"web"}',
    enabled: true,
    created_at_m: 1_806_537_600_000,
    expires: '2027-05-01 12:00:00.000',
    deleted_at_m: null,
  },
  keypal: {
    keyHash: 'ab',
    metadata: {
      ownerId: '7',
      name: 'ci',
      scopes: ['orders:read'],
      resources: { 'shop:1': ['read'] },
      createdAt: '2027-04-01T00:00:00.000Z',
      expiresAt: '2027-05-01T12:00:00.000Z',
      enabled: true,
      revokedAt: null,
    },
  },
  csv: {
    digest: 'ab',
    account: '7',
    name: 'ci',
    scopes: 'GET:a.example/x, POST:a.example/x',
    enabled: 'true',
    created_at: '1806537600',
    expires_at: '2027-05-01T14:00:00.000000+02',
    revoked_at: '',
    metadata: '{"team":"web"}',
  },
} as const satisfies Record<SystemName, Row>;

describe('a row', () => {
  it.each([
    ['sanctum', ['orders:read', '*'], undefined],
    ['better-auth', ['orders:read', 'orders:write'], { team: 'web' }],
    ['unkey-export', ['orders:read'], { team: 'web' }],
    ['keypal', ['orders:read', 'shop:1:read'], undefined],
    ['csv', ['GET:a.example/x', 'POST:a.example/x'], { team: 'web' }],
  ] as const)('of %s is read with all its fields', (system, permissions, metadata) => {
    expect(readerOf(system)(ROWS[system])).toEqual({
      account: '7',
      digest: 'ab',
      permissions,
      createdAt: APRIL,
      expiresAt: MAY,
      isDisabled: false,
      isRevoked: false,
      name: 'ci',
      metadata,
    });
  });

  it.each([
    ['sanctum', ['token', 'abilities', 'expires_at']],
    ['better-auth', ['key', 'permissions', 'enabled', 'expiresAt']],
    ['unkey-export', ['hash', 'permissions', 'enabled', 'expires', 'deleted_at_m']],
    ['keypal', ['keyHash', 'metadata']],
    ['csv', ['digest']],
  ] as const)('of %s requires the columns that decide what it allows', (system, columns) => {
    for (const column of columns) {
      const { [column]: _, ...row } = ROWS[system] as Row;
      expect(() => readerOf(system)(row), column).toThrow('is missing: select it');
    }
  });

  it.each(Object.keys(ROWS) as SystemName[])(
    'of %s can name its account in a column of its own',
    (system) => {
      expect(readerOf(system)({ ...ROWS[system], account: 'acme' }).account).toBe('acme');
    },
  );

  it.each([
    ['better-auth', { enabled: 0 }, { isDisabled: true }],
    ['better-auth', { enabled: 'f' }, { isDisabled: true }],
    ['better-auth', { enabled: null }, { isDisabled: false }],
    ['unkey-export', { enabled: 0 }, { isDisabled: true }],
    ['unkey-export', { deleted_at_m: 1_806_537_600_000 }, { isRevoked: true }],
    ['keypal', { metadata: { enabled: false } }, { isDisabled: true, isRevoked: false }],
    ['keypal', { metadata: { revokedAt: '2027-04-01T00:00:00Z' } }, { isRevoked: true }],
    ['csv', { enabled: 'false' }, { isDisabled: true }],
    ['csv', { revoked_at: '2027-04-01' }, 'revoked_at must be a time'],
    ['csv', { revoked_at: '2027-04-01 00:00:00' }, { isRevoked: true }],
  ] as const)('of %s is disabled or revoked by its columns: %j', (system, change, expected) => {
    const read = () => readerOf(system)({ ...ROWS[system], ...change });

    if (typeof expected === 'string') expect(read).toThrow(expected);
    else expect(read()).toMatchObject(expected);
  });

  it.each([
    ['better-auth', { permissions: '{"orders":"read"}' }, 'an object of lists'],
    ['better-auth', { permissions: 'orders' }, 'permissions is not JSON'],
    ['better-auth', { enabled: 'maybe' }, 'enabled must be true or false'],
    ['better-auth', { expiresAt: 'soon' }, 'expiresAt must be a time'],
    ['better-auth', { expiresAt: '2027-13-01T00:00:00Z' }, 'expiresAt must be a time'],
    ['better-auth', { metadata: '[1]' }, 'metadata must be a JSON object'],
    ['better-auth', { referenceId: 2 ** 53 }, 'a number that JSON rounds'],
    ['better-auth', { referenceId: true }, 'must be a text or a whole number'],
    ['sanctum', { abilities: '[1]' }, 'abilities must be a JSON list'],
    ['csv', { expires: '2027-05-01' }, 'there is another one'],
  ] as const)('of %s is refused with %j', (system, change, message) => {
    expect(() => readerOf(system)({ ...ROWS[system], ...change })).toThrow(message);
  });

  it('of sanctum must have the owner type of the first row, unless it names its account', () => {
    const read = readerOf('sanctum');
    const team = { ...ROWS.sanctum, tokenable_type: 'App\\Models\\Team' };

    expect(read(ROWS.sanctum).account).toBe('7');
    expect(() => read(team)).toThrow('tokenable_type is another one');
    expect(read({ ...team, account: 'team/7' }).account).toBe('team/7');
    expect(readerOf('sanctum')(team).account).toBe('7');
  });

  it('without permissions differs from a row with an empty list, which grants nothing', () => {
    const read = readerOf('better-auth');

    expect(read({ ...ROWS['better-auth'], permissions: null }).permissions).toBeUndefined();
    expect(read({ ...ROWS['better-auth'], permissions: '{}' }).permissions).toEqual([]);
    expect(readerOf('sanctum')({ ...ROWS.sanctum, abilities: '[]' }).permissions).toEqual([]);
  });

  it('can hold metadata that was encoded as JSON twice', () => {
    const metadata = JSON.stringify('{"team":"web"}');

    expect(readerOf('better-auth')({ ...ROWS['better-auth'], metadata }).metadata).toEqual({
      team: 'web',
    });
  });
});
