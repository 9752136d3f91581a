import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { onTestFinished } from 'vitest';

const api = new URL('guarded-api.ts', import.meta.url).pathname;

/**
 * Commands and their output, as shown in a terminal. `TRANSCRIPT=FILE` writes it to a file. Values are
 * truncated, so that a reader of the file cannot use them.
 */
export class Transcript {
  #text = '';

  remark(text: string): void {
    this.#text += `\n# ${text}\n`;
  }

  add(call: string, output: string): void {
    this.#text += `$ ${call}\n${output.trimEnd()}\n`;
  }

  save(): void {
    const file = process.env['TRANSCRIPT'];
    const values: string[] = [];
    const cut = (value: string) => {
      if (!values.includes(value)) values.push(value);
      return `${value.slice(0, 8)}… (value ${values.indexOf(value) + 1})`;
    };
    const shown = this.#text.replaceAll(/(?:tw_1\w{54,}|old_[A-Za-z]{64})/g, cut).trimStart();
    if (file !== undefined) writeFileSync(file, shown);
  }
}

/**
 * Starts an API in a separate process, on the store of the service.
 *
 * @param format of foreign values that it accepts, as in `--foreign`
 */
export async function startApi(data: string, format = '') {
  const child = spawn(process.execPath, [api, data, format], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = await once(child.stdout, 'data');
  const url = String(line).trim();
  return {
    /** The status, and the error code or the text of the response. */
    async get(path: string, value: string): Promise<string> {
      const headers = { authorization: `Bearer ${value}`, connection: 'close' };
      const response = await fetch(url + path, { headers });
      const challenge = response.headers.get('www-authenticate') ?? '';
      const reason = /error="(\w+)"/.exec(challenge)?.[1];
      return `${response.status} ${reason ?? (await response.text()).trim()}`;
    },
    /** Stops the API, which then writes its usage counts. */
    async stop(): Promise<void> {
      child.kill('SIGTERM');
      await once(child, 'close');
    },
  };
}
