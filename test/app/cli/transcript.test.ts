import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { newFolder, type RunningService, run, serve } from './support.ts';
import { startApi, Transcript } from './transcript.ts';

const DAY_MS = 86_400_000;
const PASSWORD = 'correct-horse';

/** Moves all times in the files into the past, as if these days had passed. */
function age(data: string, days: number): void {
  const change = (file: string, sql: string) => {
    const database = new DatabaseSync(join(data, file));
    database.exec(sql);
    database.close();
  };
  const ms = days * DAY_MS;
  change('tokens.db', `UPDATE tokens SET created_at = created_at - ${ms}`);
  change(
    'usage.db',
    `UPDATE uses SET last_used_at = last_used_at - ${ms};
     UPDATE counted_since SET since = since - ${ms}`,
  );
}

/** Runs commands on a running service, and records them in the transcript. */
function shellOf({ url }: RunningService, transcript: Transcript) {
  const environment = {
    TOKENWRIGHT_URL: url,
    TOKENWRIGHT_USER: 'ada',
    TOKENWRIGHT_PASSWORD: PASSWORD,
  };
  return async (...args: readonly string[]) => {
    const { stdout, stderr, code } = await run(args, environment);
    transcript.add(`tokenwright ${args.join(' ')}`, stdout + stderr);
    return { stdout, stderr, code };
  };
}

it('a token is issued, used in another process, listed, narrowed, suspended, rotated and reviewed', {
  timeout: 120_000,
}, async () => {
  const data = newFolder();
  const transcript = new Transcript();
  const service = await serve(['--data', data, '--account', `ada:${PASSWORD}`]);
  transcript.add(`npm start -- --data ${data} --account ada:…`, service.greeting);
  const shell = shellOf(service, transcript);

  transcript.remark('a token for reading and writing');
  const scopes = ['GET:orders.acme.example/*', 'POST:orders.acme.example/*'];
  const flags = scopes.flatMap((scope) => ['--scope', scope]);
  const issued = await shell('token', 'issue', ...flags, '--ttl', '90d', '--name', 'ci');
  const value = issued.stdout.trim();
  const id = /^id +(\w{22})$/m.exec(issued.stderr)?.[1] ?? '';
  expect(value).toMatch(/^tw_1/);

  transcript.remark('another process guards the orders with the same store');
  const first = await startApi(data);
  const ask = async (asked: Awaited<ReturnType<typeof startApi>>, given = value) => {
    const answer = await asked.get('/orders', given);
    transcript.add(
      `curl -H "Authorization: Bearer ${given}" http://orders.acme.example/orders`,
      answer,
    );
    return answer;
  };
  expect(await ask(first)).toBe('200 orders of ada');
  expect(await ask(first)).toBe('200 orders of ada');
  await first.stop();

  transcript.remark('its list shows the last use, and what it was used for');
  const listed = await shell('token', 'list');
  expect(listed.stdout).toMatch(new RegExp(`${id}.* ${new Date().getUTCFullYear()}-`));
  const usage = await shell('token', 'usage', id);
  expect(usage.stdout).toMatch(/^uses +2$/m);

  transcript.remark('after 40 days (all times in the files are set back), and one more use');
  age(data, 40);
  const second = await startApi(data);
  expect(await ask(second)).toBe('200 orders of ada');
  await second.stop();
  const advice = await shell('token', 'advise', id);
  expect(advice.stdout).toMatch(/^ +POST:orders.acme.example\/orders$/m);
  expect(advice.stdout).toMatch(/^kept +GET:orders/m);

  transcript.remark('narrowed to what it uses');
  const narrowed = await shell('token', 'advise', id, '--apply');
  expect(narrowed.stderr).toMatch(/removed \d+ scope/);
  expect((await shell('token', 'get', id)).stdout).not.toContain('POST:');

  transcript.remark('suspended, and resumed');
  const third = await startApi(data);
  expect((await shell('token', 'suspend', id)).stdout).toContain('suspended');
  expect(await ask(third)).toBe('401 invalid_token');
  expect((await shell('token', 'resume', id)).stdout).not.toContain('suspended');
  expect(await ask(third)).toBe('200 orders of ada');

  transcript.remark('rotated in two phases: the old value works until the new one is used');
  const rotated = await shell('token', 'rotate', id, '--activate', 'first-use');
  const next = rotated.stdout.trim();
  expect(next).not.toBe(value);
  expect(await ask(third)).toBe('200 orders of ada');
  expect((await shell('token', 'get', id)).stdout).toContain('pending');
  expect(await ask(third, next)).toBe('200 orders of ada');
  // The activation is written in the background; `stop` waits for it.
  await third.stop();
  const fourth = await startApi(data);
  expect(await ask(fourth)).toBe('401 invalid_token');
  expect(await ask(fourth, next)).toBe('200 orders of ada');
  await fourth.stop();

  transcript.remark('reviewed: only what the flag asks for');
  const review = await run(['token', 'review', '--data', data, '--expiring-within-days', '100']);
  transcript.add(
    `tokenwright token review --data ${data} --expiring-within-days 100; echo "exit code $?"`,
    `${review.stdout}${review.stderr}exit code ${review.code}`,
  );
  expect(review.code).toBe(3);
  expect(review.stdout).toMatch(/^expiring +ada \w{22} /);
  await service.stop();
  transcript.save();
});
