import { isTokenError, type TokenError } from '../../errors.ts';
import type { ImportInput, ImportReport } from '../../input.ts';
import type { TokenService } from '../../service.ts';
import { inputError } from '../errors.ts';
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
  /** Rows whose tokens are suspended now, since they were disabled. */
  readonly suspended: number;
  /** Rows whose tokens expire earlier than there, or at all. */
  readonly shortened: number;
}

export interface ImportOptions {
  readonly tokens: Pick<TokenService, 'importMany'>;
  readonly read: ReadOldToken;
  readonly rights: Rights;
  readonly format: string;
  /** Of all rows; otherwise each has its own. */
  readonly account: string | undefined;
  readonly now: number;
  /** Of tokens that never expired. */
  readonly ttlSeconds: number;
  /** The longest lifetime from now. */
  readonly maxSeconds: number;
  readonly dryRun: boolean;
  readonly onRefused: (refused: Refusal) => void;
  readonly onProgress: (rows: number) => void;
}

/**
 * Imports rows of another system, one after the other: none is kept.
 *
 * @throws {CliError} if the store fails, saying how far it came
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

/** Keeps the lines of the rows that are under way. */
class ImportRun {
  readonly counts = { rows: 0, ended: 0, suspended: 0, shortened: 0 };
  /** Rows that never came as far as the service. */
  refused = 0;
  readonly #options: ImportOptions;
  readonly #lines: number[] = [];
  /** The rows that the service is done with. */
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
        this.#lines.push(line);
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
    this.#options.onRefused({ line: this.#lines[row - 1 - this.#done] ?? 0, code, message });
  };

  readonly onProgress = ({ rows }: ImportReport): void => {
    this.#lines.splice(0, rows - this.#done);
    this.#done = rows;
    this.#options.onProgress(this.counts.rows);
  };

  #refuse(line: number, { code, message }: TokenError): void {
    this.refused += 1;
    this.#options.onRefused({ line, code, message });
  }

  #hasEnded({ isRevoked, expiresAt }: OldToken): boolean {
    return isRevoked || (expiresAt !== undefined && expiresAt.getTime() <= this.#options.now);
  }

  #inputOf(old: OldToken): ImportInput {
    const { rights, format, account = old.account } = this.#options;
    if (account === undefined)
      throw refusal('the row has no account: give --account, or select one');
    if (old.digest === undefined) throw refusal('the row has no hash');
    const { name, metadata, createdAt } = old;
    const scopes = rights.scopesOf(old.permissions);
    const input = { account, digest: old.digest, format, scopes, expiresAt: this.#expiryOf(old) };
    if (old.isDisabled) this.counts.suspended += 1;
    return { ...input, name, metadata, createdAt, suspended: old.isDisabled };
  }

  #expiryOf({ expiresAt }: OldToken): Date {
    const { now, ttlSeconds, maxSeconds } = this.#options;
    const latest = now + (expiresAt === undefined ? ttlSeconds : maxSeconds) * 1000;
    const time = Math.min(expiresAt?.getTime() ?? latest, latest);
    if (time !== expiresAt?.getTime()) this.counts.shortened += 1;
    return new Date(time);
  }
}
