import { MAX_REVIEWED_DAYS } from '../../../bounds.ts';
import {
  generateKey,
  type ReviewInput,
  type TokenFinding,
  type TokenService,
} from '../../../index.ts';
import type { ScopeCatalog } from '../../../scope/index.ts';
import { count } from '../../../text/wording.ts';
import { readCatalog } from '../../server/files/catalog-files.ts';
import { warn } from '../../server/logs/log.ts';
import { readSettings, STORE_SETTINGS } from '../../server/settings.ts';
import { usageToRead } from '../../server/stores/counts.ts';
import { type OpenStore, storeTarget, withStore } from '../../server/stores/open.ts';
import { readFlag, wholeNumber } from '../../terminal/kinds.ts';
import { listFindings, printable } from '../../terminal/layout.ts';
import type { ReviewDays } from '../account/client.ts';
import { withClient } from '../account/connect.ts';
import { ACCOUNT_FLAGS, ACCOUNT_HELP, ROUTE_FLAGS, ROUTE_HELP } from '../account/flags.ts';
import { CLIENT_FAULT, command, type Ending, type Part, type PrintPart } from '../command.ts';
import { progressOn } from '../progress.ts';
import { STORE_CATALOG_FLAGS, STORE_FAULT, STORE_FLAGS } from './store-flags.ts';

/** A number of days that a review looks back or ahead. */
export const DAYS = wholeNumber(1, MAX_REVIEWED_DAYS);

/** Explains the codes. */
const FINDINGS_HELP = `  unused          was used, but not for --unused-for-days
  never_used      was issued longer ago than that, and was never used
  broad           may use every method or a whole host, or most of the catalog
  excess          is in use, but more than half of its scopes are not
  expiring        expires within --expiring-within-days, and is in use
  stale_secret    its value is older than --secret-older-than-days
  orphaned_scope  holds scopes that the catalog no longer has
  suspended       has been suspended for more than 90 days`;

const DAYS_FLAGS = {
  'unused-for-days': { type: 'string', value: 'DAYS', help: `${DAYS.values}; default 90` },
  'expiring-within-days': { type: 'string', value: 'DAYS', help: `${DAYS.values}; default 14` },
  'secret-older-than-days': { type: 'string', value: 'DAYS', help: `${DAYS.values}; default 180` },
} as const;

function readDays(flags: Readonly<Partial<Record<keyof typeof DAYS_FLAGS, string>>>): ReviewDays {
  const read = (name: keyof typeof DAYS_FLAGS) => readFlag(DAYS, name, flags[name]);
  return {
    unusedForDays: read('unused-for-days'),
    expiringWithinDays: read('expiring-within-days'),
    secretOlderThanDays: read('secret-older-than-days'),
  };
}

/**
 * Findings are printed one by one, so the column of codes is as wide as the widest of all codes.
 */
const CODE_WIDTH = Math.max(
  ...Object.keys({
    unused: true,
    never_used: true,
    broad: true,
    excess: true,
    expiring: true,
    stale_secret: true,
    orphaned_scope: true,
    suspended: true,
  } satisfies Record<TokenFinding['code'], true>).map(({ length }) => length),
);

function findingText(code: string, message: string): string {
  return listFindings([{ code: code.padEnd(CODE_WIDTH), message }]);
}

interface Counts {
  readonly findings: number;
  readonly tokens: number;
}

/** @param place such as `in the store` or `of the account` */
function endingOf({ findings, tokens }: Counts, place: string): Ending {
  const notes =
    findings === 0
      ? `nothing found ${place}`
      : `${count(findings, 'finding')} about ${count(tokens, 'token')} ${place}`;
  return { isInParts: true, notes, isNegative: findings > 0 };
}

