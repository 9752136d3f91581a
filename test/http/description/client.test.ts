import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';
import ts from 'typescript';
import { beforeAll, describe, expect, it } from 'vitest';
import { basic, EVERYTHING, ORDERS, setUp } from '../support.ts';

const ROOT = new URL('../../..', import.meta.url).pathname;

const CLIENT = `
import createClient from 'openapi-fetch';
import type { paths } from './service.js';

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };

export async function run(fetch: (request: Request) => Promise<Response>, basic: string) {
  const baseUrl = 'http://localhost';
  const client = createClient<paths>({ baseUrl, fetch, headers: { authorization: basic } });
  const open = createClient<paths>({ baseUrl, fetch });
  const body = { scopes: ['${ORDERS}'], ttl: 60, name: 'ci', metadata: { team: ['a'] } };

  const issued = await client.POST('/token', { body });
  if (issued.data === undefined) throw new Error(issued.error.code);
  const path: { token: string } = { token: issued.data.id };
  const expire: number = issued.data.expire;
  const listed = await client.GET('/token', { params: { query: { limit: 1, match: 'covers', scope: '${ORDERS}' } } });
  const listedId: string | undefined = listed.data?.data[0]?.id;
  const bearer = { authorization: 'Bearer ' + issued.data.token };
  const derived = await open.POST('/token/derive', { body: { scopes: ['${ORDERS}'], ttl: 30 }, headers: bearer });
  const parent: string | undefined = derived.data?.parent;
  const shown = await client.GET('/token/{token}', { params: { path } });
  const state: 'active' | 'suspended' | 'expired' | 'revoked' | 'ancestor_ended' | undefined = shown.data?.data[0]?.state;
  const header = { 'If-Match': shown.response.headers.get('etag') ?? '' };
  const replaced = await client.PUT('/token/{token}', { params: { path, header }, body: { scopes: ['${ORDERS}'], expire } });
  const prolonged = await client.PATCH('/token/{token}', { params: { path }, body: { expiresIn: '30d' } });
  const dated = await client.PATCH('/token/{token}', { params: { path }, body: { expire: '2100-06-01T12:00:00Z' } });
  const patched = await client.PATCH('/token/{token}', { params: { path }, body: { name: null } });
  const conflict = await client.PATCH('/token/{token}', { params: { path, header }, body: { name: 'x' } });
  const rotated = await client.POST('/token/{token}/rotate', { params: { path }, body: { activate: 'first-use', graceSeconds: 1 } });
  const bare = await client.POST('/token/{token}/rotate', { params: { path } });
  const used = await client.GET('/token/{token}/usage', { params: { path } });
  const lastUsed: number | null | undefined = used.data?.data.scopes[0]?.lastUsed;
  const advised = await client.GET('/token/{token}/advice', { params: { path, query: { unusedForDays: 90 } } });
  const unused: string[] | undefined = advised.data?.data.unused;
  const explained = await client.POST('/token/{token}/explain', { params: { path }, body: { method: 'GET', domain: 'shop.example', target: '/' } });
  const scoped = await client.POST('/token/{token}/explain', { params: { path }, body: { scope: '${ORDERS}' } });
  const allowed: boolean | undefined = scoped.data?.data.allowed;
  const reviewed = await client.GET('/review', { params: { query: { unusedForDays: 30 } } });
  const codes: string[] | undefined = reviewed.data?.data.map(({ code }) => code);
  const scopes = await client.GET('/scopes');
  const [first] = scopes.data?.data ?? [];
  const text: string | undefined = typeof first === 'string' ? first : first?.scope;
  const introspected = await client.POST('/introspect', { body: { token: bare.data?.token ?? '' }, headers: FORM });
  const active: boolean | undefined = introspected.data?.active;
  const exchanged = await open.POST('/oauth/token', {
    body: { grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', subject_token: bare.data?.token ?? '', subject_token_type: 'urn:ietf:params:oauth:token-type:access_token', audience: ['shop.example'], ttl: 900 },
    headers: FORM,
    bodySerializer: ({ audience, ...form }) => new URLSearchParams({ ...form, audience: audience?.[0] ?? '' } as unknown as Record<string, string>).toString(),
  });
  const seconds: number | undefined = exchanged.data?.expires_in;
  const revoked = await client.DELETE('/token/{token}', { params: { path } });
  const gone = await client.DELETE('/token/{token}', { params: { path } });
  const byValue = await open.POST('/revoke', { body: { token: 'x' }, headers: FORM, parseAs: 'text' });
  const described = await open.GET('/openapi.json');
  const calls = { issued, derived, listed, shown, replaced, patched, rotated, bare, used, advised, explained, scoped, reviewed, scopes, introspected, exchanged, revoked, byValue, described };
  if (prolonged.error || dated.error || seconds !== 900) throw new Error('refused');
  return {
    statuses: Object.entries(calls).map(([name, { response }]) => [name, response.status]),
    found: { isChild: parent === path.token, listedId, state, first, lastUsed, unused, allowed, codes, active, id: path.token },
    refused: [conflict.error?.code, gone.error?.code, gone.error?.success],
  };
}
`;

