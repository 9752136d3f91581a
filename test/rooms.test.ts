import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FILES, IMPORTS, type Import, SRC } from './imports.ts';

const importsOf = (pattern: RegExp): Import[] => IMPORTS.filter(({ from }) => pattern.test(from));
const towards = (imports: readonly Import[], pattern: RegExp): Import[] =>
  imports.filter(({ to }) => pattern.test(to));

/** The rooms, each above those that it may import. A loose file is a room of its own. */
const ROOMS: readonly string[] = [
  'scope',
  'bounds.ts',
  'errors.ts',
  'time',
  'text',
  'token',
  'events.ts',
  'ports',
  'values',
  'limits',
  'usage',
  'inputs',
  'records',
  'access',
  'verbs',
  'service.ts',
  'requests',
  'openapi',
  'http',
  'mcp',
  'testing',
  'stores/shared',
  'stores/memory',
  'stores/sqlite',
  'stores/postgres',
  'stores/mysql',
  'stores/redis',
  'index.ts',
  'app/terminal',
  'app/console',
  'app/server',
  'app/cli',
];

/** What rooms never import, although it lies below them. */
const WALLS: readonly (readonly [from: RegExp, to: RegExp])[] = [
  // What decides knows no store, and no engine knows another one, or a rule.
  [/^access\//, /^node:/],
  [/^(?:verbs\/|service)/, /^node:/],
  [
    /^stores\/(\w+)\//,
    /^(?!(?:bounds|errors|events)\.ts$|(?:time|token|ports)\/|stores\/|node:|nanoid$)/,
  ],
  // A report says which version it is of.
  [
    /^testing\//,
    /^(?!(?:bounds|errors)\.ts$|(?:time|token|ports|testing)\/|node:|\.\.\/package\.json$)/,
  ],
  [/^openapi\//, /^(?:values|records|access|verbs|service)\b/],
  // It masks what it logs and marks callers, but it reads no values.
  [/^(?:http|mcp)\//, /^(?:values\/(?!(?:hmac|safe-url)\.ts$)|records|verbs|openapi)\b/],
  // The page runs in a browser: it has scopes, the client of the service, the
  // types of the wire and words for times, and calls for anything else.
  [
    /^app\/console\/page\//,
    /^(?!app\/console\/page\/|scope\/|time\/relative\.ts$|http\/(?:client|wire)\.ts$|preact\b)/,
  ],
];

/** What anybody may import of the library. */
const DOORS = /^(?:index|(?:scope|http|mcp|openapi|testing|stores\/\w+)\/index)\.ts$/;

/** What only the application may import besides. It uses the rest of the library as anybody would. */
const INNER_DOORS: readonly RegExp[] = [
  // Flags and messages name the limits.
  /^bounds\.ts$/,
  // What people write is read, refused and answered in the words of the library.
  /^(?:scope|text|time)\//,
  /^(?:inputs\/(?:instant|once|schemas|scope-hints)|limits\/addresses)\.ts$/,
  // The pages of the server are sent as the answers of the token handler are.
  /^http\/(?:errors|public-file|request|responses|node\/(?:listener|sending|turns)|oauth\/metadata)\.ts$/,
  // The sessions of the console are kept in a cookie.
  /^http\/sign-in\/session-cookie\.ts$/,
  // The page and the commands call the service with one client, and read what it writes.
  /^http\/(?:client|routes|wire)\.ts$/,
  // The commands for operators look into keys, values and stored records.
  /^(?:ports\/usage-store|records\/steps|token\/(?:id|record|revoked)|values\/(?:format|keys|value))\.ts$/,
  // Failures of a store are told in the words of the library, and metrics tell the version of the schema.
  /^(?:errors|ports\/outage-log|stores\/(?:redis\/layout|shared\/reasons|sqlite\/schema))\.ts$/,
  // The data folder is made as the store makes its own.
  /^stores\/sqlite\/folder\.ts$/,
];

/** The room of a file: its first folder, two in `app` and `stores`. */
function roomOf(file: string): string {
  return /^(?:app|stores)\/[^/]+|^[^/]+/.exec(file)?.[0] ?? file;
}

describe('imports', () => {
  it('are all found (the control)', () => {
    const has = (from: string, to: string, isTypeOnly: boolean) =>
      expect(IMPORTS).toContainEqual({ from, to, isTypeOnly });

    has('verbs/parts.ts', 'values/value.ts', false);
    has('records/reader.ts', 'ports/token-store.ts', true);
    has('verbs/list.ts', 'zod/mini', true);
    has('http/guard/guard.ts', 'service.ts', true);
    has('index.ts', 'service.ts', false);
    has('stores/memory/index.ts', 'errors.ts', false);
    has('scope/catalog.ts', 'scope/grammar.ts', false);
    has('values/keys.ts', 'node:crypto', false);
  });

  it('of scope/ stay within it, without any package or node: module', () => {
    expect(towards(importsOf(/^scope\//), /^(?!scope\/)/)).toEqual([]);
  });

  it('lead down, from room to room', () => {
    const climbs = IMPORTS.filter(({ from, to }) => {
      if (!FILES.includes(to) || roomOf(from) === roomOf(to)) return false;
      return ROOMS.indexOf(roomOf(to)) >= ROOMS.indexOf(roomOf(from));
    });

    expect(climbs).toEqual([]);
    expect([...new Set(FILES.map(roomOf))].sort()).toEqual([...ROOMS].sort());
  });

  it.each(WALLS)('of %s never lead to %s', (from, to) => {
    expect(towards(importsOf(from), to)).toEqual([]);
  });

  it('of the application use the doors of the library, and a few files more', () => {
    const inner = IMPORTS.filter(({ from, to }) => {
      if (!from.startsWith('app/')) return false;
      const isOurs = FILES.includes(to) && !to.startsWith('app/');
      return isOurs && !DOORS.test(to) && !INNER_DOORS.some((door) => door.test(to));
    });

    expect(inner).toEqual([]);
  });

  it('form no cycle, not even imports of types', () => {
    const next = new Map<string, string[]>();
    for (const { from, to } of IMPORTS) next.set(from, [...(next.get(from) ?? []), to]);
    const done = new Set<string>();
    const cycles: string[] = [];
    const walk = (file: string, path: readonly string[]): void => {
      if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file].join(' → '));
      if (path.includes(file) || done.has(file)) return;
      for (const to of next.get(file) ?? []) walk(to, [...path, file]);
      done.add(file);
    };
    for (const file of next.keys()) walk(file, []);

    expect(cycles).toEqual([]);
  });
});

describe('the files', () => {
  it('do more than forward, except for an index', () => {
    const rest = (file: string) =>
      readFileSync(join(SRC, file), 'utf8')
        .replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
        .replace(/^(?:import|export)\b[^;]*\bfrom\s*'[^']+'[^;]*;/gm, '')
        .trim();
    const forwarding = FILES.filter((file) => rest(file) === '');

    expect(forwarding.sort()).toEqual(
      [
        'index.ts',
        'app/console/index.ts',
        'http/index.ts',
        'mcp/index.ts',
        'scope/index.ts',
        'testing/index.ts',
      ].sort(),
    );
  });

  it('have no vague names such as utils', () => {
    const vague = /(?:^|[/-])(?:utils?|helpers?|common|misc|lib)(?:[/.-]|$)/;

    expect(FILES.filter((file) => vague.test(file))).toEqual([]);
    expect(vague.test('stores/sql-utils.ts')).toBe(true);
  });
});
