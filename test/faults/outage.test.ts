import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateKey, MemoryTokenStore, TokenService, type TokenStore } from '../../src/index.ts';
import { faults, type StoreFault, withFaults } from '../../src/testing/index.ts';
import { withDeadline } from '../../src/time/deadline.ts';
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

/** The call was not carried out, may not have been, or may be lost in a failover. */
const UNKNOWN = ['store_unavailable', 'durability_unconfirmed'];
/** Few, so that a leaked one is noticed. */
const CONNECTIONS = 2;
const WITNESS_MS = 5000;
const keys = [generateKey()];

/** Servers behind proxies, and a service that runs through all of their faults. */
interface Rig {
  readonly servers: engines.Servers;
  readonly proxies: readonly TcpProxy[];
  readonly opened: engines.Opened;
  readonly tokens: TokenService;
  /** A second service with the same keys, a direct connection to the servers and a longer deadline. */
  readonly witness: TokenService;
  open(deadlineMs: number): engines.Opened;
  close(): Promise<void>;
}

interface Fault {
  readonly name: string;
  /** Starts the fault; resolves to a function that ends it. */
  begin(rig: Rig): Promise<() => unknown>;
}

const onTheWay = (name: string, mode: Mode): Fault => ({
  name,
  async begin(rig) {
    await setProxies(rig, mode);
    return () => setProxies(rig, 'pass');
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

/** Not for clusters: they use the same drivers, and take seconds to recover. */
const FAULTS_OF_ONE: readonly Fault[] = [
  onTheWay('answers arrive at one byte a second', 'trickle'),
  onTheWay('answers are random bytes', 'garbage'),
  onTheWay('answers take a second', { delayMs: 1000 }),
  inTheServers('the server is killed and restarted', engines.kill, (server) => server.restart()),
  inTheServers('the server is shut down and restarted', engines.shutDown, (server) =>
    server.restart(),
  ),
];

const POOL_IS_TAKEN: Fault = {
  name: 'other callers hold all connections of the pool',
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
    describe.skipIf(engines.isMissing(driver))('in an outage', () => {
      let rig: Rig;

      beforeAll(async () => {
        rig = await startRig(driver);
      });

      afterAll(() => rig?.close());

      it.for(faultsOf(driver))(
        'rejects in time and recovers within two seconds when $name',
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

      it('recovers within two seconds if idle connections have died', async ({ annotate }) => {
        await setProxies(rig, 'halfOpen');
        await setProxies(rig, 'pass');

        const recoveryMs = await recovery(rig.tokens);

        await annotate(`back after ${inWords(recoveryMs)}`);
        expect(recoveryMs).toBeLessThan(RECOVERY_MS);
      });

      it('fails these checks if the store hides errors (the control)', async () => {
        const tokens = serviceOver(withFaults(rig.opened.store, lying));
        const subjects = await prepare(tokens);

        await setProxies(rig, 'refuse');
        const answers = await callAll(tokens, subjects);
        await setProxies(rig, 'pass');

        const found = violations(answers, 'store_unavailable').join();
        expect(found).toContain('verify: wrong: unknown');
        expect(found).toContain('issue: right');
        expect(found).toContain('revoke: wrong: false');
        expect(found).toContain('list: wrong');
      });

      it('fails these checks if its deadline is too long (the control)', async () => {
        const opened = rig.open(10_000);
        const tokens = serviceOver(opened.store, 10_000);
        const subjects = await prepare(tokens);

        await setProxies(rig, 'hang');
        const answers = await callAll(tokens, subjects);
        await setProxies(rig, 'pass');
        await opened.close();

        expect(violations(answers, 'store_unavailable').join()).toContain('verify: no answer');
      });
    });
  },
);

describe('the outage checks', () => {
  it('detect a service that does not recover', async () => {
    const tokens = serviceOver(withFaults(new MemoryTokenStore(), faults.hang()));

    expect(await recovery(tokens)).toBe(Number.POSITIVE_INFINITY);
  });

  it('detect an acknowledged write that is missing', async () => {
    const tokens = serviceOver(withFaults(new MemoryTokenStore(), pretending));
    const subjects = await prepare(tokens);

    const answers = await callAll(tokens, subjects);

    expect(await lost(tokens, subjects, answers)).toContain('revoke was acknowledged');
  });
});

/** Answers "not found" when the store fails. */
const lying: StoreFault = ({ method, args }, run) =>
  withDeadline(run(), DEADLINE_MS / 3).catch(() => {
    if (method === 'page') return [];
    return method === 'find' ? (args[0] as readonly unknown[]).map(() => undefined) : false;
  });

/** Acknowledges revocations without carrying them out. */
const pretending: StoreFault = async ({ method }, run) => (method === 'revoke' ? true : run());

async function startRig(driver: engines.Driver): Promise<Rig> {
  // Six nodes that wait for one disk would be too slow for these short deadlines.
  const settings = driver.engine === 'redisCluster' ? { appendfsync: 'everysec' } : {};
  const servers = await engines.start(driver, settings);
  await driver.prepare(servers.url);
  const proxies = await Promise.all(servers.nodes.map(({ port }) => startProxy(port)));
  const ports = new Map(servers.nodes.map(({ port }, index) => [port, proxies[index]?.port ?? 0]));
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

async function setProxies({ proxies }: Rig, mode: Mode): Promise<void> {
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
