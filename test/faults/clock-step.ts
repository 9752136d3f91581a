// A process whose machine steps its clock back by 110 minutes while a token of one second is active.
// Prints whether it accepts the token before, and until when after its expiry. Argument: "machine" for
// a service with the clock of the machine, or "own" for the control, with the same time as its own clock.
import { setTimeout as delay } from 'node:timers/promises';
import { generateKey, MemoryTokenStore, TokenService } from '../../src/index.ts';
import { SCOPE } from '../support.ts';

const STEP_MS = 110 * 60 * 1000;
const LIFETIME_SECONDS = 1;
/** Longer than a token lives, at nine tenths of the speed. */
const WAIT_MS = 1500;

let stepMs = 0;
const MachineDate = Date;
globalThis.Date = class extends MachineDate {
  constructor(...args: []) {
    // Without an argument it is this instant.
    super(...((args.length === 0 ? [MachineDate.now() + stepMs] : args) as []));
  }
} as DateConstructor;

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  ...(process.argv[2] === 'own' && { clock: { now: () => new Date() } }),
});
const { value } = await tokens.issue({
  account: 'ada',
  scopes: [SCOPE],
  ttlSeconds: LIFETIME_SECONDS,
});
const isAccepted = async () => (await tokens.verify(value, { scope: SCOPE })).ok;
const before = await isAccepted();
stepMs = -STEP_MS;
await delay(WAIT_MS);
process.stdout.write(JSON.stringify({ before, after: await isAccepted() }));