/** Calls that the types must reject, as the service would. */
const WRONG: [what: string, call: string][] = [
  ['no scopes', `client.POST('/token', { body: { ttl: 60 } })`],
  ['a lifetime as a text', `client.POST('/token', { body: { scopes: ['x'], ttl: '60' } })`],
  [
    'an expiry as a list',
    `client.PUT('/token/{token}', { params: { path: { token: 'x' } }, body: { scopes: ['x'], expire: [1] } })`,
  ],
  [
    'an expiry as a number, for a new token',
    `client.POST('/token', { body: { scopes: ['x'], expire: 4102444860 } })`,
  ],
  ['no body', `client.PUT('/token/{token}', { params: { path: { token: 'x' } } })`],
  ['an unknown match', `client.GET('/token', { params: { query: { match: 'like' } } })`],
  ['no token in the path', `client.GET('/token/{token}')`],
  ['an unknown path', `client.GET('/tokens')`],
  ['a method that is not allowed', `client.PUT('/scopes')`],
  ['no token in the form', `client.POST('/introspect', { body: {} })`],
  ['no grant in the form', `client.POST('/oauth/token', { body: { subject_token: 'x' } })`],
];

describe('a client generated from the OpenAPI document', () => {
  let folder: string;
  let operations: number;
  beforeAll(async () => {
    folder = mkdtempSync(join(ROOT, 'test/node_modules/.tokenwright-client-'));
    const { handler } = setUp(EVERYTHING);
    const description = await handler(new Request('http://localhost/openapi.json'));
    const document = await description.text();
    operations = document.match(/"operationId":\s*"/g)?.length ?? 0;
    const types = astToString(await openapiTS(document, { silent: true }));
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    writeFileSync(join(folder, 'service.ts'), types);
    writeFileSync(join(folder, 'client.ts'), CLIENT);
    const calls = [...WRONG.map(([, call]) => call), "client.GET('/scopes')"];
    writeFileSync(join(folder, 'wrong.ts'), withClient(calls));
    return () => rmSync(folder, { recursive: true });
  });

  it('compiles', () => {
    expect(faultsOf('client.ts')).toEqual([]);
  });

  it('fails to compile for each wrong call and for no other', () => {
    const lines = new Set(faultsOf('wrong.ts').map(({ line }) => line));

    expect([...lines]).toEqual(WRONG.map((_, i) => i + 3));
  });

  it('can make every call of the service', async () => {
    faultsOf('client.ts');
    const { run } = await import(pathToFileURL(join(folder, 'client.js')).href);
    const { handler } = setUp(EVERYTHING);

    const { statuses, found, refused } = await run(handler, basic('ada'));

    // Rotation and explanation are each called in two ways.
    expect(statuses).toHaveLength(operations + 2);
    expect(statuses.filter(([, status]: [string, number]) => status !== 200)).toEqual([]);
    expect(found).toEqual({
      id: found.id,
      isChild: true,
      listedId: found.id,
      state: 'active',
      first: expect.stringContaining(':'),
      lastUsed: null,
      unused: [],
      allowed: true,
      codes: [],
      active: true,
    });
    expect(refused).toEqual(['version_conflict', 'not_found', false]);
  });

  it.each(WRONG.filter(([what]) => /scopes|lifetime|expiry|match/.test(what)))(
    'is refused by the service, too, with %s',
    async (_, call) => {
      const { handler } = setUp(EVERYTHING);
      const { default: createClient } = await import('openapi-fetch');
      const client = createClient<Record<string, never>>({
        baseUrl: 'http://localhost',
        fetch: handler,
        headers: { authorization: basic('ada') },
      });

      const { response } = await new Function('client', `return ${call}`)(client);

      expect(Math.floor(response.status / 100)).toBe(4);
    },
  );

  /** One call per line, starting at the fourth line. */
  function withClient(calls: readonly string[]): string {
    const head = `import createClient from 'openapi-fetch';
import type { paths } from './service.js';
const client = createClient<paths>({ baseUrl: 'http://localhost' });`;
    return [head, ...calls.map((call) => `await ${call};`)].join('\n');
  }

  /** The compiler diagnostics of a file; also writes the JavaScript beside it. */
  function faultsOf(file: string): { readonly line: number; readonly text: string }[] {
    const program = ts.createProgram([join(folder, file)], {
      target: ts.ScriptTarget.ES2023,
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      strict: true,
      skipLibCheck: true,
      types: ['node'],
      typeRoots: [join(ROOT, 'node_modules/@types')],
    });
    program.emit();
    return ts.getPreEmitDiagnostics(program).map(({ file: source, start = 0, messageText }) => ({
      line: source?.getLineAndCharacterOfPosition(start).line ?? -1,
      text: ts.flattenDiagnosticMessageText(messageText, ' '),
    }));
  }
});
