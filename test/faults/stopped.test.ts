// What is logged when a database stops under one call a second: by a library with `outageLog`, by a guard with
// `onError`, and by `serve`.
import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bearerGuard } from '../../src/http/index.ts';
import { generateKey, outageLog, TokenService } from '../../src/index.ts';
import { ACCOUNT, newFolder, start } from '../app/cli/support.ts';
import * as engines from './engines.ts';

/** How long the database stays down. */
const SECONDS = Number(process.env['STOPPED_SECONDS'] ?? 2);
const SCOPE = 'GET:shop.example/orders';
const WAIT = { timeout: 60_000, interval: 50 };
const BASIC = `Basic ${btoa(ACCOUNT[1] as string)}`;

/** Between the first failed call and the first that works, in seconds: a call a second, and time to reconnect. */
const SPAN = { least: SECONDS - 1, most: SECONDS + 5 };

/** A service in this process, a guard, and a program of its own, on one database. */
async function setUp(driver: engines.Driver) {
  const servers = await engines.start(driver);
  onTestFinished(() => servers.stop());
  const { url, nodes } = servers;
  await driver.prepare(url);
  const opened = driver.open(url, { deadlineMs: 500 });
  const lines: string[] = [];
  const keys = [generateKey()];
  const options = { store: opened.store, keys, prefix: 'acme' };
  const tokens = new TokenService({ ...options, onEvent: outageLog((line) => lines.push(line)) });
  onTestFinished(() => opened.close());
  const { value } = await tokens.issue({ account: 'ada', scopes: [SCOPE] });
  const errors: unknown[] = [];
  const guard = bearerGuard({
    tokens,
    domain: 'shop.example',
    onError: (error) => errors.push(error),
  });

  const folder = newFolder();
  writeFileSync(`${folder}/keys.json`, JSON.stringify(keys), { mode: 0o600 });
  const { child, output } = start([
    ...['serve', '--port', '0', '--store', url, '--keys', `${folder}/keys.json`, ...ACCOUNT],
  ]);
  onTestFinished(() => void child.kill('SIGKILL'));
  await expect.poll(() => output.stdout, WAIT).toMatch(/http:\S+/);
  const address = /http:\/\/[^\s/]+/.exec(output.stdout)?.[0] ?? '';

  /** One of each; how many of them have failed. */
  const callAll = async (): Promise<number> => {
    const request = new Request('http://shop.example/orders', {
      headers: { authorization: `Bearer ${value}` },
    });
    const [inLibrary, guarded, served] = await Promise.all([
      tokens.verify(value, { scope: SCOPE }).then(
        ({ ok }) => ok,
        () => false,
      ),
      guard(request),
      fetch(`${address}/token`, { headers: { authorization: BASIC } }),
    ]);
    return [inLibrary, guarded.ok, served.status === 200].filter((isFine) => !isFine).length;
  };
  const served = () => output.stderr.split('\n').filter((line) => /fails|works again/.test(line));
  return { nodes, lines, errors, served, callAll };
}

/** One line when it begins, one a minute, and one when it is over. */
function expectOutage(lines: readonly string[], sentence: RegExp): void {
  const [first = '', ...others] = lines;
  const last = others.pop() ?? '';
  expect(first).toMatch(/ fails: /);
  expect(first).toMatch(sentence);
  expect(others).toHaveLength(Math.floor(SECONDS / 60));
  for (const line of others) expect(line).toMatch(/ still fails: \d+ calls failed in a minute/);
  const [, seconds, failed] = /works again after (\d+) s; (\d+) calls? failed$/.exec(last) ?? [];
  expect(Number(seconds)).toBeGreaterThanOrEqual(SPAN.least);
  expect(Number(seconds)).toBeLessThanOrEqual(SPAN.most);
  expect(Number(failed)).toBeGreaterThanOrEqual(SECONDS);
}

describe.each(engines.DRIVERS)('a database behind $name that stops', (driver) => {
  it.skipIf(engines.isMissing(driver))(
    'is logged from its start to its end',
    async () => {
      const { nodes, lines, errors, served, callAll } = await setUp(driver);
      expect(await callAll()).toBe(0);
      expect([lines, errors, served()]).toEqual([[], [], []]);

      await Promise.all(nodes.map(engines.shutDown));
      const start = performance.now();
      for (let second = 1; performance.now() - start < 1000 * SECONDS; second++) {
        expect(await callAll()).toBe(3);
        await delay(Math.max(0, start + 1000 * second - performance.now()));
      }
      await Promise.all(nodes.map((server) => server.restart()));
      const isOver = (all: readonly string[]) => /works again/.test(all.at(-1) ?? '');
      await expect
        .poll(async () => [await callAll(), isOver(lines), isOver(served())], WAIT)
        .toEqual([0, true, true]);

      expectOutage(lines, /the token store fails: the store /);
      expect(errors.length).toBeGreaterThanOrEqual(SECONDS);
      expectOutage(served(), /nothing listens there/);
    },
    120_000 + 2000 * SECONDS,
  );
});
