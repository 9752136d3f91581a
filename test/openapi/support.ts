import { expect } from 'vitest';
import { catalogFromOpenApi, type OpenApiOptions } from '../../src/openapi/index.ts';
import { ScopeError } from '../../src/scope/index.ts';

/** The entries as prefixes, unless the options say otherwise. */
export async function entries(documents: unknown, options?: OpenApiOptions): Promise<string[]> {
  return (await catalogFromOpenApi(documents, { granularity: 'prefix', ...options })).toArray();
}

/** The message of a refusal. Also checks its class, code, characters and that it has no cause. */
export async function refusal(documents: unknown, options?: OpenApiOptions): Promise<string> {
  const error = await entries(documents, options).then(
    (texts) => expect.unreachable(`it made ${texts.join(' ')}`),
    (reason: unknown) => reason,
  );
  if (!(error instanceof ScopeError)) throw error;
  expect(error.code).toBe('catalog_not_concrete');
  expect(error.message).toMatch(/^[ -~]+$/);
  expect(error.cause).toBeUndefined();
  return error.message;
}
