// One of several processes that poll for the same tokens. Arguments: the place of the store as JSON, the key as
// JSON, and `broken` for a store whose compare-and-set always succeeds, which is the control.
import { isTokenError, type KeyOptions, TokenRequests, TokenService } from '../../src/index.ts';
import { openStore } from '../stores/engines.ts';

/** What comes as a message: device codes, each polled so many times at once. */
export interface PollJob {
  readonly client: string;
  readonly deviceCodes: readonly string[];
  readonly times: number;
}

/** A token that a poll has got, or the end of a job. */
export type PollNews = { readonly value: string } | { readonly isDone: true };

const [, , place = '', key = '', control] = process.argv;
const { store, close } = openStore(JSON.parse(place));
const keys: KeyOptions[] = [JSON.parse(key)];
const tokens = new TokenService({ store, keys, prefix: 'acme', deadlineMs: 20_000 });
const { requests: kept } = store;
const requests = new TokenRequests({
  tokens,
  verificationUri: 'https://shop.example/approve',
  ...(control === 'broken' && {
    store: {
      insert: (...all) => kept.insert(...all),
      find: (asked) => kept.find(asked),
      purge: (...all) => kept.purge(...all),
      replace: async (next) => {
        await kept.replace(next);
        return true;
      },
    },
  }),
});

process.on('message', async ({ client, deviceCodes, times }: PollJob) => {
  for (const code of deviceCodes)
    await Promise.all(Array.from({ length: times }, () => poll(code, client)));
  tell({ isDone: true });
});
process.on('disconnect', async () => {
  await tokens.close().catch(() => {});
  await close().catch(() => {});
  process.exit();
});

async function poll(deviceCode: string, client: string): Promise<void> {
  try {
    const { token } = await requests.poll(deviceCode, { client });
    if (token !== undefined) tell({ value: token.value });
  } catch (error) {
    // The store was busy: nothing was issued, or its answer was lost.
    if (!isTokenError(error)) throw error;
  }
}

function tell(news: PollNews): void {
  process.send?.(news);
}
