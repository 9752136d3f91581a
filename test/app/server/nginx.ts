import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';

const NGINX = '/usr/sbin/nginx';

/** Whether tests with nginx run. With `CI=true` they do in any case, and fail without it. */
export const HAS_NGINX = existsSync(NGINX) || process.env['CI'] === 'true';

/** Runs nginx with a configuration of its `http` part. Resolves once it listens. */
export async function startNginx(folder: string, config: string): Promise<ChildProcess> {
  const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  writeFileSync(
    `${folder}/nginx.conf`,
    `daemon off; master_process off; pid ${folder}/pid; error_log stderr notice; events {}
    http { access_log off; ${folders.map((name) => `${name}_temp_path ${folder};`).join(' ')}
    ${config} }`,
  );
  const options = ['-p', folder, '-c', `${folder}/nginx.conf`, '-e', 'stderr'];
  const child = spawn(NGINX, options, { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.on('data', (more) => {
    log += more;
  });
  // nginx logs this once it listens.
  while (!log.includes('event method')) await once(child.stderr, 'data');
  return child;
}

/** A text with each of these parts replaced, all of which must be there. */
export function replaceAll(text: string, changes: readonly (readonly [string, string])[]): string {
  return changes.reduce((written, [from, to]) => {
    if (!written.includes(from)) throw new Error(`the configuration has no ${from}`);
    return written.replaceAll(from, to);
  }, text);
}
