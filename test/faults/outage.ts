// Checks of a service while its store is down and after it is back, which report what is violated.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { type IssuedToken, isTokenError, type TokenService } from '../../src/index.ts';
import { withDeadline } from '../../src/time/deadline.ts';
import { NO_ID, OTHER_SCOPE, SCOPE } from '../support.ts';

/** The deadline of the tested services. */
export const DEADLINE_MS = 300;
export const RECOVERY_MS = 2000;

const SLACK_MS = 100;
/** How much of a delay a busy machine may explain. */
const MAX_LATE_MS = 200;
const PATIENCE_MS = DEADLINE_MS + SLACK_MS + MAX_LATE_MS;
/** Concurrent calls of each verb, far more than the pools have connections. */
const CALLS = 20;
const PAUSE_MS = 300;
/** A service has recovered after this many correct rounds in a row. */
const ROUNDS = 3;
const ROUND_PAUSE_MS = 20;
const OTHERS_MS = 20;

const NOT_YET: readonly string[] = ['store_unavailable', 'durability_unconfirmed'];

const account = 'ada';

/** Tokens that were issued before an outage. */
export interface Subjects {
  readonly live: IssuedToken;
  readonly revoked: IssuedToken;
  readonly changing: readonly IssuedToken[];
  readonly ending: readonly IssuedToken[];
}

/** The outcome of a call. */
export interface Answer {
  readonly verb: string;
  /** `right`, the code of an error, or what was wrong. */
  readonly outcome: string;
  readonly ms: number;
  /** How long this process was busy with other calls or was not scheduled. */
  readonly lateMs: number;
  /** Whether a service sees what the call acknowledged. */
  holds(tokens: TokenService): Promise<boolean>;
}

/** Issues them with a service that has a long deadline. */
export async function prepare(tokens: TokenService): Promise<Subjects> {
  const issue = () => tokens.issue({ account, scopes: [SCOPE] });
  const [live, revoked] = [await issue(), await issue()];
  await tokens.revoke(account, revoked.id);
  const [changing, ending] = [await many(issue), await many(issue)];
  return { live, revoked, changing, ending };
}

/** Calls each verb many times concurrently, and again after a pause. */
export async function callTwice(tokens: TokenService, subjects: Subjects): Promise<Answer[]> {
  const first = await callAll(tokens, subjects);
  await delay(PAUSE_MS);
  return [...first, ...(await callAll(tokens, subjects))];
}

/** Calls each verb many times concurrently. */
export async function callAll(
  tokens: TokenService,
  { live, revoked, changing, ending }: Subjects,
): Promise<Answer[]> {
  const start = performance.now();
  const calls = changing.flatMap((changed, index) => {
    const ended = ending[index] as IssuedToken;
    return [
      answerOf({
        verb: 'verify',
        answer: verdictOf(tokens, live.value),
        isRight: (verdict) => verdict === 'accepted',
      }),
      answerOf({
        verb: 'verify of a revoked token',
        answer: verdictOf(tokens, revoked.value),
        isRight: (verdict) => verdict === 'revoked',
      }),
      answerOf({
        verb: 'issue',
        answer: tokens.issue({ account, scopes: [SCOPE] }),
        isRight: () => true,
        holds: async (by, { value }) => (await verdictOf(by, value)) === 'accepted',
      }),
      answerOf({
        verb: 'modify',
        answer: tokens.modify(account, changed.id, { scopes: [OTHER_SCOPE] }),
        isRight: ({ scopes }) => scopes.join() === OTHER_SCOPE,
        holds: async (by) => (await verdictOf(by, changed.value, OTHER_SCOPE)) === 'accepted',
      }),
      answerOf({
        verb: 'revoke',
        answer: tokens.revoke(account, ended.id),
        isRight: (isRevoked) => isRevoked,
        holds: async (by) => (await verdictOf(by, ended.value)) === 'revoked',
      }),
      answerOf({
        verb: 'list',
        answer: tokens.list({ account, limit: 1000 }),
        isRight: (page) => page.tokens.some(({ id }) => id === live.id),
      }),
    ];
  });
  const startMs = performance.now() - start;
  const loop = monitorEventLoopDelay({ resolution: 1 });
  loop.enable();
  const answers = await Promise.all(calls);
  loop.disable();
  const lateMs = startMs + loop.max / 1e6;
  return answers.map((answer) => ({ ...answer, lateMs }));
}

