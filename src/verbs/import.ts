import { checkSize } from '../access/change.ts';
import { expandFor } from '../access/rights.ts';
import { corruptStore, isTokenError, TokenError } from '../errors.ts';
import { notify } from '../events.ts';
import { importManyOptions, readInput } from '../inputs/schemas.ts';
import type { ImportInput, ImportManyOptions, ImportReport, Read } from '../inputs/types.ts';
import { tokenOf } from '../records/token-view.ts';
import { shown } from '../text/wording.ts';
import {
  checkExpiry,
  originPart,
  type Token,
  type TokenId,
  type TokenRecord,
} from '../token/record.ts';
import { importedValue } from '../values/foreign.ts';
import { holderOf } from './issue.ts';
import type { ServiceParts } from './parts.ts';

/** Rows that `importMany` looks for together and inserts concurrently. @bound */
export const IMPORT_STEP = 100;

/** A row that was read: the record to import, or the error with which it is refused. */
interface ReadRow {
  readonly row: number;
  readonly record?: TokenRecord;
  readonly refusal?: TokenError;
}

type Outcome = 'imported' | 'skipped' | TokenError;

/** Imports a token that another system has issued. */
export async function importOne(parts: ServiceParts, input: ImportInput): Promise<Token> {
  return new Importer(parts, parts.now()).one(input);
}

/** Imports many tokens, and reports what became of the rows. */
export async function importMany(
  parts: ServiceParts,
  rows: Iterable<ImportInput> | AsyncIterable<ImportInput>,
  options: ImportManyOptions,
): Promise<ImportReport> {
  return new Importer(parts, parts.now()).many(rows, readInput(importManyOptions(), options));
}

class Importer {
  readonly #parts: ServiceParts;
  readonly #now: number;

  constructor(parts: ServiceParts, now: number) {
    this.#parts = parts;
    this.#now = now;
  }

