import { subscribe } from 'node:diagnostics_channel';
import type { TokenEvent } from '../../events.ts';
import type { TokenService } from '../../service.ts';
import { count } from '../terminal/layout.ts';
import { theLog } from './logs/log.ts';
import type { ServeSettings } from './settings.ts';

type UpkeepSettings = Pick<ServeSettings, 'purgeAfter'>;

/** Lets a service remove old records in the background until it is closed, unless that is off. */
export function startUpkeep(
  tokens: Pick<TokenService, 'upkeep'>,
  { purgeAfter }: UpkeepSettings,
): void {
  if (purgeAfter !== 'off') tokens.upkeep({ purgeAfterDays: purgeAfter });
}

/** Logs the number of removed records, each time that some were removed, and why none are. */
export function reportPurges({ purgeAfter }: UpkeepSettings): void {
  if (purgeAfter === 'off') return;
  subscribe('tokenwright:purged', (event) => {
    const { count: number, early } = event as Extract<TokenEvent, { type: 'purged' }>;
    if (early === true) return;
    const removed = count(number, 'record');
    theLog().info(
      `removed ${removed} of tokens that expired or were revoked more than ${purgeAfter} days ago`,
    );
  });
  subscribe('tokenwright:clock_ahead', () => {
    theLog().warn(
      'no old records are removed: the clock of this process is more than a day ahead of all that the store knows. Set it; if it is right, the service goes on by itself',
    );
  });
}
