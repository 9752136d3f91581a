// PgBouncer in front of a test server, for what a pooler does to a store.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../servers.ts';

const PROGRAM = '/usr/sbin/pgbouncer';
/** PgBouncer refuses to be run by root. */
const NOBODY = 65_534;
const READY_MS = 10_000;
const PAUSE_MS = 50;

export const hasPgbouncer: boolean = existsSync(PROGRAM);

export interface Pgbouncer {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts one in transaction mode, as it comes, or with other settings. */
export async function startPgbouncer(
  server: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Pgbouncer> {
  const { hostname, port: serverPort, username, pathname } = new URL(server);
  const database = pathname.slice(1);
  const folder = mkdtempSync(join(tmpdir(), 'tokenwright-pgbouncer-'));
  const port = await freePort();
  const all = {
    listen_addr: '127.0.0.1',
    listen_port: String(port),
    unix_socket_dir: '',
    auth_type: 'trust',
    auth_file: join(folder, 'users'),
    pool_mode: 'transaction',
    ...settings,
  };
  writeFileSync(join(folder, 'users'), `"${username}" ""\n`);
  writeFileSync(
    join(folder, 'ini'),
    [
      '[databases]',
      `${database} = host=${hostname} port=${serverPort} dbname=${database}`,
      '[pgbouncer]',
      ...Object.entries(all).map(([name, value]) => `${name} = ${value}`),
    ].join('\n'),
  );
  const isRoot = process.getuid?.() === 0;
  if (isRoot)
    for (const file of ['', 'users', 'ini']) chownSync(join(folder, file), NOBODY, NOBODY);
  const child = spawn(PROGRAM, ['-q', join(folder, 'ini')], {
    stdio: 'ignore',
    ...(isRoot && { uid: NOBODY, gid: NOBODY }),
  });
  const ended = once(child, 'exit');
  const stop = async () => {
    child.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  const until = performance.now() + READY_MS;
  while (!(await answers(port))) {
    if (child.exitCode !== null || performance.now() > until) {
      await stop();
      throw new Error('pgbouncer does not start');
    }
    await delay(PAUSE_MS);
  }
  return { url: `postgres://${username}@127.0.0.1:${port}/${database}`, stop };
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
