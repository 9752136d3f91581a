import { MAX_REVIEWED_DAYS } from '../../../bounds.ts';
import { toWire, toWireFinding, type WireFinding } from '../../../http/wire.ts';
import { generateKey, type TokenFinding, type TokenService } from '../../../index.ts';
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
import { catalogPaths, serviceUrl, withClient } from '../account/connect.ts';
import {
  ACCOUNT_FLAGS,
  ACCOUNT_HELP,
  type AccountFlags,
  ROUTE_FLAGS,
  ROUTE_HELP,
} from '../account/flags.ts';
import { CLIENT_FAULT, command, type Ending, type PrintPart } from '../command.ts';
import { progressOn } from '../progress.ts';

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

/** Finds tokens that somebody should look at. */
export const TOKEN_REVIEW = command({
  name: 'token review',
  summary: 'finds tokens that somebody should look at',
  about: `It looks at active and suspended tokens once, and changes nothing. In a store without --account, it
reviews the tokens of all accounts. What it finds:

${FINDINGS_HELP}

The first two, excess and expiring need a service that records uses.

With a store, give the catalog as to serve, for broad and orphaned_scope:
${ROUTE_HELP}

${ACCOUNT_HELP}`,
  flags: { ...ACCOUNT_FLAGS, ...ROUTE_FLAGS, ...DAYS_FLAGS },
  json: '[{ code, token, scopes, message }], as GET /review has them, with the facts of each finding, such as lastUsed in UNIX seconds; of all accounts also account',
  exits: { 0: 'nothing was found', 1: CLIENT_FAULT, 3: 'something was found' },
  example: {
    call: 'token review --account ada --unused-for-days 30',
    output: `never_used      7f3kQwB2mN8xR4tY6uZ1aC (ci) was not used since 2027-01-31, when
                counting of it began; revoke it if nobody needs it`,
  },
  async run(_, flags, print) {
    const days = readDays(flags);
    if (serviceUrl(flags) === undefined) return reviewStore(flags, days, print);
    return withClient(flags, async (client) => {
      return endingOf(await printFindings(client.review(days), print), `of ${client.name}`);
    });
  },
});

/** Reviews a store, which needs no keys. */
async function reviewStore(
  flags: AccountFlags,
  days: ReviewDays,
  print: PrintPart,
): Promise<Ending> {
  const { account } = flags;
  const paths = catalogPaths(flags);
  const catalog = paths.length === 0 ? undefined : await readCatalog(paths, flags);
  const target = storeTarget(readSettings(STORE_SETTINGS, flags));
  const progress = progressOn(process.stderr);
  const input = { ...days, account, onProgress: progress.of('reviewed') };
  const printed: PrintPart = (part) => {
    // The answer and the progress may share a terminal.
    progress.end();
    return print(part);
  };
  try {
    const counts = await withStore(target, async (opened) => {
      const tokens = await serviceOf(opened, catalog);
      return printFindings(asWritten(tokens.review(input), account), printed);
    });
    return endingOf(
      counts,
      account === undefined ? `in ${target.name}` : `of ${account} in ${target.name}`,
    );
  } finally {
    progress.end();
  }
}

/** Findings as a service writes them; those of all accounts each with its account. */
async function* asWritten(
  findings: AsyncIterable<TokenFinding>,
  only: string | undefined,
): AsyncGenerator<WireFinding & { readonly account?: string }> {
  for await (const finding of findings) {
    const { account } = finding.token;
    yield { ...(only === undefined && { account }), ...toWireFinding(finding, toWire) };
  }
}

/** Prints each finding when it is found: a store may hold millions of tokens. */
async function printFindings(
  findings: AsyncIterable<WireFinding & { readonly account?: string }>,
  print: PrintPart,
): Promise<Counts> {
  const counts = { findings: 0, tokens: 0 };
  let last: string | undefined;
  for await (const finding of findings) {
    const { code, token, account, message } = finding;
    const name = token.name === undefined ? '' : `(${token.name})`;
    const words = [account, token.id, name, message].filter(Boolean).join(' ');
    await print({ text: findingText(printable(code), printable(words)), json: finding });
    counts.findings += 1;
    // The findings about a token come one after the other.
    if (token.id !== last) counts.tokens += 1;
    last = token.id;
  }
  return counts;
}

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
