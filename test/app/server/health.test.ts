import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { Health } from '../../../src/app/server/health.ts';
import { generateKey, MemoryTokenStore, TokenService } from '../../../src/index.ts';
import { withFaults } from '../../../src/testing/index.ts';
import { ACCOUNT, listen, newFolder, type RunningService, serve } from '../cli/support.ts';

const READY = { status: 200, body: { status: 'ready' } };
const unready = (status: string) => ({ status: 503, body: { status } });

/** The health pages of a service, and the pending calls of its store, which the test settles. */
async function setUp({ deadlineMs = 60_000 } = {}) {
  const asked: PromiseWithResolvers<[undefined]>[] = [];
  const store = withFaults(new MemoryTokenStore(), ({ method, args: [ids] }) => {
    expect(method).toBe('find');
    expect(ids).toHaveLength(1);
    const answer = Promise.withResolvers<[undefined]>();
    asked.push(answer);
    return answer.promise;
  });
  const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme', deadlineMs });
  const health = new Health(() => tokens);
  let arrived = 0;
  const server = createServer((incoming, outgoing) => {
    arrived += 1;
    const page = health.pages.find(({ isAt }) => isAt(incoming.url ?? ''));
    if (page === undefined) outgoing.writeHead(404).end();
    else page.answer(incoming, outgoing);
  });
  const port = await listen(server);
  const untilArrived = (times: number) => until(() => arrived >= times);
  return {
    health,
    asked,
    untilArrived,
    get: (path: string, method?: string) => ask(port, path, method),
  };
}

async function ask(port: number, path: string, method = 'GET') {
  const sent = request({ port, host: '127.0.0.1', path, method, agent: false }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const { statusCode: status, headers } = response;
  const body = await text(response);
  return { status, headers, text: body, body: body === '' ? undefined : JSON.parse(body) };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(setImmediate);
}

/** Waits until the store was called this many times. */
function untilAsked(asked: readonly unknown[], times: number): Promise<void> {
  return until(() => asked.length >= times);
}

describe('/healthz', () => {
  it('reports that the process is up without calling the store', async () => {
    const { get, asked, health } = await setUp();

    const { status, body, headers } = await get('/healthz');

    expect({ status, body }).toEqual({ status: 200, body: { status: 'ok' } });
    expect(headers['cache-control']).toBe('no-cache');
    health.stop();
    expect((await get('/healthz?verbose')).status).toBe(200);
    expect(asked).toEqual([]);
  });
});

describe.each(['/healthz', '/readyz'])('%s', (path) => {
  it('answers HEAD without a body, and refuses POST', async () => {
    const { get, health, asked } = await setUp();
    health.stop();

    const head = await get(path, 'HEAD');
    expect([head.status, head.text]).toEqual([path === '/healthz' ? 200 : 503, '']);
    const refused = await get(path, 'POST');
    expect([refused.status, refused.headers['allow']]).toEqual([405, 'GET, HEAD']);
    expect((await get(`${path}/more`)).status).toBe(404);
    expect(asked).toEqual([]);
  });
});

describe('/readyz', () => {
  it('calls the store for each request, and is ready if it answers', async () => {
    const { get, asked } = await setUp();

    for (const times of [1, 2]) {
      const answer = get('/readyz');
      await untilAsked(asked, times);
      asked.at(-1)?.resolve([undefined]);
      expect(await answer).toMatchObject(READY);
      expect((await answer).headers['cache-control']).toBe('no-store');
    }
    expect(asked).toHaveLength(2);
  });

  it('shares one store call among concurrent requests', async () => {
    const { get, asked, untilArrived } = await setUp();

    const answers = Array.from({ length: 50 }, () => get('/readyz'));
    await untilArrived(50);
    await untilAsked(asked, 1);
    asked[0]?.resolve([undefined]);

    for (const answer of await Promise.all(answers)) expect(answer).toMatchObject(READY);
    expect(asked).toHaveLength(1);
  });

  it('is not ready if the store fails, and does not reveal the reason', async () => {
    const { get, asked } = await setUp();

    const answer = get('/readyz');
    await untilAsked(asked, 1);
    asked[0]?.reject(new Error('canary: password of db.internal'));

    expect(await answer).toMatchObject(unready('store_unavailable'));
    expect(JSON.stringify(await answer)).not.toMatch(/canary|internal/);
    expect((await answer).headers['retry-after']).toBe('1');
  });

  it('is not ready if the store does not answer in time or returns a malformed answer', async () => {
    const late = await setUp({ deadlineMs: 1 });
    expect(await late.get('/readyz')).toMatchObject(unready('store_unavailable'));

    const { get, asked } = await setUp();
    const answer = get('/readyz');
    await untilAsked(asked, 1);
    asked[0]?.resolve([] as unknown as [undefined]);
    expect(await answer).toMatchObject(unready('store_corrupt'));
  });

  it('is not ready once the service stops, even for a request that was already waiting', async () => {
    const { get, asked, health } = await setUp();
    const answer = get('/readyz');
    await untilAsked(asked, 1);

    health.stop();
    asked[0]?.resolve([undefined]);

    expect(await answer).toMatchObject(unready('stopping'));
    expect(await get('/readyz')).toMatchObject(unready('stopping'));
    expect(asked).toHaveLength(1);
  });
});

describe('tokenwright serve', () => {
  const probe = ({ url }: RunningService, path: string) => ask(Number(new URL(url).port), path);

  it('answers both health pages without credentials', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT]);

    expect(await probe(service, '/readyz')).toMatchObject(READY);
    expect(await probe(service, '/healthz')).toMatchObject({ status: 200 });
    expect(await service.stop()).toMatchObject({ code: 0, stderr: '' });
  });

  it('is up but not ready while it stops', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT]);

    const ended = service.stop();
    let answer = await probe(service, '/readyz');
    // The signal may arrive after the first probes.
    while (answer.status === 200) answer = await probe(service, '/readyz');

    expect(answer).toMatchObject(unready('stopping'));
    expect(await probe(service, '/healthz')).toMatchObject({ status: 200 });
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
  });
});