  /** Imports one token. Returns a token that was imported before unchanged. */
  async one(input: ImportInput): Promise<Token> {
    const record = await this.#read(input);
    const outcome = await this.#insert(record, await this.#parts.store.findOne(record.id));
    if (typeof outcome !== 'string') throw outcome;
    const stored = outcome === 'imported' ? record : await this.#parts.store.findOne(record.id);
    return tokenOf(stored ?? record, this.#now);
  }

  /** Imports rows in steps. A failure of the store ends the import; rows imported before it stay. */
  async many(
    rows: Iterable<ImportInput> | AsyncIterable<ImportInput>,
    { dryRun = false, onRefused, onProgress }: ImportManyOptions,
  ): Promise<ImportReport> {
    const report = { rows: 0, imported: 0, skipped: 0, refused: 0 };
    const pretended = dryRun ? new Map<TokenId, string>() : undefined;
    for await (const step of inSteps(readRows(rows))) {
      const first = report.rows + 1;
      const read = await Promise.all(step.map((input, at) => this.#tryRead(input, first + at)));
      for (const [row, outcome] of await this.#insertAll(read, pretended)) {
        report.rows += 1;
        if (typeof outcome === 'string') report[outcome] += 1;
        else {
          report.refused += 1;
          const { code, message } = outcome;
          if (onRefused !== undefined) notify(onRefused, { row, code, message });
        }
      }
      if (onProgress !== undefined) notify(onProgress, { ...report });
    }
    return Object.freeze(report);
  }

  async #tryRead(input: ImportInput, row: number): Promise<ReadRow> {
    try {
      return { row, record: await this.#read(input) };
    } catch (refusal) {
      // An outage, of a catalog for example, is not the fault of the row.
      if (!isTokenError(refusal) || refusal.code === 'store_unavailable') throw refusal;
      return { row, refusal };
    }
  }

  async #read(input: ImportInput): Promise<TokenRecord> {
    const { rules, catalogs, values } = this.#parts;
    const read = readInput<Read<ImportInput>>(rules.importInput(), input);
    const { account, digest, format, scopes, expiresAt, createdAt, name, metadata } = read;
    if (!values.formats.includes(format)) throw unknownFormat(values.formats);
    const record = {
      ...importedValue(digest, format),
      account,
      scopes: await expandFor(catalogs, account, scopes),
      requested: scopes.map(String),
      createdAt: new Date(createdAt ?? this.#now),
      expiresAt: checkExpiry(expiresAt, this.#now, rules.lifetime),
      version: 1,
      // Its uses under these scopes are counted from now on, whenever it was issued.
      scopesChangedAt: new Date(this.#now),
      ...(name !== undefined && { name }),
      ...(metadata !== undefined && { metadata }),
      ...originPart({ createdBy: read.createdBy }),
      ...(read.suspended === true && { suspendedAt: new Date(this.#now) }),
    };
    checkSize(record, rules.quotas);
    return record;
  }

  /** @param pretended collects the account of each id, instead of a record in the store */
  async #insertAll(
    rows: readonly ReadRow[],
    pretended: Map<TokenId, string> | undefined,
  ): Promise<readonly (readonly [row: number, outcome: Outcome])[]> {
    const ids = rows.flatMap(({ record }) => (record === undefined ? [] : [record.id]));
    const found = new Map(
      (ids.length === 0 ? [] : await this.#parts.store.find(ids)).map((kept, at) => {
        if (isTokenError(kept)) throw this.#parts.store.failure(kept);
        return [ids[at], kept] as const;
      }),
    );
    return Promise.all(
      rows.map(async ({ row, record, refusal }) => {
        if (record === undefined) return [row, refusal as TokenError] as const;
        const kept = found.get(record.id);
        if (pretended === undefined || kept !== undefined) {
          return [row, await this.#insert(record, kept)] as const;
        }
        const account = pretended.get(record.id);
        if (account !== undefined) return [row, outcomeOfKnown(record, { account })] as const;
        pretended.set(record.id, record.account);
        return [row, 'imported'] as const;
      }),
    );
  }

  async #insert(record: TokenRecord, kept: TokenRecord | undefined): Promise<Outcome> {
    const { store, events, quotas } = this.#parts;
    if (kept !== undefined) return outcomeOfKnown(record, kept);
    const insert = () => store.insert(record);
    const insertion = await quotas
      .admit(holderOf(record), this.#now, insert)
      .catch(ifQuotaExceeded);
    if (typeof insertion !== 'string') return insertion;
    if (insertion === 'id_taken') {
      const now = await store.findOne(record.id);
      if (now === undefined) throw store.failure(corruptStore());
      return outcomeOfKnown(record, now);
    }
    events.issued(record, this.#now);
    return 'imported';
  }
}

function ifQuotaExceeded(error: unknown): TokenError {
  if (isTokenError(error) && error.code === 'quota_exceeded') return error;
  throw error;
}

/** The outcome for a value whose record is in the store already. */
function outcomeOfKnown({ account }: TokenRecord, kept: Pick<TokenRecord, 'account'>): Outcome {
  if (kept.account === account) return 'skipped';
  return new TokenError('invalid_request', 'this value was imported for another account', {
    member: 'digest',
  });
}

function unknownFormat(known: readonly string[]): TokenError {
  const names = known.length === 0 ? 'none' : known.join(', ');
  return new TokenError(
    'invalid_request',
    `format must be the name of one of the formats in the option foreign of this service (${names})`,
    { member: 'format' },
  );
}

function readRows<Row>(rows: Iterable<Row> | AsyncIterable<Row>): typeof rows {
  const { [Symbol.asyncIterator]: isAsync, [Symbol.iterator]: isSync } = Object(rows);
  if (typeof isAsync === 'function' || typeof isSync === 'function') return rows;
  throw new TokenError('invalid_request', `rows must be a list or a stream; got ${shown(rows)}`);
}

async function* inSteps<Row>(
  rows: Iterable<Row> | AsyncIterable<Row>,
): AsyncGenerator<readonly Row[], void> {
  let step: Row[] = [];
  for await (const row of rows) {
    if (step.push(row) < IMPORT_STEP) continue;
    yield step;
    step = [];
  }
  if (step.length > 0) yield step;
}
