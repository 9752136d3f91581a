/** Prisma with `@prisma/adapter-pg`, separate from the pool of the store. */
export async function addUser({ prisma, tokens, name, fails }) {
  return await prisma.$transaction(async (tx) => {
    await tx.user.create({ data: { name } });
    const connection = {
      query: async ({ text, values = [] }) => ({ rows: await tx.$queryRawUnsafe(text, ...values) }),
    };
    const inside = tokens.in(connection);
    const token = await inside.issue({ account: name, scopes: ['GET:shop.example/orders'] });
    if (fails) throw new Error('rolled back');
    return token;
  });
}
