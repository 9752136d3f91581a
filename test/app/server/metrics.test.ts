import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import packageJson from '../../../package.json' with { type: 'json' };
import { Metrics } from '../../../src/app/server/metrics/metrics.ts';
import { optionalPackage } from '../../../src/app/server/optional-package.ts';
import {
  generateKey,
  MemoryTokenStore,
  type ServiceStats,
  type TokenId,
  TokenService,
  type TokenServiceOptions,
} from '../../../src/index.ts';
import { ScopeCatalog } from '../../../src/scope/index.ts';
import { storeContract } from '../../../src/testing/index.ts';
import { ACCOUNT, call, check, newFolder, run, serve } from '../cli/support.ts';

const READ = 'GET:shop.example/orders';
const WRITE = 'POST:shop.example/orders';
const OPEN_METRICS = { accept: 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5' };

/** A service with metrics. */
async function setUp(options: Pick<TokenServiceOptions, 'quotas' | 'cache'> = {}) {
  const metrics = await Metrics.open();
  const store = new MemoryTokenStore();
  const tokens = new TokenService({
    store: metrics.observed(store),
    keys: [generateKey()],
    prefix: 'acme',
    onEvent: metrics.recordEvent,
    ...options,
  });
  return { metrics, store, tokens, samples: async () => samplesOf(await metrics.text()) };
}

/** The value of each series by its name and labels. */
function samplesOf(page: string): ReadonlyMap<string, number> {
  const lines = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.replace(/ \S+$/, ''), Number(/\S+$/.exec(line)?.[0])]));
}

/** All values of a label. */
function labelsOf(page: string, label: string): Set<string> {
  return new Set(
    [...page.matchAll(new RegExp(`[{,]${label}="([^"]*)"`, 'g'))].map(([, it = '']) => it),
  );
}

async function get(url: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') {
  const sent = request(url, { method, headers, agent: false }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode, headers: response.headers, text: await text(response) };
}

const hasPromtool = spawnSync('promtool', ['--version']).status === 0;

/** The problems that promtool finds in a page. */
function complaintsOf(page: string): string {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: page });
  return status === 0 ? '' : `${stdout}${stderr}`;
}

