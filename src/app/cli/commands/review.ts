import type { ReviewInput } from '../../../inputs/types.ts';
import type { ScopeCatalog } from '../../../scope/index.ts';
import type { TokenService } from '../../../service.ts';
import type { TokenFinding } from '../../../usage/findings.ts';
import { generateKey } from '../../../values/keys.ts';
import { readCatalog } from '../../server/files/catalog-files.ts';
import { readSettings, STORE_SETTINGS } from '../../server/settings.ts';
import { warn } from '../../server/start-checks.ts';
import { type OpenStore, storeTarget, withStore } from '../../server/stores/open.ts';
import { usageToRead } from '../../server/stores/usage.ts';
import { printable } from '../../terminal/layout.ts';
import { command, type Part, type PrintPart } from '../command.ts';
import { progressOn } from '../progress.ts';
import {
  type Counts,
  DAYS_FLAGS,
  endingOf,
  FINDINGS_HELP,
  findingText,
  readDays,
} from './review-parts.ts';
import { STORE_CATALOG_FLAGS, STORE_FAULT, STORE_FLAGS } from './store-flags.ts';

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
export async function serviceOf(
  { store, usage: target }: OpenStore,
  catalog?: ScopeCatalog,
): Promise<TokenService> {
  const { TokenService } = await import('../../../service.ts');
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
