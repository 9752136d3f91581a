import { isTokenError, type TokenError } from '../../../errors.ts';
import type { ImportInput, ImportReport } from '../../../inputs/types.ts';
import type { TokenService } from '../../../service.ts';
import { inputError } from '../../terminal/errors.ts';
import type { Rights } from './rights.ts';
import { type OldRow, refusal } from './rows.ts';
import type { OldToken, ReadOldToken } from './systems.ts';

/** A row that was refused. */
export interface Refusal {
  /** Where it begins in the input. */
  readonly line: number;
  readonly code: string;
  readonly message: string;
}

/** What an import did, or would do. */
export interface Imported extends ImportReport {
  /** Rows that had expired or were revoked in the old system, and were left out. */
  readonly ended: number;
  /** Rows that were not refused and were disabled in the old system, so that their tokens are suspended. */
  readonly suspended: number;
  /** Rows that were not refused, with tokens that expire earlier than there, or never expired there. */
  readonly shortened: number;
}

export interface ImportOptions {
  readonly tokens: Pick<TokenService, 'importMany'>;
  readonly read: ReadOldToken;
  readonly rights: Rights;
  readonly format: string;
  /** The account of all rows; otherwise each row names its own. */
  readonly account: string | undefined;
  readonly now: number;
  /** The lifetime, from now, of tokens that never expired in the old system. */
  readonly ttlSeconds: number;
  /** The longest lifetime from now. */
  readonly maxSeconds: number;
  readonly dryRun: boolean;
  readonly onRefused: (refused: Refusal) => void;
  readonly onProgress: (rows: number) => void;
}

/**
 * Imports the rows of another system as they are read, and keeps none of them.
 *
 * @throws {CliError} if the store fails, with the number of rows that were imported before
 */
export async function importRows(
  rows: AsyncIterable<OldRow>,
  options: ImportOptions,
): Promise<Imported> {
  const run = new ImportRun(options);
  const { dryRun } = options;
  let done: ImportReport | undefined;
  try {
    const report = await options.tokens.importMany(run.inputs(rows), {
      dryRun,
      onRefused: run.onRefused,
      onProgress: (report) => {
        done = report;
        run.onProgress(report);
      },
    });
    return { ...report, ...run.counts, refused: report.refused + run.refused };
  } catch (error) {
    if (!isTokenError(error) || done === undefined) throw error;
    throw inputError(
      `${error.message}; ${done.imported} rows were imported before: run it again, and it goes on`,
    );
  }
}

/** A row that the service has not finished. */
interface SentRow {
  readonly line: number;
  readonly isSuspended: boolean;
  readonly isShortened: boolean;
}

/** One import. */
class ImportRun {
  readonly counts = { rows: 0, ended: 0, suspended: 0, shortened: 0 };
  /** The number of rows that were refused before the service got them. */
  refused = 0;
  readonly #options: ImportOptions;
  readonly #sent: SentRow[] = [];
  /** The number of rows that the service has finished. */
  #done = 0;

  constructor(options: ImportOptions) {
    this.#options = options;
  }

  async *inputs(rows: AsyncIterable<OldRow>): AsyncGenerator<ImportInput> {
    for await (const { line, columns } of rows) {
      this.counts.rows += 1;
      try {
        if (isTokenError(columns)) throw columns;
        const old = this.#options.read(columns);
        if (this.#hasEnded(old)) {
          this.counts.ended += 1;
          continue;
        }
        const input = this.#inputOf(old);
        const isSuspended = old.isDisabled;
        const isShortened = input.expiresAt.getTime() !== old.expiresAt?.getTime();
        this.#sent.push({ line, isSuspended, isShortened });
        this.#count({ isSuspended, isShortened }, 1);
        yield input;
      } catch (error) {
        if (!isTokenError(error)) throw error;
        this.#refuse(line, error);
      }
    }
  }

  readonly onRefused = ({
    row,
    code,
    message,
  }: Pick<Refusal, 'code' | 'message'> & { row: number }) => {
    const sent = this.#sent[row - 1 - this.#done] as SentRow;
    this.#count(sent, -1);
    this.#options.onRefused({ line: sent.line, code, message });
  };

  readonly onProgress = ({ rows }: ImportReport): void => {
    this.#sent.splice(0, rows - this.#done);
    this.#done = rows;
    this.#options.onProgress(this.counts.rows);
  };

  #count({ isSuspended, isShortened }: Omit<SentRow, 'line'>, step: 1 | -1): void {
    if (isSuspended) this.counts.suspended += step;
    if (isShortened) this.counts.shortened += step;
  }

  #refuse(line: number, { code, message }: TokenError): void {
    this.refused += 1;
    this.#options.onRefused({ line, code, message });
  }

  #hasEnded({ isRevoked, expiresAt }: OldToken): boolean {
    return isRevoked || (expiresAt !== undefined && expiresAt.getTime() <= this.#options.now);
  }

  #inputOf(old: OldToken): ImportInput & { readonly expiresAt: Date } {
    const { rights, format, account = old.account } = this.#options;
    if (account === undefined)
      throw refusal('the row has no account: give --account, or select one');
    if (old.digest === undefined) throw refusal('the row has no hash');
    const { name, metadata, createdAt } = old;
    const scopes = rights.scopesOf(old.permissions);
    const input = { account, digest: old.digest, format, scopes, expiresAt: this.#expiryOf(old) };
    return { ...input, name, metadata, createdAt, suspended: old.isDisabled };
  }

  #expiryOf({ expiresAt }: OldToken): Date {
    const { now, ttlSeconds, maxSeconds } = this.#options;
    const latest = now + (expiresAt === undefined ? ttlSeconds : maxSeconds) * 1000;
    return new Date(Math.min(expiresAt?.getTime() ?? latest, latest));
  }
}