/** Finds tokens of an account that somebody should look at. */
export const TOKEN_REVIEW = command({
  name: 'token review',
  summary: 'finds tokens of the account that somebody should look at',
  about: `It looks at active and suspended tokens once, newest first, and changes nothing. To review all accounts
of a store, use tokenwright review. What it finds:

${FINDINGS_HELP}

The first two, excess and expiring need a service that records uses.

With a store, give the catalog as to serve, for broad and orphaned_scope:
${ROUTE_HELP}

${ACCOUNT_HELP}`,
  flags: { ...ACCOUNT_FLAGS, ...ROUTE_FLAGS, ...DAYS_FLAGS },
  json: '[{ code, token, scopes, message }], as GET /review has them, with the facts of each finding, such as lastUsed in UNIX seconds',
  exits: { 0: 'nothing was found', 1: CLIENT_FAULT, 3: 'something was found' },
  example: {
    call: 'token review --account ada --unused-for-days 30',
    output: `never_used      7f3kQwB2mN8xR4tY6uZ1aC (ci) was not used since 2027-01-31, when
                counting of it began; revoke it if nobody needs it`,
  },
  async run(_, flags, print) {
    const days = readDays(flags);
    const use = { catalogFor: 'routing', showsUse: true } as const;
    return withClient(
      flags,
      async (client) => {
        const tokens = new Set<string>();
        let findings = 0;
        for await (const finding of client.review(days)) {
          const { id, name } = finding.token;
          const of = name === undefined ? '' : ` (${printable(name)})`;
          const message = `${printable(id)}${of} ${printable(finding.message)}`;
          await print({ text: findingText(printable(finding.code), message), json: finding });
          findings += 1;
          tokens.add(id);
        }
        return endingOf({ findings, tokens: tokens.size }, `of ${client.name}`);
      },
      use,
    );
  },
});

/** Finds tokens that somebody should look at. */
export const REVIEW = command({
  name: 'review',
  summary: 'finds tokens that somebody should look at: unused, broad, old or about to expire',
  about: `It reads all live tokens once and changes nothing. What it finds:

${FINDINGS_HELP}

The first two, excess and expiring need a service that records uses. Give --catalog as to serve, for
broad and orphaned_scope.`,
  flags: {
    ...STORE_FLAGS,
    account: { type: 'string', value: 'NAME', help: 'only the tokens of this account' },
    ...DAYS_FLAGS,
    ...STORE_CATALOG_FLAGS,
  },
  json: '[{ code, account, id, name, scopes, message }], with the facts of each finding, such as lastUsedAt',
  exits: { 0: 'nothing was found', 1: STORE_FAULT, 3: 'something was found' },
  example: {
    call: 'review --unused-for-days 30',
    output: `never_used      ada tw_1k1Ab3dE6… (ci) was not used since 2027-01-31, when
                counting of it began; revoke it if nobody needs it`,
  },
  async run(_, flags, print) {
    const input = { account: flags.account, ...readDays(flags) };
    const { catalog: paths } = readSettings(['catalog'], flags);
    const catalog = paths.length === 0 ? undefined : await readCatalog(paths, flags);
    const target = storeTarget(readSettings(STORE_SETTINGS, flags));
    const progress = progressOn(process.stderr);
    const onProgress = progress.of('reviewed');
    const printed: PrintPart = (part) => {
      // The answer and the progress may share a terminal.
      progress.end();
      return print(part);
    };
    try {
      const found = await withStore(target, (opened) =>
        printFindings(opened, catalog, { ...input, onProgress }, printed),
      );
      return endingOf(found, `in ${target.name}`);
    } finally {
      progress.end();
    }
  },
});

/** A service for the upkeep of a store, with the counts of its tokens if there are any. */
export async function serviceOf(opened: OpenStore, catalog?: ScopeCatalog): Promise<TokenService> {
  const { TokenService } = await import('../../../index.ts');
  const usage = await usageToRead(opened, warn);
  return new TokenService({
    store: opened.store,
    // Any key will do: no value is read or made.
    keys: [generateKey()],
    prefix: 'tw',
    ...(catalog && { catalog }),
    usage: usage !== undefined,
  });
}

/** Prints each finding when it is found: a store may hold millions of tokens. */
async function printFindings(
  opened: OpenStore,
  catalog: ScopeCatalog | undefined,
  input: ReviewInput,
  print: PrintPart,
): Promise<Counts> {
  const tokens = await serviceOf(opened, catalog);
  const counts = { findings: 0, tokens: 0 };
  let last: string | undefined;
  for await (const finding of tokens.review(input)) {
    await print(partOf(finding));
    counts.findings += 1;
    // The findings about a token come one after the other.
    if (finding.token.id !== last) counts.tokens += 1;
    last = finding.token.id;
  }
  return counts;
}

function partOf({ token, ...facts }: TokenFinding): Part {
  const { id, account, masked, name } = token;
  const of = name === undefined ? '' : ` (${printable(name)})`;
  const message = `${printable(account)} ${masked}${of} ${facts.message}`;
  return { text: findingText(facts.code, message), json: { ...facts, account, id, name } };
}
