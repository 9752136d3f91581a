import { describe, expect, it } from 'vitest';
import { ApiError, type ClientOptions, ServiceClient, tokenOf } from '../../src/http/client.ts';
import { ORDERS, setUp } from './support.ts';

const session = () => 'ada';

/** A client of a handler in this process. */
function clientOf(options: Parameters<typeof setUp>[0] = {}) {
  const { handler, ...others } = setUp({ session, ...options });
  const client = new ServiceClient({
    send: (path, init) => {
      const headers = { ...init.headers, 'x-tokenwright': 'test' };
      return handler(new Request(`http://localhost${path}`, { ...init, headers }));
    },
  });
  return { client, ...others };
}

function answering(body: unknown, init: ResponseInit = {}): Pick<ClientOptions, 'send'> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return { send: async () => new Response(text, init) };
}

async function failureOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe('the client', () => {
  it('makes calls of each kind', async () => {
    const { client } = clientOf();

    const token = tokenOf(await client.call('POST /token', { body: { scopes: [ORDERS] } }));
    const list = await client.call('GET /token', { query: { limit: 1, name: undefined } });
    const call = { token: token.id, body: { name: 'ci' }, ifVersion: 1 };
    const changed = await client.call('PATCH /token/{token}', call);
    const conflict = await failureOf(client.call('PATCH /token/{token}', call));
    await client.call('DELETE /token/{token}', { token: token.id, ifVersion: 2 });

    expect(token).not.toHaveProperty('success');
    expect(list.data).toMatchObject([{ id: token.id }]);
    expect(changed.data).toMatchObject([{ name: 'ci', version: 2 }]);
    expect(conflict).toMatchObject({ code: 'version_conflict', status: 412 });
    expect(conflict).toBeInstanceOf(ApiError);
  });

  it('sends a form', async () => {
    const authenticate = () => 'server';
    const { client, issue } = clientOf({ authenticate, introspection: { authenticate } });
    const { value } = await issue();

    const failed = await failureOf(
      client.call('POST /introspect', { body: new URLSearchParams({ token: value }) }),
    );

    // Read as a form: only the password is missing.
    expect(failed).toMatchObject({ code: 'invalid_client', status: 401 });
  });

  it.each([
    [{ code: 'not_found', message: 'none' }, 404, { code: 'not_found', message: 'none' }],
    [
      { error: 'invalid_client', error_description: 'no' },
      401,
      { code: 'invalid_client', message: 'no' },
    ],
    [
      { code: 'x', message: 'm', details: { member: 'name' } },
      422,
      { details: { member: 'name' } },
    ],
    // Gateways have answers of their own.
    [{ message: 'Forbidden' }, 403, { code: 'unreachable', message: 'Forbidden' }],
    [{ error: 'Not Found', statusCode: 404 }, 404, { code: 'unreachable', message: '' }],
    ['<html>', 502, { code: 'unreachable', message: '' }],
    [null, 500, { code: 'unreachable', message: '' }],
    ['<html>', 200, { code: 'unreachable', message: '' }],
  ])('reads the failure %j (%i)', async (body, status, expected) => {
    const client = new ServiceClient(answering(body, { status }));

    expect(await failureOf(client.call('GET /scopes'))).toMatchObject({ status, ...expected });
  });

  it.each([
    ['7', 7],
    ['soon', undefined],
    ['', undefined],
  ])('reads Retry-After %j', async (header, seconds) => {
    const init = { status: 503, headers: { 'retry-after': header } };
    const client = new ServiceClient(answering({ code: 'overloaded', message: 'later' }, init));

    expect(await failureOf(client.call('GET /scopes'))).toMatchObject({
      retryAfterSeconds: seconds,
    });
  });

  it('checks answers if it is told how', async () => {
    const asked: unknown[] = [];
    const isAnswer = (name: string, answer: unknown) => asked.push([name, answer]) > 1;
    const client = new ServiceClient({ ...answering({ data: [] }), isAnswer });

    const first = await failureOf(client.call('GET /scopes'));
    const second = await client.call('GET /scopes');

    expect(first).toMatchObject({ code: 'unreachable', status: 200 });
    expect(second).toEqual({ data: [] });
    expect(asked).toEqual(Array(2).fill(['GET /scopes', { data: [] }]));
  });
});
