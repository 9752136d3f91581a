// A process in which `Date` steps back by 110 minutes while a token with a TTL of one second is active.
// Prints whether it accepts the token before the step and after the expiry. Argument: `machine` for a service
// with the default clock, or `own` for the control, which passes the stepped time as a clock of its own.
import { setTimeout as delay } from 'node:timers/promises';
import { generateKey, MemoryTokenStore, TokenService } from '../../src/index.ts';
import { SCOPE } from '../support.ts';

const STEP_MS = 110 * 60 * 1000;
const LIFETIME_SECONDS = 1;
/** Longer than the TTL, even though time passes at nine tenths of its speed after a step back. */
const WAIT_MS = 1500;

let stepMs = 0;
const MachineDate = Date;
globalThis.Date = class extends MachineDate {
  constructor(...args: []) {
    // Without an argument, `new Date()` is the current time.
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
