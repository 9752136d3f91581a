// Let people choose "Orders: read" instead of endpoints: words, permissions and presets.
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { readOpenApi } from 'tokenwright/openapi';
import { ScopeCatalog } from 'tokenwright/scope';

// Summaries and tags of an OpenAPI document become words, which explain entries and decide nothing.
const { catalog } = await readOpenApi({
  openapi: '3.1.0',
  servers: [{ url: 'https://shop.example' }],
  tags: [{ name: 'orders', description: 'What was sold' }],
  paths: {
    '/orders': {
      get: { summary: 'List orders', tags: ['orders'] },
      post: { summary: 'Create an order', tags: ['orders'] },
    },
    '/invoices/{number}': { get: { summary: 'Download an invoice', tags: ['billing'] } },
  },
});
console.log(catalog.words('POST:shop.example/orders$')?.summary); // Create an order

// A permission is a tag with its scopes for reading, and for reading and writing.
const [orders, billing] = catalog.permissions();
console.log(orders?.tag, orders?.read.length, orders?.write.length); // orders 1 2
console.log(billing?.tag, ...(billing?.read ?? [])); // billing GET:shop.example/invoices/{}$

// Your own permissions replace those of the tags. They may have wildcards.
const own = ScopeCatalog.from(catalog, {
  permissions: [
    {
      name: 'Sales',
      description: 'Orders and their invoices',
      levels: { read: ['GET:shop.example/*'], write: ['*:shop.example/*'] },
    },
  ],
});
console.log(own.permissions()[0]?.tag, own.permissions()[0]?.read.length); // Sales 2

// Presets are named lists, offered first in the console and on the command line.
const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  catalog: own,
  presets: [{ name: 'CI', scopes: ['GET:shop.example/orders'], ttlSeconds: 86_400 }],
});
const { permissions, presets } = await tokens.scopeDetails('ada');
console.log(permissions.length, presets.map(({ name }) => name).join(', ')); // 1 CI, Read only

// A token holds scopes, not a permission: if the permission changes, the token stays as it is.
const { scopes } = await tokens.issue({ account: 'ada', scopes: permissions[0]?.read ?? [] });
console.log(scopes.length, scopes[0]); // 2 GET:shop.example/invoices/{}$
