import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withDeadline } from '../../src/deadline.ts';
import { generateKey, MemoryTokenStore, TokenService, type TokenStore } from '../../src/index.ts';
import { faults, type StoreFault, withFaults } from '../../src/testing/index.ts';
import type { Server } from '../servers.ts';
import * as engines from './engines.ts';
import {
  type Answer,
  callAll,
  callTwice,
  DEADLINE_MS,
  lost,
  prepare,
  RECOVERY_MS,
  recovery,
  violations,
} from './outage.ts';
import { type Mode, startProxy, type TcpProxy } from './proxy.ts';

/** Not carried out, or not known to be, or not known to be safe. */
const UNKNOWN = ['store_unavailable', 'durability_unconfirmed'];
/** Few, so that one that is not given back is missed. */
const CONNECTIONS = 2;
const WITNESS_MS = 5000;
const keys = [generateKey()];

/** Servers with proxies before them, and a service that lives through all that befalls these. */
interface Rig {
  readonly servers: engines.Servers;
  readonly proxies: readonly TcpProxy[];
  readonly opened: engines.Opened;
  readonly tokens: TokenService;
  /** Another one with the same keys, with a way of its own to the servers, and with more time. */
  readonly witness: TokenService;
  open(deadlineMs: number): engines.Opened;
  close(): Promise<void>;
}

interface Fault {
  readonly name: string;
  /** Makes it so, and resolves to what ends it. */
  begin(rig: Rig): Promise<() => unknown>;
}

const onTheWay = (name: string, mode: Mode): Fault => ({
  name,
  async begin(rig) {
    await turn(rig, mode);
    return () => turn(rig, 'pass');
  },
});

type Work = (server: Server) => Promise<void>;

const inTheServers = (name: string, begin: Work, end: Work): Fault => ({
  name,
  async begin({ servers: { nodes } }) {
    await Promise.all(nodes.map(begin));
    return () => Promise.all(nodes.map(end));
  },
});

const FAULTS: readonly Fault[] = [
  onTheWay('the port is closed', 'refuse'),
  onTheWay('connections are reset', 'reset'),
  onTheWay('connections get no answer', 'hang'),
  onTheWay('connections are half open', 'halfOpen'),
  inTheServers('the server is stopped by SIGSTOP', engines.freeze, engines.thaw),
];

/** Not for clusters: they use the same drivers, and take seconds to be whole again. */
const FAULTS_OF_ONE: readonly Fault[] = [
  onTheWay('one byte comes a second', 'trickle'),
  onTheWay('random bytes come', 'garbage'),
  onTheWay('answers take a second', { delayMs: 1000 }),
  inTheServers('the server is killed and started again', engines.kill, (server) =>
    server.restart(),
  ),
  inTheServers('the server is shut down and started again', engines.shutDown, (server) =>
    server.restart(),
  ),
];

const POOL_IS_TAKEN: Fault = {
  name: 'others have all connections of the pool',
  begin: async ({ opened }) => (await opened.exhaust?.()) ?? (() => {}),
};

function faultsOf(driver: engines.Driver): readonly Fault[] {
  return [
    ...FAULTS,
    ...(driver.engine === 'redisCluster' ? [] : FAULTS_OF_ONE),
    ...(driver.hasPool ? [POOL_IS_TAKEN] : []),
  ];
}

