import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };
import { VARIABLES } from '../../src/app/server/settings.ts';
import { newFolder } from '../app/cli/support.ts';

const root = new URL('../../', import.meta.url);
const read = (name: string) => readFileSync(new URL(`examples/run/deploy/${name}`, root), 'utf8');
const FILES = globSync('*', { cwd: new URL('examples/run/deploy', root).pathname });

/** The tokenwright settings that a text names. */
const variablesIn = (text: string): string[] => text.match(/\bTOKENWRIGHT_\w+/g) ?? [];
const PROGRAM = `node_modules/tokenwright/${packageJson.bin.tokenwright.slice(2)}`;

describe('the deployment files', () => {
  it.each(FILES)('%s names only settings that exist', (file) => {
    expect(variablesIn(read(file)).filter((name) => !VARIABLES.includes(name))).toEqual([]);
  });

  it('name some settings, and an unknown one would be noticed (the control)', () => {
    expect(FILES.flatMap((file) => variablesIn(read(file))).length).toBeGreaterThan(6);
    expect(VARIABLES).not.toContain(variablesIn('TOKENWRIGHT_ACOUNTS=a')[0]);
  });

  it.each(['Dockerfile', 'tokenwright.service'])('%s starts the program of the package', (file) => {
    expect(read(file)).toContain(PROGRAM);
  });

  it('run the container as the user node, with the program as its first process', () => {
    const lines = read('Dockerfile').split('\n');

    expect(lines.lastIndexOf('USER node')).toBeGreaterThan(
      lines.findLastIndex((line) => line.startsWith('RUN')),
    );
    expect(lines).toContain(`ENTRYPOINT ["node", "${PROGRAM}"]`);
  });

  it('mount exactly the secrets that the compose service reads', () => {
    const { services, secrets } = parse(read('compose.yaml'));
    const { environment, secrets: mounted } = services.tokens;
    const named = Object.values<string>(environment).flatMap(
      (text) => /^\/run\/secrets\/(.+)/.exec(text)?.[1] ?? [],
    );

    expect(named).toEqual(mounted);
    expect(Object.keys(secrets)).toEqual(mounted);
    expect(services.tokens.read_only).toBe(true);
  });

  it.each([
    [200, 0],
    [503, 1],
    [undefined, 1],
  ])(
    'end the health check of a service that answers %s with the exit code %i',
    async (status, code) => {
      const server = createServer((_, response) => response.writeHead(status ?? 500).end());
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const { port } = server.address() as AddressInfo;
      onTestFinished(() => void server.close());
      if (status === undefined) server.close();
      const [, command = ''] = /^HEALTHCHECK [^[]*(\[.*\])$/m.exec(read('Dockerfile')) ?? [];
      const [, ...args] = JSON.parse(command) as string[];

      const env = { ...process.env, PORT: String(port) };
      const check = execFile(process.execPath, args, { env });
      expect(await once(check, 'exit')).toEqual([code, null]);
    },
  );

  const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;
  it.skipIf(!hasSystemd)('contain a unit that systemd accepts', () => {
    const file = `${newFolder()}/tokenwright.service`;
    const verify = (unit: string): string[] => {
      // Replaced by a user and a program that exist on this machine.
      const local = unit
        .replace(/^User=.*/m, 'User=daemon')
        .replace(/^ExecStart=\S+/m, 'ExecStart=/bin/true');
      writeFileSync(file, local);
      const { stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
      // It also reads the units that other packages of this machine add to the targets of ours.
      return stderr.split('\n').filter((line) => line.includes('tokenwright.service'));
    };

    expect(verify(read('tokenwright.service'))).toEqual([]);
    const misspelt = read('tokenwright.service').replace('ProtectHome=', 'ProtectHouse=');
    expect(verify(misspelt).join()).toContain('ProtectHouse');
    expect(verify(misspelt.replace('[Service]', '[Service')).length).toBeGreaterThan(0);
  });
});
