import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

/** The oldest Node that is supported: that of the machine, or the one that `npm run test:runtimes` has installed. */
const NODE_20 = [
  ...(process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, 'node')),
  join(ROOT, '.cache/runtimes/node_modules/node-20.19/bin/node'),
].find((file) => existsSync(file) && /^v20\./.test(spawnSync(file, ['-v']).stdout.toString()));

/** The pages that begin with a program, and where they have another first one. */
const PAGES: readonly (readonly [page: string, heading: RegExp])[] = [
  ['README.md', /^# tokenwright$/m],
  ['README.md', /^## Protect your routes$/m],
  ['docs/quick-start.md', /^# Quick start$/m],
  ['docs/quick-start.md', /^## Guard a server$/m],
  ['docs/guides/express.md', /^# Express$/m],
  ['docs/guides/fastify.md', /^# Fastify$/m],
  ['docs/guides/hono.md', /^# Hono$/m],
  ['docs/guides/nest.md', /^# Nest$/m],
  ['docs/guides/others.md', /^## Koa$/m],
  ['docs/guides/others.md', /^## Next\.js/m],
  ['docs/guides/others.md', /^## node:http$/m],
];

/** The first block of code below a heading. */
function programIn(page: string, heading: RegExp): string {
  const [, below = ''] = readFileSync(join(ROOT, page), 'utf8').split(heading);
  return /^```[jt]s[^\n]*\n(.*?)^```$/ms.exec(below)?.[1] ?? '';
}

/** Saves a program as JavaScript where the packages are found, and runs it. */
function start(program: string): ChildProcess {
  const cache = join(ROOT, '.cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'first-'));
  writeFileSync(join(folder, 'program.mjs'), program);
  const child = spawn(NODE_20 ?? 'node', ['program.mjs'], { cwd: folder });
  onTestFinished(() => {
    child.kill();
    rmSync(folder, { recursive: true });
  });
  return child;
}

/** What a process prints, until it ends or until this matches. */
async function printedBy(child: ChildProcess, until: RegExp): Promise<string> {
  let [printed, errors] = ['', ''];
  child.stderr?.on('data', (chunk) => {
    errors += chunk;
  });
  const isEnough = new Promise<void>((resolve) => {
    child.stdout?.on('data', (chunk) => {
      printed += chunk;
      if (until.test(printed)) resolve();
    });
  });
  await Promise.race([isEnough, once(child, 'close')]);
  expect(errors).toBe('');
  return printed;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** Sends the request of a printed command, with other headers. */
async function send(command: string, headers?: Record<string, string>): Promise<Response> {
  const [, name = '', value = '', url = ''] = /^curl -H '(\w+): (.*)' (\S+)$/m.exec(command) ?? [];
  return fetch(url, { headers: headers ?? { [name]: value } });
}

describe.skipIf(NODE_20 === undefined && process.env['CI'] !== 'true')('the first program', () => {
  it.each(PAGES)('of %s below %s runs as JavaScript on Node 20', async (page, heading) => {
    const program = programIn(page, heading);
    const promised = [...program.matchAll(/console\.log\(.*\); \/\/ (.*)/g)].map(
      ([, line]) => line,
    );
    const port = await freePort();
    const child = start(program.replaceAll('3000', `${port}`));
    const printed = await printedBy(child, /^curl .*\n/m);

    if (promised.length > 0) {
      expect(printed.trim().split('\n')).toEqual(promised);
      return;
    }
    const response = await send(printed);
    expect([response.status, await response.json()]).toEqual([200, { account: 'ada' }]);
    expect((await send(printed, {})).status).toBe(401);
  });

  it('does not run if it is TypeScript, or lacks an import (the control)', async () => {
    const program = programIn('README.md', /^## Protect your routes$/m);
    const wrong = [
      program.replace('const app', 'const app: object'),
      program.replace(/^import express.*$/m, ''),
    ];

    for (const text of wrong) {
      expect(text).not.toBe(program);
      const child = start(text);
      expect(await once(child, 'close')).toEqual([1, null]);
    }
  });
});