describe('the metrics of a service', () => {
  it('count verifications by outcome and events by type', async () => {
    const { tokens, samples } = await setUp();
    const { id, value } = await tokens.issue({ account: 'ada', scopes: [READ] });
    await tokens.verify(value, { scope: READ });
    await tokens.verify(value, { scope: READ });
    await tokens.verify(value, { scope: WRITE });
    await tokens.verify('no value', { scope: READ });
    await tokens.revoke('ada', id);
    await tokens.verify(value, { scope: READ });

    const counted = await samples();

    const verified = (outcome: string) =>
      counted.get(`tokenwright_verifications_total{outcome="${outcome}"}`);
    expect(verified('ok')).toBe(2);
    expect(verified('insufficient_scope')).toBe(1);
    expect(verified('malformed')).toBe(1);
    expect(verified('revoked')).toBe(1);
    expect(verified('expired')).toBe(0);
    const eventsOf = (type: string) => counted.get(`tokenwright_events_total{type="${type}"}`);
    expect([eventsOf('issued'), eventsOf('revoked'), eventsOf('refused')]).toEqual([1, 1, 3]);
    expect([eventsOf('reused'), eventsOf('modified')]).toEqual([0, undefined]);
  });

  it('time store calls and count failures', async () => {
    const { tokens, store, samples } = await setUp({ quotas: { tokensPerAccount: 1 } });
    const issue = () => tokens.issue({ account: 'ada', scopes: [READ] });
    const { value } = await issue();
    await expect(issue()).rejects.toMatchObject({ code: 'quota_exceeded' });
    await tokens.verify(value, { scope: READ });
    const find = store.find.bind(store);
    store.find = () => Promise.reject(new Error('down'));
    await expect(tokens.verify(value, { scope: READ })).rejects.toThrow();
    store.find = find;

    const counted = await samples();

    const calls = (operation: string, result: string) =>
      counted.get(
        `tokenwright_store_call_duration_seconds_count{store="tokens",operation="${operation}",result="${result}"}`,
      );
    // The second token is refused without an insert.
    expect([calls('insert', 'ok'), calls('insert', 'error')]).toEqual([1, undefined]);
    expect([calls('count', 'ok'), calls('count', 'error')]).toEqual([2, undefined]);
    expect([calls('find', 'ok'), calls('find', 'error')]).toEqual([1, 1]);
    expect(calls('watch', 'ok')).toBeUndefined();
    const failed = (code: string) =>
      counted.get(`tokenwright_store_failures_total{code="${code}",store="tokens"}`);
    expect([failed('store_unavailable'), failed('store_corrupt')]).toEqual([1, 0]);
  });

  it.each(storeContract)('leave a store as it is: $name', async ({ run }) => {
    const metrics = await Metrics.open();
    await run(() => metrics.observed(new MemoryTokenStore()));
  });

  it('time calls of the usage store separately', async () => {
    const { metrics, samples } = await setUp();
    const store = new MemoryTokenStore().usage;
    const usage = metrics.observedUsage(store);
    const id = '0'.repeat(22) as TokenId;
    await usage.add([{ id, refusals: 1 }]);
    await usage.add([]);
    await usage.read([id]);
    store.totals = () => Promise.reject(new Error('down'));
    await expect(usage.totals?.([id])).rejects.toThrow('down');

    const counted = await samples();

    const calls = (operation: string, result = 'ok', name = 'usage') =>
      counted.get(
        `tokenwright_store_call_duration_seconds_count{store="${name}",operation="${operation}",result="${result}"}`,
      );
    expect([calls('add'), calls('read'), calls('totals', 'error')]).toEqual([2, 1, 1]);
    expect([calls('totals'), calls('since'), calls('add', 'ok', 'tokens')]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('count failures and dropped counts of the usage store separately', async () => {
    const { metrics, samples } = await setUp();
    const at = new Date(0);
    metrics.recordEvent({ type: 'store_trouble', code: 'store_unavailable', store: 'usage', at });
    metrics.recordEvent({ type: 'usage_dropped', count: 7, at });

    const counted = await samples();

    const failed = (store: string) =>
      counted.get(`tokenwright_store_failures_total{code="store_unavailable",store="${store}"}`);
    expect([failed('usage'), failed('tokens')]).toEqual([1, 0]);
    expect(counted.get('tokenwright_usage_dropped_total')).toBe(7);
  });

  it('include the counters of the current service', async () => {
    const { metrics, tokens, samples } = await setUp({ cache: { maxStaleMs: 60_000 } });
    const { value } = await tokens.issue({ account: 'ada', scopes: [READ] });
    let stats: ServiceStats = { cache: { hits: 0, misses: 7 }, usage: { waiting: 3, lagMs: 1500 } };
    metrics.watch(() => stats);
    const reads = async () => {
      const counted = await samples();
      return ['hit', 'miss'].map((result) =>
        counted.get(`tokenwright_cache_reads_total{result="${result}"}`),
      );
    };

    expect(await reads()).toEqual([0, 7]);
    expect((await samples()).get('tokenwright_usage_waiting')).toBe(3);
    expect((await samples()).get('tokenwright_usage_lag_seconds')).toBe(1.5);
    for (let i = 0; i < 3; i++) await tokens.verify(value, { scope: READ });
    stats = tokens.stats();
    expect(await reads()).toEqual([2, 1]);
    expect((await samples()).get('tokenwright_usage_waiting')).toBe(0);
  });

  it('count introspections by resource servers, but not lookups for a revocation', async () => {
    const { metrics, tokens, samples } = await setUp();
    metrics.countIntrospections(tokens);
    const { value } = await tokens.issue({ account: 'ada', scopes: [READ] });
    const counted = async (active: string) =>
      (await samples()).get(`tokenwright_introspections_total{active="${active}"}`);

    expect(await tokens.introspect(value, { countsAsUse: true })).toMatchObject({ account: 'ada' });
    expect([await counted('true'), await counted('false')]).toEqual([1, 0]);
    expect(await tokens.introspect('no value', { countsAsUse: true })).toBeUndefined();
    await tokens.introspect(value);
    expect([await counted('true'), await counted('false')]).toEqual([1, 1]);
  });

  it('tell the version, the active key and the size of the catalog', async () => {
    const { metrics, samples } = await setUp();
    const keys = (active: string) =>
      ['k1', 'k2'].map((kid) => ({
        ...generateKey(kid),
        status: kid === active ? ('active' as const) : ('verify' as const),
      }));
    const activeKeys = async () =>
      [...(await samples())].filter(([name]) => name.startsWith('tokenwright_active_key_info'));

    metrics.recordBuild(1);
    metrics.recordFiles({ keys: keys('k1'), catalog: ScopeCatalog.from([READ]) });
    expect(await activeKeys()).toEqual([['tokenwright_active_key_info{kid="k1"}', 1]]);
    metrics.recordFiles({ keys: keys('k2'), catalog: ScopeCatalog.from([READ, WRITE]) });

    expect(await activeKeys()).toEqual([['tokenwright_active_key_info{kid="k2"}', 1]]);
    const counted = await samples();
    expect(counted.get('tokenwright_catalog_scopes')).toBe(2);
    const build = `tokenwright_build_info{version="${packageJson.version}",schema="1"}`;
    expect(counted.get(build)).toBe(1);
  });

  it('count reloads, and keep the time of the last one that succeeded', async () => {
    const { metrics, samples } = await setUp();
    const files = {
      keys: [generateKey()],
      catalog: ScopeCatalog.from([READ]),
      presets: [],
      accounts: [],
    };
    const reloads = async () => {
      const counted = await samples();
      return [
        counted.get('tokenwright_reloads_total{result="ok"}'),
        counted.get('tokenwright_reloads_total{result="error"}'),
        counted.get('tokenwright_last_reload_success_timestamp_seconds'),
      ];
    };
    vi.useFakeTimers({ toFake: ['Date'], now: 1_000_000 });
    onTestFinished(() => void vi.useRealTimers());

    metrics.recordFiles(files);
    expect(await reloads()).toEqual([0, 0, 1000]);
    vi.setSystemTime(2_000_000);
    expect(await metrics.observedReload(async () => files)).toBe(files);
    expect(await reloads()).toEqual([1, 0, 2000]);
    vi.setSystemTime(3_000_000);
    const broken = () => Promise.reject(new Error('catalog.json is not JSON'));
    await expect(metrics.observedReload(broken)).rejects.toThrow('is not JSON');
    expect(await reloads()).toEqual([1, 1, 2000]);
  });

  it('include process metrics and the lag of the event loop, but not the version of Node.js', async () => {
    const { metrics } = await setUp();
    const page = await metrics.text();

    for (const name of ['process_cpu_seconds_total', 'nodejs_eventloop_lag_p99_seconds']) {
      expect(page).toContain(`\n${name} `);
    }
    expect(page).not.toContain(process.versions.node);
  });

  it('are rendered once for concurrent requests', async () => {
    const { metrics } = await setUp();
    const first = metrics.text();

    expect(metrics.text()).toBe(first);
    await first;
    expect(metrics.text()).not.toBe(first);
  });
});

describe('tokenwright serve', () => {
  it('serves metrics only with --metrics, and without a password', async () => {
    const plain = await serve(['--data', newFolder(), ...ACCOUNT]);
    expect((await get(`${plain.url}/metrics`)).status).toBe(404);

    const service = await serve(['--data', newFolder(), ...ACCOUNT, '--metrics']);
    await call(service, '/token');
    await call(service, '/token', { as: 'ada:wrong-password' });
    const { status, headers, text: page } = await get(`${service.url}/metrics?a`);

    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(headers['cache-control']).toBe('no-store');
    expect(service.greeting).toContain('/readyz, /metrics, /example/orders\n');
    const counted = samplesOf(page);
    const calls = (status: string) =>
      counted.get(
        `tokenwright_http_requests_total{route="/token",method="GET",status="${status}"}`,
      );
    expect([calls('2xx'), calls('4xx'), calls('5xx')]).toEqual([1, 1, undefined]);
    const signIns = (outcome: string) =>
      counted.get(`tokenwright_sign_ins_total{outcome="${outcome}"}`);
    expect([signIns('accepted'), signIns('refused'), signIns('limited')]).toEqual([1, 1, 0]);
    expect(counted.get('tokenwright_http_requests_in_progress')).toBe(1);
    expect(counted.get('tokenwright_catalog_scopes')).toBe(20);
    expect(counted.get('tokenwright_active_key_info{kid="k1"}')).toBe(1);
    expect([...counted.keys()]).toContainEqual(
      expect.stringMatching(/^tokenwright_build_info\{version="[^"]+",schema="1"\}$/),
    );
    expect(await service.stop()).toMatchObject({ code: 0, stderr: '' });
  });

  it('exposes few series for any requests, without anything that callers sent', async () => {
    const flags = ['--metrics', '--revocation', '--gateway', 'envoy', '--domain', 'shop.example'];
    const service = await serve(['--data', newFolder(), ...ACCOUNT, ...flags]);
    const body = { scopes: ['*:*/*'], name: 'canary' };
    const { body: token } = await call(service, '/token', { method: 'POST', body });
    await call(service, `/token/${token.id}`);
    await call(service, `/token/${token.token}/rotate`, { method: 'POST', body: {} });
    const before = samplesOf((await get(`${service.url}/metrics`)).text).size;

    const paths = Array.from({ length: 200 }, (_, i) => `/canary-${i}`);
    const odd = [
      '//',
      '/token/',
      '/token/a/b',
      '/token/%00',
      '/TOKEN',
      '/check/canary',
      '/?canary',
    ];
    const values = [token.token, token.id, 'canary', '{token}', '%7Btoken%7D', '__proto__'];
    const hostile = [...paths, ...odd, ...values.map((value) => `/token/${value}`)];
    for (const path of hostile) await get(service.url + path, { cookie: 'canary' });
    for (const method of ['PROPFIND', 'TRACE', 'OPTIONS', 'M-SEARCH', 'QUERY', 'PURGE']) {
      await get(`${service.url}/token`, {}, method);
    }
    await raw(service.url, 'GET http://canary.example/token HTTP/1.1\r\nHost: canary\r\n');
    await raw(service.url, 'OPTIONS * HTTP/1.1\r\nHost: canary\r\n');
    const page = (await get(`${service.url}/metrics`)).text;

    expect([...labelsOf(page, 'route')].sort()).toEqual([
      '/',
      '/check',
      '/metrics',
      '/token',
      '/token/{token}',
      '/token/{token}/rotate',
      'other',
    ]);
    expect([...labelsOf(page, 'method')].sort()).toEqual(['GET', 'OPTIONS', 'POST', 'other']);
    expect([...labelsOf(page, 'status')].sort()).toEqual(['2xx', '4xx']);
    for (const secret of [token.token, token.id, 'canary', 'ada', 'acme', 'proto']) {
      expect(page).not.toContain(secret);
    }
    expect(samplesOf(page).size - before).toBeLessThan(100);
  });

  it('serves metrics only on their own port with --metrics-port', async () => {
    const service = await serve([
      ...['--data', newFolder(), ...ACCOUNT],
      ...['--metrics', '--metrics-port', '127.0.0.1:0'],
    ]);
    const [, own = ''] = /(http:\S+)\/metrics, /.exec(service.greeting) ?? [];

    expect(own).not.toBe(service.url);
    expect((await get(`${service.url}/metrics`)).status).toBe(404);
    expect((await get(`${own}/metrics`)).text).toContain('tokenwright_verifications_total');
    expect(await get(`${own}/metrics`, {}, 'HEAD')).toMatchObject({ status: 200, text: '' });
    expect((await get(`${own}/metrics`, {}, 'POST')).status).toBe(405);
    for (const path of ['/', '/token', '/readyz', '/metrics/']) {
      expect((await get(own + path)).status, path).toBe(404);
    }
    expect(await service.stop()).toMatchObject({ code: 0, stderr: '' });
  });

  it('returns OpenMetrics if the client accepts it, and the text format otherwise', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT, '--metrics']);
    const { headers, text: page } = await get(`${service.url}/metrics`, OPEN_METRICS);

    expect(headers['content-type']).toMatch(/^application\/openmetrics-text; version=1\.0\.0/);
    expect(page).toMatch(/\n# EOF\n$/);
    expect(page).not.toContain('\n\n');
    expect(page).toContain('\n# TYPE tokenwright_sign_ins counter\n');
    expect(page).toContain('\ntokenwright_sign_ins_total{outcome="refused"} 0\n');
    expect(page).not.toMatch(/^# TYPE \S+_total counter$/m);
    expect((await get(`${service.url}/metrics`)).text).toContain(
      '\n# TYPE tokenwright_sign_ins_total counter\n',
    );
  });

  it.each([
    [['--metrics-port', 'canary'], 2, '--metrics-port (TOKENWRIGHT_METRICS_PORT) must be a port'],
    [['--metrics-port', '65536'], 2, '--metrics-port (TOKENWRIGHT_METRICS_PORT) must be a port'],
    [['--metrics-port', 'a:b:1'], 2, '--metrics-port (TOKENWRIGHT_METRICS_PORT) must be a port'],
    [['--metrics-port', '192.0.2.1:0'], 1, 'the host of --metrics-port must be'],
  ])('does not start with %j', async (flags, code, message) => {
    const all = ['--port', '0', '--data', newFolder(), ...ACCOUNT, ...flags];
    const ended = await run(['serve', ...all]);

    expect(await check(all)).toEqual(ended);
    expect(ended).toMatchObject({ code, stdout: '' });
    expect(ended.stderr).toContain(message);
    expect(ended.stderr).not.toContain('canary');
  });
});

describe('optionalPackage', () => {
  it('names the command that installs a missing package, and rethrows other errors', async () => {
    const absent = () => import(['no', 'such', 'package'].join('-'));

    await expect(optionalPackage('no-such-package', '--metrics', absent)).rejects.toMatchObject({
      code: 'invalid_options',
      message:
        '--metrics needs the package no-such-package beside tokenwright: npm install no-such-package',
    });
    await expect(optionalPackage('other', '--metrics', absent)).rejects.toMatchObject({
      code: 'ERR_MODULE_NOT_FOUND',
    });
  });
});

describe.runIf(hasPromtool)('promtool', () => {
  it('finds no problem in the metrics page', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT, '--metrics']);
    await call(service, '/token');
    const page = (await get(`${service.url}/metrics`)).text;

    expect(complaintsOf(page)).toBe('');
    expect(complaintsOf(page.replace(/^# HELP tokenwright_sign_ins.*$/m, ''))).toContain('help');
  });
});

/** Sends a request head without any checks, and waits until the connection is closed. */
async function raw(url: string, head: string): Promise<void> {
  const { port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.write(`${head}Connection: close\r\n\r\n`);
  await once(socket.resume(), 'close');
}