describe.each([...engines.DRIVERS, ...engines.CLUSTER_DRIVERS])(
  'a service over $name',
  (driver) => {
    describe.skipIf(engines.isMissing(driver))('through outages', () => {
      let rig: Rig;

      beforeAll(async () => {
        rig = await startRig(driver);
      });

      afterAll(() => rig?.close());

      it.for(faultsOf(driver))(
        'refuses in time and is back soon when $name',
        async ({ begin }, { annotate }) => {
          const { tokens, witness, opened } = rig;
          const subjects = await prepare(witness);

          const underWay = callAll(tokens, subjects);
          const end = await begin(rig);
          const early = await underWay;
          const later = await callTwice(tokens, subjects);
          await end();
          const recoveryMs = await recovery(tokens);

          await annotate(`worst ${worst([...early, ...later])}, back after ${inWords(recoveryMs)}`);
          expect(violations(early, 'right', ...UNKNOWN)).toEqual([]);
          expect(violations(later, 'store_unavailable')).toEqual([]);
          expect(recoveryMs).toBeLessThan(RECOVERY_MS);
          expect(await lost(witness, subjects, early)).toEqual([]);
          expect(connectionsOf(rig)).toBeLessThanOrEqual(CONNECTIONS * rig.proxies.length);
          const giveBack = await opened.exhaust?.();
          giveBack?.();
        },
      );

      it('is back soon when its connections have died while nobody asked', async ({ annotate }) => {
        await turn(rig, 'halfOpen');
        await turn(rig, 'pass');

        const recoveryMs = await recovery(rig.tokens);

        await annotate(`back after ${inWords(recoveryMs)}`);
        expect(recoveryMs).toBeLessThan(RECOVERY_MS);
      });

      it('would notice: a store that takes an error for an answer', async () => {
        const tokens = serviceOver(withFaults(rig.opened.store, lying));
        const subjects = await prepare(tokens);

        await turn(rig, 'refuse');
        const answers = await callAll(tokens, subjects);
        await turn(rig, 'pass');

        const found = violations(answers, 'store_unavailable').join();
        expect(found).toContain('verify: wrong: unknown');
        expect(found).toContain('issue: right');
        expect(found).toContain('revoke: wrong: false');
        expect(found).toContain('list: wrong');
      });

      it('would notice: a service without a deadline', async () => {
        const opened = rig.open(10_000);
        const tokens = serviceOver(opened.store, 10_000);
        const subjects = await prepare(tokens);

        await turn(rig, 'hang');
        const answers = await callAll(tokens, subjects);
        await turn(rig, 'pass');
        await opened.close();

        expect(violations(answers, 'store_unavailable').join()).toContain('verify: no answer');
      });
    });
  },
);

describe('the checks of outages', () => {
  it('notice a service that is not back', async () => {
    const tokens = serviceOver(withFaults(new MemoryTokenStore(), faults.hang()));

    expect(await recovery(tokens)).toBe(Number.POSITIVE_INFINITY);
  });

  it('notice an acknowledged write that is missing', async () => {
    const tokens = serviceOver(withFaults(new MemoryTokenStore(), pretending));
    const subjects = await prepare(tokens);

    const answers = await callAll(tokens, subjects);

    expect(await lost(tokens, subjects, answers)).toContain('revoke was acknowledged');
  });
});

/** Takes whatever goes wrong for "there is no such thing". */
const lying: StoreFault = ({ method, args }, run) =>
  withDeadline(run(), DEADLINE_MS / 3).catch(() => {
    if (method === 'page') return [];
    return method === 'find' ? (args[0] as readonly unknown[]).map(() => undefined) : false;
  });

/** Says of each revocation that it was made. */
const pretending: StoreFault = async ({ method }, run) => (method === 'revoke' ? true : run());

async function startRig(driver: engines.Driver): Promise<Rig> {
  // Six nodes that wait for one disk would be too slow for deadlines as short as these.
  const settings = driver.engine === 'redisCluster' ? { appendfsync: 'everysec' } : {};
  const servers = await engines.start(driver, settings);
  await driver.prepare(servers.url);
  const proxies = await Promise.all(servers.nodes.map(({ port }) => startProxy(port)));
  const ports = new Map(servers.nodes.map(({ port }, place) => [port, proxies[place]?.port ?? 0]));
  const open = (deadlineMs: number) =>
    driver.open(servers.url, { deadlineMs, connections: CONNECTIONS, ports });
  const opened = open(DEADLINE_MS);
  const straight = driver.open(servers.url, { deadlineMs: WITNESS_MS });
  return {
    servers,
    proxies,
    opened,
    tokens: serviceOver(opened.store),
    witness: serviceOver(straight.store, WITNESS_MS),
    open,
    async close() {
      await opened.close();
      await straight.close();
      await Promise.all(proxies.map((proxy) => proxy.close()));
      await servers.stop();
    },
  };
}

async function turn({ proxies }: Rig, mode: Mode): Promise<void> {
  await Promise.all(proxies.map((proxy) => proxy.set(mode)));
}

function connectionsOf({ proxies }: Rig): number {
  return proxies.reduce((sum, { connections }) => sum + connections, 0);
}

function serviceOver(store: TokenStore, deadlineMs = DEADLINE_MS): TokenService {
  return new TokenService({ store, keys, prefix: 'acme', deadlineMs });
}

function worst(answers: readonly Answer[]): string {
  return inWords(Math.max(...answers.map(({ ms }) => ms)));
}

function inWords(ms: number): string {
  return `${Math.round(ms)} ms`;
}
