// How fast `tokenwright token import` brings tokens into a store, in how much memory, and that it goes on after
// it was killed: `node test/bench/import.ts [rows] [store URL]`. Without a URL it is an SQLite file.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, createWriteStream, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { needs } from './start.ts';

needs({ minutes: 2, gigabytes: 2 });

const [rowCount = '1000000', store] = process.argv.slice(2);
const ROWS = Number(rowCount);
/** The service allows 10 000 tokens for each. */
const ROWS_OF_ACCOUNT = 100;
const main = new URL('../../src/app/cli/main.ts', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
const file = join(folder, 'rows.jsonl');
const place =
  store === undefined
    ? ['--data', folder]
    : ['--store', store, '--tables', `import_${process.pid}`];
const importing = ['token', 'import', '--format', 'own', ...place, '--json'];

interface Run {
  readonly seconds: number;
  /** Of the command alone: a database works besides. */
  readonly cpuSeconds: number;
  readonly peakMb: number;
  readonly report: Readonly<Record<string, unknown>> | undefined;
}

/** Writes rows that only the hash and the account tell apart. */
async function writeRows(): Promise<void> {
  const output = createWriteStream(file);
  for (let row = 0; row < ROWS; row += 1) {
    const digest = createHash('sha256').update(`key-${row}`).digest('hex');
    const account = `account-${Math.floor(row / ROWS_OF_ACCOUNT)}`;
    const scopes = ['GET:shop.example/orders', 'POST:shop.example/orders'];
    const text = JSON.stringify({ account, digest, scopes, expires_at: null, name: `key ${row}` });
    if (!output.write(`${text}\n`)) await once(output, 'drain');
  }
  output.end();
  await finished(output);
}

/** Runs a command on the rows; kills it if a time is given. */
async function run(args: readonly string[], killAfterMs?: number): Promise<Run> {
  const start = performance.now();
  const child = spawn(process.execPath, [main, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const input = createReadStream(file);
  input.pipe(child.stdin).on('error', () => input.destroy());
  const timer =
    killAfterMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfterMs);
  let sample = { peakMb: 0, cpuSeconds: 0 };
  const sampler = setInterval(() => {
    sample = sampleOf(child.pid ?? 0) ?? sample;
  }, 100);
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  await once(child, 'close');
  clearTimeout(timer);
  clearInterval(sampler);
  const seconds = (performance.now() - start) / 1000;
  return { seconds, ...sample, report: output === '' ? undefined : JSON.parse(output) };
}

/** What Linux knows of a process; `undefined` once it has ended. */
function sampleOf(pid: number) {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const kilobytes = Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1]);
    // After the name, which may hold spaces. The times of user and system are in hundredths of a second.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    const ticks = Number(fields[11]) + Number(fields[12]);
    return Number.isNaN(kilobytes)
      ? undefined
      : { peakMb: kilobytes / 1024, cpuSeconds: ticks / 100 };
  } catch {
    return undefined;
  }
}

function print(what: string, { seconds, cpuSeconds, peakMb, report }: Run): void {
  const rate = Math.round(ROWS / seconds);
  const used = `${seconds.toFixed(1)} s, ${cpuSeconds.toFixed(1)} s of CPU, peak ${Math.round(peakMb)} MB`;
  const facts = report === undefined ? 'killed' : `${rate} rows/s, ${JSON.stringify(report)}`;
  console.log(`${what}: ${used}, ${facts}`);
}

try {
  await writeRows();
  await run(['store', 'migrate', ...place, '--json']);
  print('rehearsal', await run([...importing, '--dry-run']));
  const killed = await run(importing, Number(process.env['KILL_AFTER_MS'] ?? 10_000));
  print('killed', killed);
  print('restart', await run(importing));
  print('again', await run(importing));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
