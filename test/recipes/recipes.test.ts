import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import pg from 'pg';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { generateKey, TokenService } from '../../src/index.ts';
import { migrate, PostgresTokenStore } from '../../src/stores/postgres/index.ts';

const url = inject('servers').postgres;
const folder = new URL('.', import.meta.url);
const recipes = ['kysely.mjs', 'drizzle.mjs', 'postgres-js.mjs', 'prisma.mjs'];
const guide = readFileSync(new URL('../../docs/guides/transactions.md', import.meta.url), 'utf8');

/** Installs the libraries once. Without a network their recipes are skipped, except in CI. */
function isInstalled(): boolean {
  const isThere = () => existsSync(new URL('node_modules/kysely/package.json', folder));
  if (isThere()) return true;
  try {
    const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
    execFileSync('npm', ['ci', ...flags], { cwd: folder, timeout: 100_000, stdio: 'pipe' });
  } catch (error) {
    if (process.env['CI'] === 'true') throw error;
    process.stderr.write(
      'recipes: the libraries cannot be installed, so their recipes are skipped\n',
    );
  }
  return isThere();
}

interface Recipe {
  addUser(host: {
    readonly url: string;
    readonly pool: pg.Pool;
    readonly prisma: object;
    readonly tokens: TokenService;
    readonly table: string;
    readonly name: string;
    readonly fails: boolean;
  }): Promise<{ readonly value: string }>;
}

/** The OID of the type void, which Prisma cannot read. */
const VOID = 2278;

/**
 * The part of Prisma that the recipe uses. The real client is code that Prisma generates with a program
 * that it downloads, so the recipe was tried with it by hand.
 */
function prismaLike(pool: pg.Pool, table: string) {
  const transactionOn = (client: pg.PoolClient) => ({
    user: {
      create: ({ data }: { readonly data: { readonly name: string } }) =>
        client.query(`INSERT INTO ${table} VALUES ($1)`, [data.name]),
    },
    async $queryRawUnsafe(text: string, ...values: unknown[]) {
      const { rows, fields } = await client.query(text, values);
      if (!fields.some(({ dataTypeID }) => dataTypeID === VOID)) return rows;
      throw new Error("Failed to deserialize column of type 'void'");
    },
  });
  return {
    async $transaction<Result>(
      work: (tx: ReturnType<typeof transactionOn>) => Promise<Result>,
    ): Promise<Result> {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        const result = await work(transactionOn(client));
        await client.query('COMMIT');
        return result;
      } catch (error) {
        await client.query('ROLLBACK');
        throw error;
      } finally {
        client.release();
      }
    },
  };
}

async function setUp() {
  const pool = new pg.Pool({ connectionString: url as string, max: 3 });
  const suffix = randomBytes(6).toString('hex');
  const [own, tables] = [`users_${suffix}`, `acme_${suffix}`];
  await migrate(pool, { tables });
  await pool.query(`CREATE TABLE ${own} (name text)`);
  onTestFinished(async () => {
    await pool.query(`DROP TABLE ${own}, ${tables}_tokens, ${tables}_usage, ${tables}_leases`);
    await pool.end();
  });
  const store = new PostgresTokenStore(pool, { tables });
  const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
  const prisma = prismaLike(pool, own);
  const host = { url: url as string, pool, prisma, tokens, table: own };
  const names = async () =>
    (await pool.query(`SELECT name FROM ${own}`)).rows.map(({ name }) => name);
  return { tokens, host, names };
}

describe.skipIf(url === undefined)('the recipes for transactions', () => {
  it.skipIf(url === undefined || !isInstalled()).each(recipes)(
    '%s stores both the user and the token, or neither of them',
    async (file) => {
      const { addUser }: Recipe = await import(new URL(file, folder).href);
      const { tokens, host, names } = await setUp();

      const { value } = await addUser({ ...host, name: 'ada', fails: false });
      const refused = addUser({ ...host, name: 'bob', fails: true });
      await expect(refused).rejects.toThrow('rolled back');

      expect(await names()).toEqual(['ada']);
      const scope = 'GET:shop.example/orders';
      expect(await tokens.verify(value, { scope })).toMatchObject({ ok: true });
      expect((await tokens.list({ account: 'bob' })).tokens).toEqual([]);
    },
  );
});

describe.skipIf(url === undefined)('a transaction of Prisma', () => {
  it('can patch and revoke tokens, although Prisma cannot read the void result of pg_notify', async () => {
    const { tokens, host } = await setUp();
    const { id } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });

    await host.prisma.$transaction(async (tx) => {
      const query = async ({ text, values = [] }: { text: string; values?: unknown[] }) => ({
        rows: await tx.$queryRawUnsafe(text, ...values),
      });
      const inside = tokens.in({ query });
      await inside.patch('ada', id, { name: 'ci' });
      await inside.revoke('ada', id);
      await expect(tx.$queryRawUnsafe("SELECT pg_notify('a', 'b')")).rejects.toThrow('void');
    });

    expect((await tokens.list({ account: 'ada' })).tokens).toEqual([]);
  });
});

describe('the guide to transactions', () => {
  const squeeze = (text: string) => text.replaceAll(/\s+/g, ' ').trim();
  const code = readdirSync(folder)
    .filter((name) => name.endsWith('.mjs'))
    .map((name) => squeeze(readFileSync(new URL(name, folder), 'utf8')));
  const shown = [...guide.matchAll(/^```typescript\n(.*?)^```$/gms)].map(([, text = '']) => text);

  it('shows only code of the recipes that run here', () => {
    expect(shown).toHaveLength(recipes.length);
    for (const part of shown) {
      expect(code.filter((text) => text.includes(squeeze(part)))).toHaveLength(1);
    }
  });

  it('no longer matches if a part is changed in one place (the control)', () => {
    const [part = ''] = shown.map((text) => squeeze(text).replace('inside', 'outside'));
    expect(code.filter((text) => text.includes(part))).toEqual([]);
  });
});
