// Checks and tests the package as it was packed, and builds nothing: `npm run test:packed -- FILE`.
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join, resolve } from 'node:path';

const root = new URL('../..', import.meta.url).pathname;
const [file] = process.argv.slice(2);
if (file === undefined)
  throw new Error('usage: npm run test:packed -- FILE, a tarball of npm pack');
const tarball = resolve(file);

rmSync(join(root, 'dist'), { recursive: true, force: true });
const steps = [
  ['tar', '-xzf', tarball, '--strip-components=1', 'package/dist'],
  ['npm', 'run', 'check:built'],
  ['node', 'test/run.ts', 'built'],
  ['node', 'test/runtimes/run.ts', `--tarball=${tarball}`],
] as const;
for (const [command, ...args] of steps) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (status === 0) continue;
  console.error(`${command} ${args.join(' ')} failed`);
  process.exit(1);
}
