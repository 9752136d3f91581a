import { isTokenError } from '../../../index.ts';
import type { ContractReport, Scratch } from '../../../testing/index.ts';
import { count } from '../../../text/wording.ts';
import { theLog } from '../../server/logs/log.ts';
import { readSettings, STORE_SETTINGS } from '../../server/settings.ts';
import { type StoreTarget, storeTarget } from '../../server/stores/open.ts';
import { describeError } from '../../terminal/error-message.ts';
import { CliError } from '../../terminal/errors.ts';
import { choice, readFlag } from '../../terminal/kinds.ts';
import { indent, listFindings, paragraphs, wrap } from '../../terminal/layout.ts';
import { ENDINGS, endBy } from '../../terminal/signals.ts';
import { command, type Outcome } from '../command.ts';
import { type Progress, progressOn } from '../progress.ts';
import { STORE_FLAGS } from './store-flags.ts';

const PART = choice('tokens', 'usage', 'leases', 'requests');
type Part = ReturnType<typeof PART.read>;

/** Proves a database. */
export const CONTRACT = command({
  name: 'store contract',
  summary: 'proves that a database keeps all promises',
  about: `The contract is what tokenwright relies on: that a database never loses an update, compares names byte
by byte, keeps limits exactly, and so on. Each promise is a case that can be run.

It creates tables of its own, whose names begin with tokenwright_contract_ and 12 random
characters, and drops them at the end, also on Ctrl-C and SIGTERM. In Redis these are keys with such a
prefix, and for SQLite a folder beside its files. It touches nothing else, so it can run on a database that
is in use. The user of the database needs the right to create and drop tables. It takes up to a minute, or
more over a slow network. It names what it cannot drop.

The report names no host, no user and no data: send it to us if your database is not in the table of
docs/support.md.`,
  flags: {
    config: STORE_FLAGS.config,
    store: STORE_FLAGS.store,
    data: STORE_FLAGS.data,
    only: {
      type: 'string',
      value: 'PART',
      choices: PART.choices,
      help: `only the promises of one part: ${PART.values}`,
    },
  },
  json: '{ tokenwright, engine, driver, runtime, at, ms, of, passed, failed: [{ case, message }], findings: [{ code, message }] }; findings are those of store doctor',
  exits: {
    0: 'all promises were kept',
    1: 'a promise was broken',
    2: 'it could not run: the command line is wrong, the database cannot be used, or its user may not create tables',
  },
  example: {
    call: 'store contract',
    output: 'SQLite 3.53.4 keeps all 195 promises (node:sqlite, node 24.21.0)',
  },
  async run(_, { only, ...flags }) {
    const part = readFlag(PART, 'only', only);
    const target = storeTarget({ ...readSettings(STORE_SETTINGS, flags), tables: undefined });
    const progress = progressOn(process.stderr);
    const interruption = new Interruption(progress);
    try {
      return outcomeOf(await prove(target, part, { progress, interruption }));
    } catch (error) {
      throw couldNotRun(error, target.name);
    } finally {
      interruption.end();
    }
  },
});

async function prove(
  target: StoreTarget,
  only: Part | undefined,
  { progress, interruption }: { readonly progress: Progress; readonly interruption: Interruption },
): Promise<ContractReport> {
  const { contractReport, ...contracts } = await import('../../../testing/index.ts');
  const lengths = {
    tokens: contracts.storeContract.length,
    usage: contracts.usageContract.length,
    leases: contracts.leaseContract.length,
    requests: contracts.requestContract.length,
  };
  const all = Object.values(lengths).reduce((sum, length) => sum + length);
  const { scratch, close } = await target.scratch();
  const onOpen = progress.of('checked', `of ${only === undefined ? all : lengths[only]} promises`);
  try {
    return await contractReport(watched(scratch, interruption, onOpen), { only });
  } finally {
    progress.end();
    await scratch.drop().catch((error) => theLog().warn(describeError(error)));
    await close();
  }
}

/** Counts the stores that are opened, one for each promise. After a signal, it opens no more. */
function watched(
  scratch: Scratch,
  interruption: Interruption,
  onOpen: (opened: number) => void,
): Scratch {
  let opened = 0;
  return {
    ...scratch,
    async open() {
      if (interruption.isNoted) throw new Error('interrupted');
      onOpen(opened);
      opened += 1;
      return scratch.open();
    },
  };
}

/** Holds the first signal back until all is removed. The second one ends the process immediately. */
class Interruption {
  readonly #progress: Progress;
  #noted: { readonly signal: NodeJS.Signals; readonly number: number } | undefined;

  constructor(progress: Progress) {
    this.#progress = progress;
    for (const signal of ENDINGS) process.on(signal, this.#note);
  }

  get isNoted(): boolean {
    return this.#noted !== undefined;
  }

  readonly #note = (signal: NodeJS.Signals, number: number): void => {
    this.#noted = { signal, number };
    this.#stopListening();
    this.#progress.end();
    theLog().warn(
      'interrupted: it drops what it has created; a second signal ends it without that',
    );
  };

  #stopListening(): void {
    for (const signal of ENDINGS) process.off(signal, this.#note);
  }

  /** Ends the process if a signal has come. */
  end(): void {
    this.#stopListening();
    if (this.#noted !== undefined) endBy(this.#noted.signal, this.#noted.number);
  }
}

function outcomeOf(report: ContractReport): Outcome {
  const { engine, driver, runtime, of, passed, failed, findings, ms } = report;
  const kept = failed.length === 0 ? `all ${of}` : `${passed} of ${of}`;
  const broken = failed.map(
    ({ case: name, message }) => `${wrap(name).join('\n')}\n${indent(paragraphs(message, 78))}`,
  );
  const title = `${engine} keeps ${kept} promises (${driver}, ${runtime})`;
  const text = [title, ...broken, ...(findings.length > 0 ? [listFindings(findings)] : [])];
  const found = findings.length === 0 ? 'no problem' : count(findings.length, 'problem');
  return {
    text: text.join('\n\n'),
    json: report,
    notes: `it took ${Math.round(ms / 1000)} s; doctor found ${found}`,
    isFailed: failed.length > 0,
  };
}

/** Replaces the message of the store, which names the rights that serve needs. */
const FORBIDDEN =
  'this user may not create and drop tables (in Redis: write keys) whose names begin with tokenwright_contract_: grant that, or give another user';

/** Names the store and the reason, if there is one. */
function couldNotRun(error: unknown, name: string): unknown {
  if (error instanceof CliError) return new CliError(error.message, 2);
  const { reason } = (isTokenError(error) && error.details) || {};
  const message = reason === 'forbidden' ? FORBIDDEN : describeError(error);
  if (reason === undefined) return new CliError(message, 2);
  return new CliError(`${name}: ${message} (${reason})`, 2);
}
