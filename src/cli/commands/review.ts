import { MAX_REVIEWED_DAYS } from '../../bounds.ts';
import type { ReviewInput } from '../../input.ts';
import type { ScopeCatalog } from '../../scope/index.ts';
import type { TokenService } from '../../service.ts';
import type { TokenFinding } from '../../usage/findings.ts';
import { generateKey } from '../../values/keys.ts';
import { readCatalog } from '../catalog-files.ts';
import { command, findingsOutcome, type Outcome } from '../command.ts';
import { readFlag, wholeNumber } from '../kinds.ts';
import { count, printable } from '../layout.ts';
import { progressOn } from '../progress.ts';
import { readSettings, STORE_SETTINGS } from '../settings.ts';
import { warn } from '../start-checks.ts';
import { type OpenStore, storeTarget, withStore } from '../stores/open.ts';
import { usageToRead } from '../stores/usage.ts';
import { STORE_FAULT, STORE_FLAGS } from './store-flags.ts';

const DAYS = wholeNumber(1, MAX_REVIEWED_DAYS);

/** Finds tokens that somebody should look at. */
export const REVIEW = command({
  name: 'review',
  summary: 'finds tokens that somebody should look at: unused, broad, old or about to expire',
  about: `It reads all live tokens once and changes nothing. What it finds:

  unused          was used, but not for --unused-for-days
  never_used      was issued longer ago than that, and was never used
  broad           may use every method or a whole host, or most of the catalog
  excess          is in use, but more than half of its scopes are not
  expiring        expires within --expiring-within-days, and is in use
  stale_secret    its value is older than --secret-older-than-days
  orphaned_scope  holds scopes that the catalog no longer has
  suspended       has been suspended for more than 90 days

The first two, excess and expiring need a service that records uses. Give --catalog as to serve, for
broad and orphaned_scope.`,
  flags: {
    ...STORE_FLAGS,
    account: { type: 'string', value: 'NAME', help: 'only the tokens of this account' },
    'unused-for-days': { type: 'string', value: 'DAYS', help: `${DAYS.values}; default 90` },
    'expiring-within-days': { type: 'string', value: 'DAYS', help: `${DAYS.values}; default 14` },
    'secret-older-than-days': {
      type: 'string',
      value: 'DAYS',
      help: `${DAYS.values}; default 180`,
    },
    catalog: {
      type: 'string',
      multiple: true,
      value: 'FILE',
      help: 'the scopes that exist, as for serve; or TOKENWRIGHT_CATALOG',
    },
    granularity: {
      type: 'string',
      value: 'KIND',
      help: 'one scope for each operation or prefix of an OpenAPI document, as for serve',
    },
  },
  json: '[{ code, account, id, name, scopes, message }], with the facts of each finding, such as lastUsedAt',
  exits: { 0: 'nothing was found', 1: STORE_FAULT, 3: 'something was found' },
  example: {
    call: 'review --unused-for-days 30',
    output: `never_used  ada tw_1k1Ab3dE6… (ci) was not used since 2027-01-31, when
            counting of it began; revoke it if nobody needs it`,
  },
  async run(_, flags) {
    const input = {
      account: flags.account,
      unusedForDays: readFlag(DAYS, 'unused-for-days', flags['unused-for-days']),
      expiringWithinDays: readFlag(DAYS, 'expiring-within-days', flags['expiring-within-days']),
      secretOlderThanDays: readFlag(
        DAYS,
        'secret-older-than-days',
        flags['secret-older-than-days'],
      ),
    };
    const { catalog: paths } = readSettings(['catalog'], flags);
    const catalog = paths.length === 0 ? undefined : await readCatalog(paths, flags);
    const target = storeTarget(readSettings(STORE_SETTINGS, flags));
    const progress = progressOn(process.stderr);
    const onProgress = progress.of('reviewed');
    try {
      const found = await withStore(target, (opened) =>
        findingsIn(opened, catalog, { ...input, onProgress }),
      );
      return outcomeOf(found, target.name);
    } finally {
      progress.end();
    }
  },
});

/** A service for the upkeep of a store, with the counts of its tokens if there are any. */
export async function serviceOf(
  { store, usage: target }: OpenStore,
  catalog?: ScopeCatalog,
): Promise<TokenService> {
  const { TokenService } = await import('../../service.ts');
  const usage = target && (await usageToRead(target, warn));
  return new TokenService({
    store,
    // Any key will do: no value is read or made.
    keys: [generateKey()],
    prefix: 'tw',
    ...(catalog && { catalog }),
    ...(usage && { usage: { store: usage } }),
  });
}

async function findingsIn(
  opened: OpenStore,
  catalog: ScopeCatalog | undefined,
  input: ReviewInput,
): Promise<TokenFinding[]> {
  const tokens = await serviceOf(opened, catalog);
  const found: TokenFinding[] = [];
  for await (const finding of tokens.review(input)) found.push(finding);
  return found;
}

function outcomeOf(found: readonly TokenFinding[], name: string): Outcome {
  const listed = found.map(({ code, token, message }) => {
    const { account, masked, name } = token;
    const of = name === undefined ? '' : ` (${printable(name)})`;
    return { code, message: `${printable(account)} ${masked}${of} ${message}` };
  });
  const described = found.map(({ token, ...facts }) => {
    const { id, account, name } = token;
    return { ...facts, account, id, name };
  });
  return { ...findingsOutcome(listed, name), json: described, notes: notesOn(found, name) };
}

function notesOn(found: readonly TokenFinding[], name: string): string {
  const tokens = new Set(found.map(({ token }) => token.id)).size;
  return found.length === 0
    ? `nothing found in ${name}`
    : `${count(found.length, 'finding')} about ${count(tokens, 'token')} in ${name}`;
}
