import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { inspect } from 'node:util';
import { Cluster, Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { generateAPIKey } from 'prefixed-api-key';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { storeTarget } from '../../src/app/server/stores/open.ts';
import type { TokenStore } from '../../src/ports/token-store.ts';
import { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { formats } from '../../src/values/foreign.ts';
import { newFolder } from '../app/cli/support.ts';
import { engines, newStore } from '../app/server/databases.ts';
import type { Engine } from '../servers.ts';
import { K1, SCOPE, spoiled } from '../support.ts';

const servers = inject('servers');
const NEED = { scope: SCOPE };
const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';

/** Reads every text and every byte that the store holds. */
type Dump = () => Promise<readonly (string | Buffer)[]>;

interface DumpableStore {
  readonly store: TokenStore;
  readonly dump: Dump;
}

async function inMemory(): Promise<DumpableStore> {
  const store = new MemoryTokenStore();
  const dump = async () => {
    const { records } = await store.scan({ limit: 1000 });
    const shown = inspect(store, { depth: Infinity, showHidden: true, maxStringLength: null });
    return [...records.flatMap(cellsOf), ...(shown.match(/[\w+/=|-]{16,}/g) ?? [])];
  };
  return { store, dump };
}

async function inSqlite(): Promise<DumpableStore> {
  const data = newFolder();
  const { store, close } = await storeTarget({ data, store: undefined, tables: undefined }).open();
  onTestFinished(close);
  const dump = async () => {
    const database = new DatabaseSync(join(data, 'tokens.db'), { readOnly: true });
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
    const rows = tables.flatMap(({ name }) => database.prepare(`SELECT * FROM "${name}"`).all());
    database.close();
    return rows.flatMap(cellsOf);
  };
  return { store, dump };
}

const DUMPS: Readonly<Record<Engine, (name: string) => Promise<readonly (string | Buffer)[]>>> = {
  async postgres(tables) {
    const pool = new Pool({ connectionString: servers.postgres });
    const { rows } = await pool.query(`SELECT * FROM ${tables}_tokens`);
    await pool.end();
    return rows.flatMap(cellsOf);
  },
  async mariadb(tables) {
    const pool = createPool({ uri: servers.mariadb ?? '' });
    const [rows] = await pool.query(`SELECT * FROM ${tables}_tokens`);
    await pool.end();
    return (rows as object[]).flatMap(cellsOf);
  },
  async redis(prefix) {
    const client = new Redis(servers.redis ?? '');
    const cells = await keysIn(client, prefix);
    client.disconnect();
    return cells;
  },
  async redisCluster(prefix) {
    const [, nodes = ''] = servers.redisCluster?.split('://') ?? [];
    const cluster = new Cluster(nodes.split(',').map((node) => `redis://${node}`));
    await cluster.ping();
    const cells = await Promise.all(cluster.nodes('master').map((node) => keysIn(node, prefix)));
    cluster.disconnect();
    return cells.flat();
  },
};

async function keysIn(client: Redis, prefix: string): Promise<(string | Buffer)[]> {
  const keys = await client.keys(`*${prefix}*`);
  const cells = await Promise.all(
    keys.map(async (key): Promise<readonly unknown[]> => {
      const type = await client.type(key);
      if (type === 'hash') return Object.entries(await client.hgetallBuffer(key)).flat();
      if (type === 'zset') return client.zrangeBuffer(key, '0', '-1');
      if (type === 'set') return client.smembersBuffer(key);
      if (type === 'string') return [await client.getBuffer(key)];
      throw new Error(`no dump of ${type}`);
    }),
  );
  return [...keys, ...cells.flatMap(cellsOf)];
}

async function onServer(engine: Engine): Promise<DumpableStore> {
  const { url, tables } = newStore(engine);
  const opened = await storeTarget({ store: url, tables, data: '' }).open();
  await opened.migrate?.();
  onTestFinished(opened.close);
  return { store: opened.store, dump: () => DUMPS[engine](tables) };
}

function cellsOf(row: object): (string | Buffer)[] {
  return Object.values(row).flatMap((cell: unknown) => {
    if (typeof cell === 'string') return [cell];
    if (cell instanceof Uint8Array) return [Buffer.from(cell)];
    return typeof cell === 'object' && cell !== null ? cellsOf(cell) : [];
  });
}

interface OldValue {
  readonly format: string;
  readonly value: string;
  /** The part that the old system hashed. */
  readonly part: string;
}

const drawn = (length: number, alphabet: string) =>
  Array.from(randomBytes(length), (byte) => alphabet[byte % alphabet.length]).join('');

/** One value of each old system. */
async function oldValues(): Promise<OldValue[]> {
  const digits = '0123456789';
  const sanctum = drawn(40, LETTERS + digits);
  const whole = (format: string, value: string) => ({ format, value, part: value });
  const prefixed = await generateAPIKey({ keyPrefix: 'mycompany' });
  return [
    { format: 'sanctum', value: `12|${sanctum}`, part: sanctum },
    { format: 'prefixed-api-key', value: prefixed.token ?? '', part: prefixed.longToken ?? '' },
    whole('better-auth', `old_${drawn(64, LETTERS)}`),
    whole('unkey', `unk_${drawn(22, '123456789ABCDEFGHJKLMNPQRSTUVWXYZ')}`),
    whole('keypal', `sk_${drawn(32, LETTERS + digits)}`),
    whole('own', `key-${randomBytes(32).toString('hex')}`),
  ];
}

const FOREIGN = [
  formats.sanctum(),
  formats.betterAuth({ prefix: 'old_' }),
  formats.unkey({ prefix: 'unk' }),
  formats.prefixedApiKey({ prefix: 'mycompany' }),
  formats.sha256({ name: 'keypal', pattern: /sk_[0-9A-Za-z]{32}/ }),
  // The most careless format: its pattern matches nearly anything.
  formats.sha256({ name: 'own', pattern: /[\w+/=|-]{16,200}/ }),
];

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest();
const SPELLINGS = ['hex', 'base64', 'base64url'] as const;

/** What somebody who has read a cell could present: its text, its bytes, and hashes of both. */
function presentableOf(cell: string | Buffer): string[] {
  // Some databases return text as bytes.
  const text = typeof cell === 'string' ? cell : cell.toString('latin1');
  const texts = [text, ...(text.match(/[\w+/=|-]{16,}/g) ?? [])];
  const bytes = [
    ...(typeof cell === 'string' ? [] : [cell]),
    ...texts.map((text) => Buffer.from(text)),
    ...texts.flatMap((text) => SPELLINGS.map((spelling) => Buffer.from(text, spelling))),
  ].filter(({ length }) => length > 0);
  const spelled = [...bytes, ...bytes.map(sha256)].flatMap((each) => [
    ...SPELLINGS.map((spelling) => each.toString(spelling)),
    each.toString('latin1'),
  ]);
  const all = [...texts, ...spelled];
  const starts = ['1|', 'old_', 'unk_', 'mycompany_a_', 'sk_', 'key-'];
  return [...all, ...all.flatMap((text) => starts.map((start) => start + text))];
}

async function acceptedOf(tokens: TokenService, values: Iterable<string>): Promise<string[]> {
  const all = [...new Set(values)];
  const accepted: string[] = [];
  for (let start = 0; start < all.length; start += 500) {
    const some = all.slice(start, start + 500);
    const verdicts = await Promise.all(some.map((value) => tokens.allows(value, NEED)));
    accepted.push(...some.filter((_, at) => verdicts[at]));
  }
  return accepted;
}

async function importInto({ store }: DumpableStore) {
  const tokens = new TokenService({ store, keys: [K1], prefix: 'acme', foreign: FOREIGN });
  const olds = await oldValues();
  const expiresAt = new Date(Date.now() + 86_400_000);
  const report = await tokens.importMany(
    olds.map(({ format, part }) => ({
      ...{ account: 'ada', format, scopes: [SCOPE], expiresAt, name: format },
      digest: sha256(part).toString('hex'),
    })),
  );
  expect(report).toMatchObject({ imported: olds.length, refused: 0 });
  return { tokens, olds };
}

const STORES: readonly (readonly [string, () => Promise<DumpableStore>])[] = [
  ['memory', inMemory],
  ['SQLite', inSqlite],
  ...engines.map((engine) => [engine, () => onServer(engine)] as const),
];

describe.each(STORES)('imported tokens in %s', (_, open) => {
  it('are accepted by their original value, and by nothing that the store holds', {
    timeout: 120_000,
  }, async () => {
    const opened = await open();
    const { tokens, olds } = await importInto(opened);
    const dump = await opened.dump();
    const bytes = Buffer.concat(
      dump.map((cell) => Buffer.concat([Buffer.from(cell as string), NUL])),
    );
    const traces = olds.flatMap(({ value, part }) => [
      ...[value, part].map((text) => Buffer.from(text)),
      ...[value, part].map(sha256),
      ...[value, part].flatMap((text) =>
        SPELLINGS.map((as) => Buffer.from(sha256(text).toString(as))),
      ),
    ]);

    expect(dump.length).toBeGreaterThan(olds.length * 5);
    expect(traces.filter((trace) => bytes.includes(trace))).toEqual([]);
    expect(await acceptedOf(tokens, dump.flatMap(presentableOf))).toEqual([]);
    const values = olds.map(({ value }) => value);
    expect(await acceptedOf(tokens, values)).toEqual(values);
  });

  it('are not accepted by a digest of the old system', async () => {
    const { tokens, olds } = await importInto(await open());
    const digests = olds.map(({ part }) => sha256(part));

    expect(await acceptedOf(tokens, digests.flatMap(presentableOf))).toEqual([]);
  });

  it('are accepted by a value that was stored by mistake (the control)', async () => {
    const opened = await open();
    const { tokens, olds } = await importInto(opened);
    const [{ id } = { id: '' }] = (await tokens.list({ account: 'ada' })).tokens;
    const value = olds[2]?.value ?? '';
    await tokens.patch('ada', id, { metadata: { note: `was ${value}` } });

    const accepted = await acceptedOf(tokens, (await opened.dump()).flatMap(presentableOf));
    expect(accepted.includes(value)).toBe(true);
  });
});

const NUL = Buffer.from([0]);

describe('the original value of an imported token', () => {
  it('is refused if it is altered, shortened or extended at any position', {
    timeout: 60_000,
  }, async () => {
    const { tokens, olds } = await importInto(await inMemory());
    // Sanctum does not hash the number before the bar, and prefixed-api-key does not hash the short token.
    const same = /^(?:[0-9A-Za-z-]{1,36}\||mycompany_[0-9A-Za-z]{1,64}_)/;
    for (const { value, part } of olds) {
      const altered = spoiled(value).filter((text) => text.replace(same, '') !== part);

      expect(await acceptedOf(tokens, altered)).toEqual([]);
    }
  });
});