/** The answers that are not allowed or came too late. */
export function violations(answers: readonly Answer[], ...allowed: readonly string[]): string[] {
  return answers
    .filter(({ outcome, ms, lateMs }) => {
      const allowedMs = DEADLINE_MS + SLACK_MS + Math.min(lateMs, MAX_LATE_MS);
      return !allowed.includes(outcome) || ms > allowedMs;
    })
    .map(({ verb, outcome, ms }) => `${verb}: ${outcome} after ${Math.round(ms)} ms`);
}

/** Acknowledged changes and whole tokens that `tokens` does not find. */
export async function lost(
  tokens: TokenService,
  { changing, ending }: Subjects,
  answers: readonly Answer[],
): Promise<string[]> {
  const losses: string[] = [];
  for (const { verb, outcome, holds } of answers) {
    if (outcome === 'right' && !(await holds(tokens))) losses.push(`${verb} was acknowledged`);
  }
  for (const { value } of [...changing, ...ending]) {
    const verdict = await verdictOf(tokens, value);
    if (verdict === 'unknown') losses.push('a token is unknown');
  }
  return losses;
}

/**
 * How long it takes from now until all calls are answered correctly. Other calls go on meanwhile, so that
 * a dead connection cannot pass as a busy one.
 */
export async function recovery(tokens: TokenService): Promise<number> {
  const others = setInterval(() => tokens.get(account, NO_ID).catch(() => {}), OTHERS_MS);
  try {
    return await roundsUntilRight(tokens);
  } finally {
    clearInterval(others);
  }
}

async function roundsUntilRight(tokens: TokenService): Promise<number> {
  const start = performance.now();
  let ms = 0;
  for (let rounds = 0; rounds < ROUNDS; ) {
    rounds = (await hasWorked(tokens)) ? rounds + 1 : 0;
    if (rounds <= 1) ms = performance.now() - start;
    if (ms > RECOVERY_MS) return Number.POSITIVE_INFINITY;
    if (rounds === 0) await delay(ROUND_PAUSE_MS);
  }
  return ms;
}

/** Takes several tokens through their lives concurrently; throws if an answer is wrong. */
async function hasWorked(tokens: TokenService): Promise<boolean> {
  try {
    await Promise.all(Array.from({ length: 4 }, () => liveThrough(tokens)));
    return true;
  } catch (error) {
    if (isTokenError(error) && NOT_YET.includes(error.code)) return false;
    throw error;
  }
}

async function liveThrough(tokens: TokenService): Promise<void> {
  const { id, value } = await tokens.issue({ account, scopes: [SCOPE] });
  const states = [await verdictOf(tokens, value)];
  await tokens.modify(account, id, { scopes: [OTHER_SCOPE] });
  states.push(await verdictOf(tokens, value));
  const { tokens: page } = await tokens.list({ account, limit: 1000 });
  states.push(page.some((token) => token.id === id) ? 'listed' : 'not listed');
  await tokens.revoke(account, id);
  states.push(await verdictOf(tokens, value));
  if (states.join() === 'accepted,insufficient_scope,listed,revoked') return;
  throw new Error(`wrong after an outage: ${states}`);
}

async function verdictOf(tokens: TokenService, value: string, scope = SCOPE): Promise<string> {
  const verdict = await tokens.verify(value, { scope });
  return verdict.ok ? 'accepted' : verdict.reason;
}

interface Asked<Result> {
  readonly verb: string;
  readonly answer: Promise<Result>;
  isRight(result: Result): boolean;
  holds?(tokens: TokenService, result: Result): Promise<boolean>;
}

async function answerOf<Result>({
  verb,
  answer,
  isRight,
  holds = async () => true,
}: Asked<Result>): Promise<Omit<Answer, 'lateMs'>> {
  const start = performance.now();
  try {
    const result = await withDeadline(answer, PATIENCE_MS);
    const ms = performance.now() - start;
    const outcome = isRight(result) ? 'right' : `wrong: ${result}`;
    return { verb, outcome, ms, holds: (tokens) => holds(tokens, result) };
  } catch (error) {
    const ms = performance.now() - start;
    const outcome = isTokenError(error) ? error.code : 'no answer';
    return { verb, outcome, ms, holds: async () => false };
  }
}

function many<Result>(make: () => Promise<Result>): Promise<Result[]> {
  return Promise.all(Array.from({ length: CALLS }, make));
}
