import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ScopeCatalog } from '../../src/scope/index.ts';
import { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { runs } from '../laws.ts';
import { K1 } from '../support.ts';

const written = fc.constantFrom('a', 'b', '{}');
const path = fc
  .tuple(fc.array(written, { minLength: 1, maxLength: 3 }), fc.constantFrom('', '$'))
  .map(([segments, end]) => `${segments.join('/')}${end}`);
const scope = path.map((text) => `GET:shop.example/${text}`);
const some = fc.uniqueArray(scope, { minLength: 1, maxLength: 4 });
const targets = fc.uniqueArray(
  fc
    .array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 3 })
    .map((segments) => `/${segments.join('/')}`),
  { minLength: 3, maxLength: 8 },
);

describe('a derived token', () => {
  it.each([
    ['read from the store', 0],
    ['served from the cache', 60_000],
  ])(
    'allows exactly what it and its parent both allow, with the routes of a catalog, %s',
    async (_, maxStaleMs) => {
      const law = fc.asyncProperty(
        some,
        some,
        some,
        targets,
        async (held, outer, entries, asked) => {
          const store = new MemoryTokenStore();
          const common = { store, keys: [K1], prefix: 'acme' };
          const free = new TokenService(common);
          const twin = await free.issue({ account: 'acme', scopes: held });
          const parent = await free.issue({ account: 'acme', scopes: [...held, ...outer] });
          const child = await free.derive(parent.value, { scopes: held });
          await free.modify('acme', parent.id, { scopes: outer });
          const catalog = ScopeCatalog.from(entries);
          const tokens = new TokenService({ ...common, catalog, cache: { maxStaleMs } });

          for (const target of [...asked, ...asked]) {
            const need = { method: 'GET', domain: 'shop.example', target };
            const allows = ({ value }: { value: string }) => tokens.allows(value, need);
            const isRight = (await allows(twin)) && (await allows(parent));
            expect([target, await allows(child)]).toEqual([target, isRight]);
          }
        },
      );
      await fc.assert(law, runs(0.2));
    },
  );

  it('is decided anew for a scope that comes again once it or an ancestor has changed', async () => {
    const [asked, other] = ['GET:shop.example/a', 'GET:shop.example/b'];
    const lists = fc.constantFrom([asked], [other], [asked, other]);
    const of = fc.constantFrom('root', 'parent', 'child');
    const changes = fc.array(fc.record({ of, scopes: lists }), { maxLength: 6 });
    const law = fc.asyncProperty(changes, async (steps) => {
      const options = { store: new MemoryTokenStore(), keys: [K1], prefix: 'acme' };
      const free = new TokenService(options);
      const tokens = new TokenService({ ...options, cache: { maxStaleMs: 60_000 } });
      const root = await tokens.issue({ account: 'acme', scopes: [asked, other] });
      const parent = await tokens.derive(root.value, { scopes: [asked, other] });
      const child = await tokens.derive(parent.value, { scopes: [asked, other] });
      const ids = { root: root.id, parent: parent.id, child: child.id };
      const answers = async () => {
        const need = { scope: asked };
        // By another service: a fresh read of this one would renew its cache.
        const fresh = await free.verify(child.value, need);
        const first = await tokens.verify(child.value, need);
        expect([first, tokens.verifySync(child.value, need)]).toEqual([fresh, fresh]);
      };
      await answers();
      for (const { of, scopes } of steps) {
        // A derived token gets no more than its parent has.
        await tokens.modify('acme', ids[of], { scopes }).catch(() => {});
        await answers();
      }
    });
    await fc.assert(law, runs(0.2));
  });

  it.each([
    ['read from the store', 0],
    ['served from the cache', 60_000],
  ])('is shown with the expiry of an ancestor that ends earlier, %s', async (_, maxStaleMs) => {
    const options = { store: new MemoryTokenStore(), keys: [K1], prefix: 'acme' };
    const tokens = new TokenService({ ...options, cache: { maxStaleMs } });
    const need = { scope: 'GET:shop.example/a' };
    const scopes = [need.scope];
    const parent = await tokens.issue({ account: 'acme', scopes });
    const child = await tokens.derive(parent.value, { scopes });
    const expiryOf = async () => (await tokens.verify(child.value, need)).token?.expiresAt;
    expect(await expiryOf()).toEqual(child.expiresAt);
    const { expiresAt } = await tokens.modify('acme', parent.id, { scopes, expiresIn: 3600 });

    expect(expiresAt.getTime()).toBeLessThan(child.expiresAt.getTime());
    expect([await expiryOf(), await expiryOf()]).toEqual([expiresAt, expiresAt]);
  });
});
