import { EventEmitter, once } from 'node:events';
import { Agent } from 'node:https';
import pg from 'pg';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { freePort } from '../../servers.ts';
import { ACCOUNT, newFolder, run, serve } from '../cli/support.ts';
import { newStore } from './databases.ts';
import { callProxy, type DeployedProxy, PROXIES } from './deployed-proxy.ts';

const { postgres } = inject('servers');
const CLIENTS = 4;
/** Rounds of calls before the first restart, and after the last one. */
const ROUNDS = 20;

const account = { authorization: `Basic ${btoa('ada:correct-horse')}` };
const resourceServer = { authorization: `Basic ${btoa('shop:battery-staple')}` };
const scopes = ['GET:acme.example/status'];

type Changes = readonly (readonly [string, string])[];

/** The file as most people write it at first. */
const DEFAULTS: Changes = [
  [' max_fails=0;', ';'],
  ['  keepalive_timeout 900ms;\n', ''],
];

describe.runIf(postgres && PROXIES.nginx.isInstalled)(
  'two nodes that restart one after the other',
  { timeout: 300_000 },
  () => {
    it('lose no call behind the nginx of examples/run/deploy', async () => {
      const { load, issued } = await restartUnderLoad([]);

      expect(load.failures).toEqual([]);
      expect(load.rounds).toBeGreaterThan(2 * ROUNDS);
      expect(issued).toBe(load.rounds);
    });

    it('lose calls if nginx has its defaults (the control)', async () => {
      const { load } = await restartUnderLoad(DEFAULTS);

      expect(load.failures).toContain('POST /token: 502');
    });
  },
);

/** Restarts two nodes on one database, each when the other is ready, while clients call a proxy. */
async function restartUnderLoad(changes: Changes) {
  const { flags, tables } = newStore('postgres');
  const data = newFolder();
  const environment = { TOKENWRIGHT_INTROSPECTION: 'shop:battery-staple' };
  const proxied = ['--trust-proxy', '127.0.0.1', '--max-tokens', '1000000'];
  const settings = ['--data', data, ...flags, ...ACCOUNT, ...proxied];
  await run(['keys', 'new', '--data', data]);
  const startOn = (port: number) => serve([...settings, '--port', `${port}`], environment);
  const [first, second] = [await freePort(), await freePort()];
  const nodes = new Map([first, second].map((port) => [port, startOn(port)]));
  await Promise.all(nodes.values());
  const proxy = await PROXIES.nginx.start([first, second], changes);
  onTestFinished(() => proxy.stop());
  const load = new Load(proxy);

  await load.moreRounds(ROUNDS);
  for (const [port, node] of nodes) {
    expect(await (await node).stop()).toMatchObject({ code: 0 });
    const { url } = await startOn(port);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
  }
  await load.moreRounds(ROUNDS);
  await load.end();
  return { load, issued: await countOf(`${tables}_tokens`) };
}

/** Clients that issue, list and introspect tokens without a pause, each on a connection of its own. */
class Load {
  readonly failures: string[] = [];
  rounds = 0;
  readonly #proxy: DeployedProxy;
  readonly #clients: Promise<unknown>;
  readonly #progress = new EventEmitter();
  #isOver = false;

  constructor(proxy: DeployedProxy) {
    this.#proxy = proxy;
    this.#clients = Promise.all(Array.from({ length: CLIENTS }, () => this.#client()));
  }

  /** Resolves when there were so many rounds more. */
  async moreRounds(count: number): Promise<void> {
    const until = this.rounds + count;
    while (this.rounds < until) await once(this.#progress, 'round');
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#clients;
  }

  async #client(): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!this.#isOver) {
      await this.#round(agent);
      this.rounds += 1;
      this.#progress.emit('round');
    }
    agent.destroy();
  }

  async #round(agent: Agent): Promise<void> {
    const json = { ...account, 'content-type': 'application/json' };
    const issued = await this.#call(agent, 'POST /token', json, JSON.stringify({ scopes }));
    await this.#call(agent, 'GET /token?limit=10', account);
    if (issued === undefined) return;
    const form = { ...resourceServer, 'content-type': 'application/x-www-form-urlencoded' };
    const { token } = JSON.parse(issued);
    const verdict = await this.#call(agent, 'POST /introspect', form, `token=${token}`);
    if (verdict !== undefined) expect(JSON.parse(verdict)).toMatchObject({ active: true });
  }

  /** Returns the body of an answer with 200, and notes any other answer or none. */
  async #call(agent: Agent, name: string, headers: Record<string, string>, body?: string) {
    const [method = '', target = ''] = name.split(' ');
    const answer = await callProxy(this.#proxy, target, { method, headers, body, agent }).catch(
      ({ message }: Error) => ({ status: message, body: '' }),
    );
    if (answer.status === 200) return answer.body;
    this.failures.push(`${name}: ${answer.status}`);
    return undefined;
  }
}

async function countOf(table: string): Promise<number> {
  const client = new pg.Client({ connectionString: postgres });
  await client.connect();
  const { rows } = await client.query(`SELECT count(*)::int AS count FROM ${table}`);
  await client.end();
  return rows[0].count;
}
