import type { DoctorOptions, StoreFinding } from '../../ports/token-store.ts';
import { withDeadline } from '../../time/deadline.ts';
import { type Check, findingsOf, MAX_SKEW_MS, measureSkew } from '../shared/doctor.ts';
import { ANSWER_MS, type Connection, type Driver } from './driver.ts';

/** Facts that a server reports about itself. */
interface ServerFacts {
  readonly address: string;
  /** Whether the client is a cluster client. */
  readonly isInCluster: boolean;
  /** How many replicas the store waits for. */
  readonly awaitedReplicas: number;
  readonly info: ReadonlyMap<string, string>;
  /** Undefined if this user may not read settings. */
  readonly settings: ReadonlyMap<string, string> | undefined;
  readonly skewMs: number;
}

type Problem = readonly [text: string, isFound: (server: ServerFacts) => boolean];

const PROBLEMS: Readonly<Record<string, Problem>> = {
  redis_too_old: [
    'is older than Redis 6.2: writes fail; upgrade it',
    ({ info }) => isTooOld(info.get('redis_version') ?? ''),
  ],
  connected_to_replica: [
    'is a replica, which may not have the latest revocations: all calls are refused; connect to the primary',
    ({ info }) => info.get('role') === 'slave',
  ],
  client_knows_no_cluster: [
    'is part of a cluster, but this client is not a cluster client: tokens on other servers cannot be reached; connect with a cluster client',
    ({ info, isInCluster }) => !isInCluster && info.get('cluster_enabled') === '1',
  ],
  cluster_not_ok: [
    'reports that the cluster is not ok: some tokens cannot be verified; see CLUSTER INFO',
    ({ info }) => isOther(info.get('cluster_state'), 'ok'),
  ],
  append_only_off: [
    'has no append-only file: a crash undoes everything since the last snapshot, so that new tokens are missing and revoked ones are valid again; set appendonly to yes',
    ({ info }) => info.get('aof_enabled') === '0',
  ],
  append_fsync_not_always: [
    'does not sync its append-only file before it answers: a crash of the server process loses nothing, but a power failure loses up to two seconds of acknowledged writes; set appendfsync to always',
    ({ info, settings }) =>
      info.get('aof_enabled') === '1' && isOther(settings?.get('appendfsync'), 'always'),
  ],
  eviction_possible: [
    'evicts keys, including tokens, when its memory is full; set maxmemory-policy to noeviction',
    ({ settings }) =>
      isOther(settings?.get('maxmemory'), '0') &&
      isOther(settings?.get('maxmemory-policy'), 'noeviction'),
  ],
  replicas_missing: [
    'has fewer replicas than the store waits for: every write ends with durability_unconfirmed',
    ({ info, awaitedReplicas }) => replicasIn(info) < awaitedReplicas,
  ],
  replicas_not_awaited: [
    'has replicas that the store does not wait for: a failover loses the writes that have not reached them; set the option replicas to 1 or more',
    ({ info, awaitedReplicas }) => awaitedReplicas === 0 && replicasIn(info) > 0,
  ],
  min_replicas_not_set: [
    'continues to accept writes when it is cut off from its replicas, and loses them when a replica takes over; set min-replicas-to-write to 1 or more',
    ({ info, settings }) => replicasIn(info) > 0 && settings?.get('min-replicas-to-write') === '0',
  ],
  clock_skew: [
    'has a clock that differs from the one of this process by more than a second: tokens expire by the clock of the process; synchronize all clocks, for example with NTP',
    ({ skewMs }) => skewMs > MAX_SKEW_MS,
  ],
  settings_unreadable: [
    'does not let this user read its settings: check yourself that appendfsync is always, maxmemory-policy is noeviction and min-replicas-to-write is 1 or more, and, in a cluster, that cluster-node-timeout is 2000 or more',
    ({ settings }) => settings === undefined,
  ],
};

/** A finding names all servers that have the problem. */
const CHECKS: readonly Check<readonly ServerFacts[]>[] = Object.entries(PROBLEMS).map(
  ([code, [text, isFound]]) => ({
    code,
    isFound: (servers) => servers.some(isFound),
    message: (servers) => `${addressesOf(servers.filter(isFound))} ${text}`,
  }),
);

