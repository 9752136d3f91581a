import { subscribe } from 'node:diagnostics_channel';
import type { TokenService } from '../service.ts';
import { count } from './layout.ts';
import { theLog } from './log.ts';
import type { ServeSettings } from './settings.ts';

type UpkeepSettings = Pick<ServeSettings, 'purgeAfter'>;

/** Lets a service remove old records in the background until it is closed, unless that is off. */
export function startUpkeep(
  tokens: Pick<TokenService, 'upkeep'>,
  { purgeAfter }: UpkeepSettings,
): void {
  if (purgeAfter !== 'off') tokens.upkeep({ purgeAfterDays: purgeAfter });
}

/** Logs the number of removed records, each time that some were removed. */
export function reportPurges({ purgeAfter }: UpkeepSettings): void {
  if (purgeAfter === 'off') return;
  subscribe('tokenwright:purged', (event) => {
    const removed = count((event as { readonly count: number }).count, 'record');
    theLog().info(
      `removed ${removed} of tokens that expired or were revoked more than ${purgeAfter} days ago`,
    );
  });
}
