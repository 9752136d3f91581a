// Prisma 7: issue a token in the transaction that adds your own row, so that both are stored, or neither.
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { generateKey, TokenService } from 'tokenwright';
import { fromPrisma, migrate, PostgresTokenStore } from 'tokenwright/postgres';
import { PrismaClient } from './generated/client.ts';

const connectionString = process.env['DATABASE_URL'];
// The store works on pg, outside of your transactions: a small pool of its own is enough.
const pool = new pg.Pool({ connectionString, max: 5 });
await migrate(pool);
await pool.query('CREATE TABLE IF NOT EXISTS "User" (name text PRIMARY KEY)'); // as prisma migrate does
const tokens = new TokenService({
  store: new PostgresTokenStore(pool),
  keys: [generateKey()],
  prefix: 'acme',
});
const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString }) });
const scopes = ['GET:shop.example/orders'];

async function signUp(name: string, isPaid: boolean): Promise<string> {
  return prisma.$transaction(async (tx) => {
    await tx.user.create({ data: { name } });
    const { value } = await tokens.in(fromPrisma(tx)).issue({ account: name, scopes });
    if (!isPaid) throw new Error('no payment');
    return value;
  });
}

const value = await signUp('ada', true);
console.log((await tokens.verify(value, { scope: 'GET:shop.example/orders' })).ok); // true
await signUp('bob', false).catch((error: Error) => console.log(error.message)); // no payment
console.log((await tokens.list({ account: 'bob' })).tokens.length); // 0

await tokens.revokeAll('ada');
await prisma.user.delete({ where: { name: 'ada' } });
await tokens.close();
await Promise.all([prisma.$disconnect(), pool.end()]);
