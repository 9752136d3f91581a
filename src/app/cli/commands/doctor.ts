import { existsSync } from 'node:fs';
import {
  doctor,
  type StoreFinding,
  systemClock,
  type TokenId,
  type TokenStore,
  type UsageStore,
} from '../../../index.ts';
import { stepsOf } from '../../../records/steps.ts';
import { count } from '../../../text/wording.ts';
import { isExpired } from '../../../token/record.ts';
import { sealingKid } from '../../../values/value.ts';
import { readSettings, type ServeSettings, STORE_SETTINGS } from '../../server/settings.ts';
import { probeUsage } from '../../server/stores/counts.ts';
import { goneTokens } from '../../server/stores/gone-tokens.ts';
import {
  COUNTS_LOST,
  fileReason,
  messageOf,
  type OpenStore,
  storeTarget,
  withStore,
} from '../../server/stores/open.ts';
import { describeError } from '../../terminal/error-message.ts';
import { command, findingsOutcome } from '../command.ts';
import { STORE_FAULT, STORE_FLAGS } from './store-flags.ts';

/** Examines a store, and what counts the uses of its tokens. */
export const DOCTOR = command({
  name: 'store doctor',
  summary: 'finds settings and damage that put tokens at risk',
  about: `It examines the store that serve would use with the same flags and variables, the tables or files that
count the uses of limited tokens and hold requests for tokens, and the one that records all uses, but not with
TOKENWRIGHT_USAGE=off. It
changes no token and no setting.`,
  flags: {
    ...STORE_FLAGS,
    full: {
      type: 'boolean',
      help: 'also look for damage, which reads a whole SQLite file, report risks that no setting removes, find counts of tokens that are gone, and count the live tokens of each key',
    },
  },
  json: '{ findings: [{ code, message }], countedSince, keys: [{ kid, values, secrets }] } where countedSince is from when uses are counted, and keys come with --full, unless damage prevents it: live tokens that depend on each key, by their values and by the secrets it seals',
  exits: { 0: 'no problem was found', 1: STORE_FAULT, 3: 'a problem was found' },
  example: {
    call: 'store doctor --store postgres://ada@db.internal/acme',
    output: `fsync_off  if the machine goes down, acknowledged writes may be lost and the
           database damaged: fsync is off; turn it on`,
  },
  async run(_, { full = false, ...flags }) {
    const settings = readSettings([...STORE_SETTINGS, 'usage'], flags);
    const target = storeTarget(settings);
    const examined = await withStore(target, (opened) => examine(opened, settings, full));
    const { countedSince, keys } = examined;
    const findings = examined.findings.map((found) => {
      return { code: found.code, message: messageOf(found) };
    });
    const outcome = findingsOutcome(findings, target.name);
    const since = countedSince && `uses of tokens are counted since ${countedSince.toISOString()}`;
    const notes = [outcome.notes, since, ...(keys?.map(noteOn) ?? [])];
    return {
      ...outcome,
      json: { findings, countedSince, keys },
      notes: notes.filter((note) => note !== undefined).join('\n'),
    };
  },
});

interface Examined {
  readonly findings: readonly StoreFinding[];
  readonly countedSince: Date | undefined;
  readonly keys: readonly KeyUse[] | undefined;
}

async function examine(
  opened: OpenStore,
  settings: Pick<ServeSettings, 'usage'>,
  full: boolean,
): Promise<Examined> {
  const { store } = opened;
  const all = await doctor(store, { full });
  const found = all.filter(({ part }) => part === undefined);
  const isMissing = found.some(({ code }) => code === 'schema_missing');
  // `migrate` makes all tables, so the finding about this one is enough.
  const isCounted = !isMissing && settings.usage !== 'off';
  const counts = isCounted ? await usageFindings(opened, all) : undefined;
  const isReadable = counts?.since !== undefined;
  const others = isMissing
    ? []
    : all.filter(({ part }) => part === 'leases' || part === 'requests');
  // These reads may fail because of a table that was already found to be unreadable.
  const gone = full && isReadable ? await goneFindings(store.usage, store).catch(() => []) : [];
  const parts = [...others, ...(counts?.findings ?? [])].map((each) => withCure(each, opened));
  return {
    findings: [...found, ...parts, ...gone],
    countedSince: counts?.since,
    keys: full ? await keysIn(store, found) : undefined,
  };
}

