import { printable } from '../../terminal/layout.ts';
import { withClient } from '../account/connect.ts';
import { ACCOUNT_FLAGS, ACCOUNT_HELP, ROUTE_FLAGS, ROUTE_HELP } from '../account/flags.ts';
import { command } from '../command.ts';
import { DAYS_FLAGS, endingOf, FINDINGS_HELP, findingText, readDays } from './review-parts.ts';
import { CLIENT_FAULT } from './token-help.ts';

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
