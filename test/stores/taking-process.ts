// One of several processes that share a limit: spends a part of each lease and gives the rest back, until
// nothing is left. Reports how many uses it has spent.
import { openStore, type StorePlace } from './engines.ts';

interface Job {
  readonly place: StorePlace;
  readonly key: string;
  readonly limit: number;
  readonly callers: number;
}

const { place, key, limit, callers }: Job = JSON.parse(process.argv[2] ?? '');
const {
  store: { leases },
  close,
} = openStore(place);
const until = new Date('2100-01-01T00:00:00.000Z');

async function spend(caller: number): Promise<number> {
  let spent = 0;
  for (let round = caller; ; round += 1) {
    const want = 1 + (round % 7);
    const [granted = 0] = await leases.take([{ key, window: 0, limit, want, until }]);
    if (granted === 0) return spent;
    const used = Math.ceil(granted / 2);
    spent += used;
    const rest = { key, window: 0, amount: granted - used };
    if (granted > used) await leases.giveBack([rest]);
  }
}

// The parent starts all processes together when the last one is ready.
process.send?.('ready');
process.once('message', async () => {
  const spent = await Promise.all(Array.from({ length: callers }, (_, caller) => spend(caller)));
  await close();
  process.send?.(
    spent.reduce((sum, each) => sum + each, 0),
    () => process.disconnect(),
  );
});