/**
 * Counts what depends on each key. Returns `undefined` if a store in which something was found cannot be
 * read: an empty list would say that no token needs a key.
 */
async function keysIn(
  store: TokenStore,
  found: readonly StoreFinding[],
): Promise<readonly KeyUse[] | undefined> {
  try {
    return await keyUse(store, systemClock.now().getTime());
  } catch (error) {
    if (found.length === 0) throw error;
    return undefined;
  }
}

/** Finds counts of tokens that are gone. Reads the ids of all tokens with counts. */
async function goneFindings(usage: UsageStore, store: TokenStore): Promise<StoreFinding[]> {
  const gone = new Set<TokenId>();
  for await (const ids of goneTokens(usage, store)) for (const id of ids) gone.add(id);
  if (gone.size === 0) return [];
  const message = `${count(gone.size, 'removed token')} still ${gone.size === 1 ? 'has' : 'have'} counts of usage, which grow without end; tokenwright store purge removes them`;
  return [{ code: 'usage_left_over', message }];
}

/** Checks the counts of uses. A missing file is fine: nothing was counted yet. */
async function usageFindings(
  opened: OpenStore,
  all: readonly StoreFinding[],
): Promise<{ readonly findings: readonly StoreFinding[]; readonly since: Date | undefined }> {
  const found = all.filter(({ part }) => part === 'usage');
  const { file } = opened.usage;
  const isUnused = file !== undefined && !existsSync(file);
  if (isUnused || found.length > 0) return { findings: found, since: undefined };
  try {
    await probeUsage(opened);
    return { findings: [], since: await opened.store.usage.since?.() };
  } catch (error) {
    const message = `${UNREADABLE}: ${describeError(error)}`;
    return { findings: [{ code: 'usage_unusable', message, part: 'usage' }], since: undefined };
  }
}

const UNREADABLE = 'uses of tokens can be neither counted nor shown';

const CURES = {
  usage: {
    lost: COUNTS_LOST,
    file: 'Stop the service and move the file away; serve makes another one',
    table: 'tokenwright store migrate makes the table if it is missing',
  },
  leases: {
    lost: COUNTS_LOST,
    file: 'Stop the service and restore the file; without it, counts begin again',
    table: undefined,
  },
  requests: {
    lost: 'open requests for tokens are lost without it',
    file: 'Stop the service and move the file away; the next request makes another one',
    table: undefined,
  },
};

/** Names the place of a part that cannot be used, and says what to do. */
function withCure(finding: StoreFinding, opened: OpenStore): StoreFinding {
  const { code, message, part } = finding;
  if (part === undefined || !code.endsWith('_unusable')) return finding;
  const { name, file } = opened[part];
  const [risk, ...reason] = message.split(': ');
  const why = (file && fileReason(file, CURES[part].lost)) ?? reason.join(': ');
  const cure = CURES[part][file === undefined ? 'table' : 'file'];
  return { code, message: `${risk}: ${name}: ${why}${cure === undefined ? '' : `. ${cure}`}` };
}

function noteOn({ kid, values, secrets }: KeyUse): string {
  return `key ${kid}: made ${count(values, 'live value')}, and seals ${count(secrets, 'secret')}`;
}

/** How many live tokens depend on a key. */
interface KeyUse {
  readonly kid: string;
  /** Values that were made with it. */
  readonly values: number;
  /** Secrets that are sealed with it. */
  readonly secrets: number;
}

/** Counts for each key the live tokens that depend on it. Reads all records. */
async function keyUse(store: TokenStore, now: number): Promise<KeyUse[]> {
  const values = new Map<string, number>();
  const secrets = new Map<string, number>();
  const add = (counts: Map<string, number>, kid: string | undefined) => {
    if (kid !== undefined) counts.set(kid, (counts.get(kid) ?? 0) + 1);
  };
  for await (const records of stepsOf(store)) {
    for (const record of records) {
      if (record.revokedAt !== undefined || isExpired(record, now)) continue;
      for (const each of [record, ...(record.pending === undefined ? [] : [record.pending])]) {
        add(values, each.kid);
        add(secrets, sealingKid(each));
      }
    }
  }
  const kids = [...new Set([...values.keys(), ...secrets.keys()])].sort();
  return kids.map((kid) => {
    return { kid, values: values.get(kid) ?? 0, secrets: secrets.get(kid) ?? 0 };
  });
}
