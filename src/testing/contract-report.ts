import { AssertionError } from 'node:assert/strict';
import packageJson from '../../package.json' with { type: 'json' };
import { isTokenError, storeFailure } from '../errors.ts';
import type { EngineStore, Scratch } from '../ports/engine-store.ts';
import { doctor, type StoreFinding } from '../ports/token-store.ts';
import { systemClock } from '../time/clock.ts';
import { performance } from '../time/timers.ts';
import { storeContract } from './contract.ts';
import { leaseContract } from './lease-contract.ts';
import { requestContract } from './request-contract.ts';
import { usageContract } from './usage-contract.ts';

/** What {@link contractReport} checks. */
export interface ContractOptions {
  /** The promises of one part alone. @default all */
  readonly only?: 'tokens' | 'usage' | 'leases' | 'requests' | undefined;
}

/** Which promises a database has kept. It names no host, no user and no data, so that you can pass it on. */
export interface ContractReport {
  /** The version of this package. */
  readonly tokenwright: string;
  /** The database and its version: `PostgreSQL 15.18`. */
  readonly engine: string;
  /** The package that talks to it, with its version if that is known: `pg 8.23.1`. */
  readonly driver: string;
  /** `node 24.21.0`. */
  readonly runtime: string;
  /** When it began, in ISO 8601. */
  readonly at: string;
  /** How long it took, in whole milliseconds. */
  readonly ms: number;
  /** How many promises were checked. */
  readonly of: number;
  /** How many of them were kept. */
  readonly passed: number;
  /** The others. The message is ours, and never the driver's. */
  readonly failed: readonly { readonly case: string; readonly message: string }[];
  /** What `doctor` finds. */
  readonly findings: readonly StoreFinding[];
}

/**
 * Checks all promises of a store in a {@link Scratch}: each case of `storeContract`, `usageContract`,
 * `leaseContract` and `requestContract`, one after the other. Takes some seconds to a minute. Make the scratch with the function of
 * that name of an engine, or by hand for a store of your own, and drop it afterwards.
 *
 * @throws {TokenError} as `open` of the scratch does, if no store can be opened
 * @example
 * const place = await scratch(pool); // of tokenwright/postgres
 * const { of, passed, failed } = await contractReport(place);
 * await place.drop();
 */
export async function contractReport(
  scratch: Scratch,
  { only }: ContractOptions = {},
): Promise<ContractReport> {
  const cases = only === undefined ? Object.values(CASES).flat() : CASES[only];
  const at = systemClock.now().toISOString();
  const startedAt = performance.now();
  const failed: { case: string; message: string }[] = [];
  for (const { name, check } of cases) {
    const store = await scratch.open();
    await check(store).catch((error) => failed.push({ case: name, message: messageOf(error) }));
  }
  const findings = await findingsOf(scratch);
  return {
    tokenwright: packageJson.version,
    engine: scratch.engine,
    driver: scratch.driver,
    runtime: runtime(),
    at,
    ms: Math.round(performance.now() - startedAt),
    of: cases.length,
    passed: cases.length - failed.length,
    failed,
    findings,
  };
}

interface EngineCase {
  readonly name: string;
  /** Closes the store. */
  check(store: EngineStore): Promise<void>;
}

interface PartCase<Part> {
  readonly name: string;
  run(open: () => Part): Promise<void>;
}

function casesOf<Part>(
  contract: readonly PartCase<Part>[],
  prefix: string,
  partOf: (store: EngineStore) => Part,
): EngineCase[] {
  return contract.map((promise) => ({
    name: `${prefix}${promise.name}`,
    async check(store) {
      const part: unknown = partOf(store);
      try {
        await promise.run(() => part as Part);
      } finally {
        // The case closes only the part that it is given.
        if (part !== store) await store.close?.();
      }
    },
  }));
}

const CASES = {
  tokens: casesOf(storeContract, '', (store) => store),
  usage: casesOf(usageContract, 'usage: ', ({ usage }) => usage),
  leases: casesOf(leaseContract, 'leases: ', ({ leases }) => leases),
  requests: casesOf(requestContract, 'requests: ', ({ requests }) => requests),
} as const;

/** Says why a case failed, in words of our own: other errors quote what a driver or a server said. */
function messageOf(error: unknown): string {
  if (error instanceof AssertionError) return differenceIn(error);
  if (!isTokenError(error)) return 'it failed with an error that is not a TokenError';
  const { code } = error;
  const isOfStore = code.startsWith('store_') || code === 'durability_unconfirmed';
  return isOfStore ? storeFailure(error).message : `it was refused with ${code}`;
}

function differenceIn({ generatedMessage, message, actual, expected }: AssertionError): string {
  if (!generatedMessage) return message;
  const isPlain = [actual, expected].every((value) => PLAIN.has(typeof value));
  if (isPlain) return `expected ${expected}, but got ${actual}`;
  return 'the store answers otherwise than promised';
}

const PLAIN: ReadonlySet<string> = new Set(['boolean', 'number', 'undefined']);

/** What `doctor` finds. Not being allowed to look is a finding as well, and spoils no report. */
async function findingsOf(scratch: Scratch): Promise<StoreFinding[]> {
  const store = await scratch.open();
  try {
    const findings = await doctor(store);
    return findings.map((finding) => ({ ...finding, message: withoutHosts(finding.message) }));
  } catch (error) {
    const { message } = storeFailure(error);
    return [{ code: 'not_examined', message: `doctor cannot look at the server: ${message}` }];
  } finally {
    await store.close?.();
  }
}

const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\]):\d{1,5}\b/i;

/** The findings of a cluster name its servers. Word by word, so that it takes linear time. */
function withoutHosts(message: string): string {
  return message
    .replace(/[\w.:[\]-]+/g, (word) => word.replace(HOST, 'a server'))
    .replace(/(?:each of )?a server((?:, a server)*)/g, (_, others) =>
      others === '' ? 'a server' : 'each server',
    );
}

function runtime(): string {
  const { bun, deno, node } = process.versions as Readonly<Record<string, string | undefined>>;
  if (bun !== undefined) return `bun ${bun}`;
  return deno === undefined ? `node ${node}` : `deno ${deno}`;
}
