import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { onTestFinished } from 'vitest';

const api = new URL('guarded-api.ts', import.meta.url).pathname;

/**
 * What was called and what came of it, as a terminal shows it. `TRANSCRIPT=FILE` writes it to a file.
 * Values are cut: what opens a door has no place in a text that is passed on.
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
 * An API in a process of its own, on the store of the service.
 *
 * @param format of values of another system that it accepts, as for `--foreign`
 */
export async function startApi(data: string, format = '') {
  const child = spawn(process.execPath, [api, data, format], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = await once(child.stdout, 'data');
  const url = String(line).trim();
  return {
    /** The status, and the text or the reason. */
    async get(path: string, value: string): Promise<string> {
      const headers = { authorization: `Bearer ${value}`, connection: 'close' };
      const response = await fetch(url + path, { headers });
      const challenge = response.headers.get('www-authenticate') ?? '';
      const reason = /error="(\w+)"/.exec(challenge)?.[1];
      return `${response.status} ${reason ?? (await response.text()).trim()}`;
    },
    /** Ends it, which writes what it has counted. */
    async stop(): Promise<void> {
      child.kill('SIGTERM');
      await once(child, 'close');
    },
  };
}
