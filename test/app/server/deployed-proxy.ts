import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { type Agent, request } from 'node:https';
import { text } from 'node:stream/consumers';
import { makeCertificate } from '../../certificate.ts';
import { freePort } from '../../servers.ts';
import { newFolder } from '../cli/support.ts';
import { HAS_NGINX, replaceAll, startNginx } from './nginx.ts';

/** A proxy that runs with its file of `examples/run/deploy`, and what its clients need. */
export interface DeployedProxy {
  readonly port: number;
  /** The certificate, for the name `tokens.example`. */
  readonly ca: string;
  stop(): void;
}

type Changes = readonly (readonly [string, string])[];

interface Kind {
  readonly isInstalled: boolean;
  /** Starts it in front of two nodes on these ports of 127.0.0.1, with further changes to its file. */
  start(nodes: readonly [number, number], changes?: Changes): Promise<DeployedProxy>;
}

const CADDY = '/usr/bin/caddy';
const NODES = ['10.0.0.11:8787', '10.0.0.12:8787'] as const;

export const PROXIES: Readonly<Record<'nginx' | 'Caddy', Kind>> = {
  nginx: {
    isInstalled: HAS_NGINX,
    async start(nodes, changes = []) {
      const { folder, port, ca } = await newPlace();
      const config = deployed('nginx.conf', nodes, [
        ['listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`],
        ['/etc/nginx/tokens.example', `${folder}/tokens.example`],
        ...changes,
      ]);
      return running(await startNginx(folder, config), { port, ca });
    },
  },
  Caddy: {
    isInstalled: existsSync(CADDY),
    async start(nodes, changes = []) {
      const { folder, port, ca } = await newPlace();
      const certificate = `tls ${folder}/tokens.example.pem ${folder}/tokens.example.key`;
      const site = `{\nadmin off\nauto_https off\n}\nhttps://tokens.example:${port} {\n${certificate}\n`;
      const config = deployed('Caddyfile', nodes, [['tokens.example {\n', site], ...changes]);
      return running(await startCaddy(folder, config), { port, ca });
    },
  },
};

interface Call {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** @default a new connection for this call */
  readonly agent?: Agent;
}

/** Calls a proxy, with the target as it is. Rejects if there is no answer. */
export async function callProxy(
  { port, ca }: DeployedProxy,
  target: string,
  { method = 'GET', headers = {}, body = '', agent }: Call = {},
): Promise<{ readonly status: number | undefined; readonly body: string }> {
  const sent = request({
    ...{ host: '127.0.0.1', port, ca, servername: 'tokens.example', agent: agent ?? false },
    ...{ method, path: target },
    headers: { host: 'tokens.example', ...headers },
  });
  const [answer] = (await once(sent.end(body), 'response')) as [IncomingMessage];
  return { status: answer.statusCode, body: await text(answer) };
}

function deployed(file: string, nodes: readonly [number, number], changes: Changes): string {
  const folder = new URL('../../../examples/run/deploy/', import.meta.url);
  const local = NODES.map((node, index) => [node, `127.0.0.1:${nodes[index]}`] as const);
  return replaceAll(readFileSync(new URL(file, folder), 'utf8'), [...local, ...changes]);
}

/** A folder with a certificate that signs itself, and a free port. */
async function newPlace() {
  const folder = newFolder();
  const { cert } = makeCertificate(`${folder}/tokens.example`, 'tokens.example');
  return { folder, port: await freePort(), ca: cert };
}

async function startCaddy(folder: string, config: string): Promise<ChildProcess> {
  const file = `${folder}/Caddyfile`;
  writeFileSync(file, config);
  const child = spawn(CADDY, ['run', '--config', file, '--adapter', 'caddyfile'], {
    env: { HOME: folder },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  child.stderr.on('data', (more) => {
    log += more;
  });
  while (!log.includes('serving initial configuration')) await once(child.stderr, 'data');
  return child;
}

function running(child: ChildProcess, place: Omit<DeployedProxy, 'stop'>): DeployedProxy {
  return { ...place, stop: () => void child.kill() };
}
