import { statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { Connection, Opened } from './connection.ts';
import type { OpenFiles } from './open-files.ts';
import { CHECKPOINT_PAGES } from './schema.ts';

/** Without a log of this length, no thread is started: it costs some megabytes. */
const MIN_LOG_BYTES = 4_194_304;
/** A change of one record takes four or five pages, so the log grows by 8 MB between two runs. */
const RECORDS_PER_RUN = 400;
/**
 * 16 MB. If the thread does not get to the end of the log, because others write all the time, commits
 * copy the rest, which is usually short.
 */
const PAGES_WITH_THREAD = 4000;

/**
 * CommonJS, as text: bundlers cannot lose it. The connection lasts for one run, so that the thread
 * holds no file that the store has left. It reads first, which opens the log, and then makes sure that
 * its files are the ones of the store: a log must never be copied to another database.
 */
const THREAD = `
const { statSync } = require('node:fs');
const { parentPort } = require('node:worker_threads');
process.emitWarning = () => {};
const { DatabaseSync } = require('node:sqlite');
const areSame = (files) => files.every(({ path, dev, ino }) => {
  const now = statSync(path, { throwIfNoEntry: false });
  return now !== undefined && now.ino === ino && now.dev === dev;
});
const run = (files) => {
  if (!areSame(files)) return false;
  const database = new DatabaseSync(files[0].path);
  try {
    database.exec('PRAGMA user_version; PRAGMA synchronous = FULL');
    if (!areSame(files)) return false;
    database.exec('PRAGMA wal_checkpoint(PASSIVE)');
    return true;
  } finally {
    database.close();
  }
};
parentPort.on('message', (files) => {
  let isDone = false;
  try { isDone = run(files); } catch {}
  parentPort.postMessage(isDone);
});
`;

/**
 * Copies the log of a database to its file in a thread of its own. SQLite would do it inside a commit,
 * which holds the event loop for as long as the disk takes. If the thread fails, commits do it again.
 */
export class Checkpoints {
  readonly #connection: Connection;
  #canStart: boolean;
  #worker: Worker | undefined;
  /** How many records were changed since the last run. */
  #records = 0;
  /** The run in progress, and the function that resolves it. */
  #run: Promise<void> | undefined;
  #endRun = () => {};

  constructor(connection: Connection) {
    this.#connection = connection;
    // A handle of the host may come from another copy of SQLite, and two copies do not see each other's
    // locks on a file.
    this.#canStart = !connection.isShared && isNode();
  }

  /** Counts the records of a commit, and starts a run after many. */
  note({ files }: Opened, records: number): void {
    if (files === undefined || !this.#canStart) return;
    this.#records += records;
    if (this.#records < RECORDS_PER_RUN || this.#run !== undefined) return;
    if (this.#worker === undefined && sizeOf(files.log) < MIN_LOG_BYTES) return;
    this.#start(files);
  }

  /** Resolves at the end of the run in progress; `undefined` if there is none. */
  running(): Promise<void> | undefined {
    return this.#run;
  }

  /** Ends the thread. Wait for {@link running} first. */
  close(): void {
    this.#canStart = false;
    void this.#worker?.terminate();
    this.#worker = undefined;
  }

  #start(files: OpenFiles): void {
    try {
      this.#worker ??= this.#newWorker();
      this.#worker.ref();
      this.#worker.postMessage(files.identities());
    } catch {
      this.#giveUp();
      return;
    }
    this.#records = 0;
    this.#connection.isCheckpointing = true;
    this.#run = new Promise((resolve) => {
      this.#endRun = resolve;
    });
  }

  #newWorker(): Worker {
    const worker = new Worker(THREAD, { eval: true, execArgv: [] });
    worker.on('message', (isDone) => this.#finish(isDone === true));
    worker.on('error', () => this.#giveUp());
    worker.on('exit', () => this.#giveUp());
    return worker;
  }

  #giveUp(): void {
    this.close();
    this.#finish(false);
  }

  #finish(isDone: boolean): void {
    // An idle thread must not keep the process alive.
    this.#worker?.unref();
    this.#connection.isCheckpointing = false;
    this.#connection.checkpointAt(isDone ? PAGES_WITH_THREAD : CHECKPOINT_PAGES);
    this.#run = undefined;
    this.#endRun();
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Others have `node:sqlite` as well, with threads that differ. */
function isNode(): boolean {
  const { bun, deno } = process.versions;
  return bun === undefined && deno === undefined;
}
