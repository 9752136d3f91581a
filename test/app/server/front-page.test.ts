import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { frontPage } from '../../../src/app/server/pages.ts';
import { listen } from '../cli/support.ts';

const BROWSER =
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7';

/** Asks for the page at `/`. */
async function ask(
  accept: string | undefined,
  { console = 'on', method = 'GET', path = '/' } = {},
): Promise<{ status: number | undefined; headers: IncomingMessage['headers']; body: unknown }> {
  const page = frontPage({ console: console as 'on' | 'off', docs: false });
  const port = await listen(createServer(page.answer));
  const headers = accept === undefined ? {} : { accept };
  const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const { statusCode: status, headers: answered } = response;
  const isJson = answered['content-type'] === 'application/json' && method === 'GET';
  return { status, headers: answered, body: isJson ? await json(response) : undefined };
}

describe('the page at /', () => {
  it.each([
    [BROWSER, 302],
    ['text/html', 302],
    ['text/*', 302],
    ['TEXT/HTML', 302],
    ['application/json;q=0.8, text/html;q=0.9', 302],
    ['application/json;q=0.9, text/html;q=0.8', 200],
    ['text/html, application/json', 200],
    ['text/html;q=0', 200],
    ['*/*;q=0.5, text/html', 302],
    ['*/*', 200],
    ['application/json', 200],
    ['', 200],
    [undefined, 200],
  ])('answers Accept: %j with %i if the console is on', async (accept, status) => {
    const { status: answered, headers, body } = await ask(accept);

    expect(answered).toBe(status);
    expect(headers['vary']).toContain('accept');
    expect(headers['location']).toBe(status === 302 ? './console' : undefined);
    if (status === 302) expect(headers['cache-control']).toBe('no-store');
    else expect(body).toMatchObject({ data: { name: 'tokenwright', console: './console' } });
  });

  it('redirects HEAD as GET, and ignores a query', async () => {
    expect(await ask(BROWSER, { method: 'HEAD', path: '/?a=b' })).toMatchObject({
      status: 302,
      headers: { location: './console' },
    });
    expect(await ask('*/*', { method: 'HEAD' })).toMatchObject({ status: 200 });
  });

  it('is JSON for browsers too if the console is off', async () => {
    const { status, headers, body } = await ask(BROWSER, { console: 'off' });

    expect([status, headers['location'], headers['vary']]).toEqual([
      200,
      undefined,
      'accept-encoding',
    ]);
    expect(body).toMatchObject({ data: { name: 'tokenwright' } });
    expect(body).not.toHaveProperty('data.console');
  });
});