/** Weaknesses of every cluster, which no setting removes. */
const FULL_CHECKS: readonly Check<readonly ServerFacts[]>[] = [
  {
    code: 'primary_replaceable',
    isFound: (servers) => servers.some(isReplaceable),
    message: (servers) => {
      const found = servers.filter(isReplaceable);
      return `${addressesOf(found)} can be replaced by a replica if paused for longer than cluster-node-timeout (${timeoutsOf(found)}): when it continues, this process ignores its answers for half a second, but a process that started during the pause may accept a revoked token for some milliseconds. If an operator replaces it earlier (CLUSTER FAILOVER FORCE or TAKEOVER), every process may do so: restart a primary that hangs before you replace it`;
    },
  },
];

function isReplaceable({ isInCluster, info }: ServerFacts): boolean {
  return isInCluster && info.get('cluster_enabled') === '1' && replicasIn(info) > 0;
}

function addressesOf(servers: readonly ServerFacts[]): string {
  const addresses = servers.map(({ address }) => address).join(', ');
  return servers.length > 1 ? `each of ${addresses}` : addresses;
}

function timeoutsOf(servers: readonly ServerFacts[]): string {
  const known = servers.map(({ settings }) => settings?.get('cluster-node-timeout') ?? 'unknown');
  return `${[...new Set(known)].join(' or ')} ms`;
}

export async function examine(
  driver: Driver,
  awaitedReplicas: number,
  { full = false }: DoctorOptions,
): Promise<StoreFinding[]> {
  const known = { isInCluster: driver.isCluster, awaitedReplicas };
  const servers = driver
    .primaries()
    .map(async (primary) => ({ ...known, ...(await factsOf(primary)) }));
  return findingsOf(full ? [...CHECKS, ...FULL_CHECKS] : CHECKS, await Promise.all(servers));
}

async function factsOf(connecting: Promise<Connection>) {
  const connection = await withDeadline(connecting, ANSWER_MS);
  const ask = (...command: [string, ...string[]]) =>
    withDeadline(connection.send(command), ANSWER_MS);
  const { skewMs } = await measureSkew(() => ask('time'), millisecondsIn);
  const info = readInfo(await ask('info'));
  const cluster = info.get('cluster_enabled') === '1' ? await ask('cluster', 'info') : '';
  return {
    address: connection.address,
    info: new Map([...info, ...readInfo(cluster)]),
    settings: await readServerSettings((name) => ask('config', 'get', name)),
    skewMs,
  };
}

/** `TIME` answers with seconds and microseconds. */
function millisecondsIn(answer: unknown): number {
  const [seconds, microseconds] = answer as readonly unknown[];
  return Number(seconds) * 1000 + Number(microseconds) / 1000;
}

function readInfo(answer: unknown): Map<string, string> {
  const lines = String(answer).split('\r\n');
  return new Map(lines.map((line) => line.split(':', 2) as [string, string]));
}

function replicasIn(info: ReadonlyMap<string, string>): number {
  return Number(info.get('connected_slaves') ?? 0);
}

/** By name, because all settings together include passwords. */
const SERVER_SETTINGS = [
  'appendfsync',
  'maxmemory',
  'maxmemory-policy',
  'min-replicas-to-write',
  'cluster-node-timeout',
] as const;

async function readServerSettings(
  read: (name: string) => Promise<unknown>,
): Promise<ReadonlyMap<string, string> | undefined> {
  try {
    const answers = await Promise.all(SERVER_SETTINGS.map(read));
    return new Map(SERVER_SETTINGS.map((name, index) => [name, settingIn(answers[index], name)]));
  } catch {
    return undefined;
  }
}

/** `CONFIG GET` answers with a list of names and values, or with a map in RESP 3. */
export function settingIn(answer: unknown, name: string): string {
  if (Array.isArray(answer)) return String(answer[1]);
  if (answer instanceof Map) return String(answer.get(name));
  return String((answer as Record<string, unknown>)[name]);
}

function isOther(value: string | undefined, wanted: string): boolean {
  return value !== undefined && value !== wanted;
}

/** Redis 6.2 is the first version with `ZADD … LT`. */
function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major < 6 || (major === 6 && minor < 2);
}
