import { systemClock, withDeadline } from '../../clock.ts';
import type { StoreFinding } from '../../store.ts';
import type { Driver, Link } from './clients.ts';

const ANSWER_MS = 2000;
const MAX_SKEW_MS = 1000;
/** The first with `ZADD … LT`. */
const OLDEST_VERSION = [6, 2];

/** What a server says of itself. */
interface Checkup {
  readonly address: string;
  /** Whether the client knows of a cluster. */
  readonly isInCluster: boolean;
  readonly info: ReadonlyMap<string, string>;
  /** Nothing where this user may not read settings. */
  readonly settings: ReadonlyMap<string, string> | undefined;
  readonly skewMs: number;
}

interface Rule {
  readonly code: string;
  readonly message: string;
  isBroken(checkup: Checkup, replicas: number): boolean;
}

const RULES: readonly Rule[] = [
  {
    code: 'redis_too_old',
    message: 'is older than Redis 6.2: writes fail; upgrade it',
    isBroken: ({ info }) => isBefore(info.get('redis_version') ?? '', OLDEST_VERSION),
  },
  {
    code: 'connected_to_replica',
    message:
      'is a replica: it refuses writes, and its reads may not know of a revocation yet; connect to the primary',
    isBroken: ({ info }) => info.get('role') === 'slave',
  },
  {
    code: 'client_knows_no_cluster',
    message:
      'is a part of a cluster, of which this client knows nothing: tokens of other servers cannot be reached; connect with a cluster client',
    isBroken: ({ info, isInCluster }) => !isInCluster && info.get('cluster_enabled') === '1',
  },
  {
    code: 'cluster_not_ok',
    message:
      'says that the cluster is not ok: part of the tokens cannot be verified; see CLUSTER INFO',
    isBroken: ({ info }) => info.has('cluster_state') && info.get('cluster_state') !== 'ok',
  },
  {
    code: 'append_only_off',
    message:
      'keeps no append-only file: after a crash, tokens that were acknowledged are missing and revoked ones are back, as far as the last snapshot; set appendonly to yes',
    isBroken: ({ info }) => info.get('aof_enabled') === '0',
  },
  {
    code: 'append_fsync_not_always',
    message:
      'does not sync its append-only file before it answers: a crash of the server alone loses nothing, a loss of power up to two seconds of acknowledged writes; set appendfsync to always',
    isBroken: ({ info, settings }) =>
      info.get('aof_enabled') === '1' && isOther(settings?.get('appendfsync'), 'always'),
  },
  {
    code: 'eviction_possible',
    message:
      'throws keys away when its memory is full, tokens among them; set maxmemory-policy to noeviction',
    isBroken: ({ settings }) =>
      isOther(settings?.get('maxmemory'), '0') &&
      isOther(settings?.get('maxmemory-policy'), 'noeviction'),
  },
  {
    code: 'replicas_missing',
    message: 'has fewer replicas than the store waits for: each write is durability_unconfirmed',
    isBroken: ({ info }, replicas) => Number(info.get('connected_slaves') ?? 0) < replicas,
  },
  {
    code: 'replicas_not_awaited',
    message:
      'has replicas that the store does not wait for: a failover loses the writes that had not reached them; set replicas to 1 or more',
    isBroken: ({ info }, replicas) => replicas === 0 && Number(info.get('connected_slaves')) > 0,
  },
  {
    code: 'min_replicas_not_set',
    message:
      'goes on taking writes when it is cut off from its replicas, and loses them when one of these takes over; set min-replicas-to-write to 1 or more',
    isBroken: ({ info, settings }) =>
      Number(info.get('connected_slaves')) > 0 && settings?.get('min-replicas-to-write') === '0',
  },
  {
    code: 'clock_skew',
    message:
      'has a clock more than a second away from the one of this process: expiries are judged by the clocks of processes, so have all of them set by NTP',
    isBroken: ({ skewMs }) => Math.abs(skewMs) > MAX_SKEW_MS,
  },
  {
    code: 'settings_unreadable',
    message:
      'does not let this user read its settings: look yourself whether appendfsync is always, maxmemory-policy noeviction and min-replicas-to-write 1 or more',
    isBroken: ({ settings }) => settings === undefined,
  },
];

/** Looks at each primary; what is found on several of them is told once. */
export async function examine(driver: Driver, replicas: number): Promise<StoreFinding[]> {
  const checkups = await Promise.all(
    driver.masters().map((master) => checkUp(master, driver.isCluster)),
  );
  return RULES.flatMap(({ code, message, isBroken }) => {
    const broken = checkups.filter((checkup) => isBroken(checkup, replicas));
    if (broken.length === 0) return [];
    return [{ code, message: `${broken.map(({ address }) => address).join(', ')} ${message}` }];
  });
}

async function checkUp(connecting: Promise<Link>, isInCluster: boolean): Promise<Checkup> {
  const link = await withDeadline(connecting, ANSWER_MS);
  const ask = (...command: [string, ...string[]]) => withDeadline(link.send(command), ANSWER_MS);
  const before = systemClock.now().getTime();
  const time = (await ask('time')) as readonly unknown[];
  const middle = (before + systemClock.now().getTime()) / 2;
  const info = readInfo(await ask('info'));
  const cluster = info.get('cluster_enabled') === '1' ? await ask('cluster', 'info') : '';
  return {
    address: link.address,
    isInCluster,
    info: new Map([...info, ...readInfo(cluster)]),
    settings: await readSettings((name) => ask('config', 'get', name)),
    skewMs: Number(time[0]) * 1000 + Number(time[1]) / 1000 - middle,
  };
}

function readInfo(answer: unknown): Map<string, string> {
  const lines = String(answer).split('\r\n');
  return new Map(lines.map((line) => line.split(':', 2) as [string, string]));
}

/** By name, since all of them would hold passwords. */
const SETTINGS = ['appendfsync', 'maxmemory', 'maxmemory-policy', 'min-replicas-to-write'] as const;

async function readSettings(
  read: (name: string) => Promise<unknown>,
): Promise<ReadonlyMap<string, string> | undefined> {
  try {
    const answers = await Promise.all(SETTINGS.map(read));
    return new Map(SETTINGS.map((name, index) => [name, valueIn(answers[index], name)]));
  } catch {
    return undefined;
  }
}

/** Of a list of names and values, or by RESP 3 of a map. */
function valueIn(answer: unknown, name: string): string {
  if (Array.isArray(answer)) return String(answer[1]);
  if (answer instanceof Map) return String(answer.get(name));
  return String((answer as Record<string, unknown>)[name]);
}

function isOther(value: string | undefined, wanted: string): boolean {
  return value !== undefined && value !== wanted;
}

function isBefore(version: string, [major = 0, minor = 0]: readonly number[]): boolean {
  const [ours = 0, theirs = 0] = version.split('.').map(Number);
  return ours < major || (ours === major && theirs < minor);
}
