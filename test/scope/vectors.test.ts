import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  meet,
  overlaps,
  readRequest,
  ScopeCatalog,
  ScopeError,
  ScopeSet,
  safeParseScope,
} from '../../src/scope/index.ts';

interface Vector {
  readonly id: string;
  readonly op: 'parse' | 'covers' | 'overlaps' | 'matchesRequest' | 'expand';
  // biome-ignore lint/suspicious/noExplicitAny: the input differs per operation
  readonly input: any;
  readonly expect: unknown;
  readonly why: string;
}

const file = new URL('../../../shared/vectors/scopes.json', import.meta.url);
const vectors: readonly Vector[] = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : [];

describe.skipIf(vectors.length === 0)('the shared examples', () => {
  it.each(vectors)('$id $op: $why', ({ op, input, expect: expected }) => {
    expect(run[op](input)).toEqual(expected);
  });
});

const run: Record<Vector['op'], (input: Vector['input']) => unknown> = {
  parse(input) {
    const reading = safeParseScope(input);
    if (reading.ok) {
      const { method, domain, path } = reading.scope;
      return { ok: true, canonical: reading.scope.toString(), method, domain, path };
    }
    const { error, suggestion } = reading;
    return { ok: false, error, ...(suggestion !== undefined && { suggestion }) };
  },
  covers({ scope, scopes = [scope], other }) {
    return ScopeSet.from(scopes).covers(other);
  },
  overlaps({ a, b, scopes, filter }) {
    if (scopes !== undefined) return ScopeSet.from(scopes).overlaps(filter);
    return { overlaps: overlaps(a, b), meet: meet(a, b)?.toString() ?? null };
  },
  matchesRequest({ scopes, catalog, ...request }) {
    const known = catalog && ScopeCatalog.from(catalog);
    const reading = known ? known.readRequest(request) : readRequest(request);
    if (!reading.ok) return { allow: false, reason: reading.reason };
    const decision = ScopeSet.from(scopes).allows(reading.request);
    const entry = known?.attribute(request)?.toString();
    return {
      ...(decision.allowed
        ? { allow: true, by: decision.by.toString() }
        : { allow: false, reason: decision.reason }),
      ...(entry !== undefined && { entry }),
    };
  },
  expand({ requested, catalog }) {
    try {
      const { granted, narrowed } = ScopeCatalog.from(catalog).expand(requested);
      return { ok: true, granted, ...(narrowed.length > 0 && { narrowed }) };
    } catch (error) {
      if (!(error instanceof ScopeError)) throw error;
      const { code, scopes } = error;
      const named = scopes !== undefined && code !== 'catalog_not_concrete';
      return { ok: false, error: code, ...(named && { scopes }) };
    }
  },
};
