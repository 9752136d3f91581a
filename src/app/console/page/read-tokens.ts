import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from '../../../http/client.ts';
import type { Api, ShownToken, TokenPage } from './api.ts';
import { type ListFilters, NO_FILTERS, queryOf } from './list-filters.ts';
import { toApiError } from './loading.ts';

/** How many tokens the list shows at a time. */
const SHOWN = 50;
/** How many are read at a time if all are needed: as many as a service gives. */
const READ = 100;

/** A page of the list. */
export interface ListPage extends TokenPage {
  /** Why the tokens are not in the order that was asked for, but the newest first. */
  readonly refused?: ApiError;
}

/**
 * Reads a page of the list. A service that cannot sort so many tokens lists the newest first. It may also
 * end a page before the first match; this goes on from its cursor.
 */
export async function readList(api: Api, filters: ListFilters): Promise<ListPage> {
  try {
    return await readFrom(api, filters, SHOWN);
  } catch (error) {
    if (!isAboutOrder(error) || filters.sort === UNSORTED.sort) throw error;
    return { ...(await readFrom(api, { ...filters, ...UNSORTED }, SHOWN)), refused: error };
  }
}

const UNSORTED = { sort: NO_FILTERS.sort };

function isAboutOrder(error: unknown): error is ApiError {
  if (!(error instanceof ApiError)) return false;
  return error.details.member === 'sort' || error.code === 'usage_not_recorded';
}

/** Reads the page after another one, in the same order. */
export async function readNext(
  api: Api,
  filters: ListFilters,
  { cursor, refused }: ListPage,
): Promise<ListPage> {
  const next = await readFrom(api, { ...filters, ...(refused && UNSORTED) }, SHOWN, cursor);
  return { ...next, ...(refused && { refused }) };
}

async function readFrom(
  api: Api,
  filters: ListFilters,
  limit: number,
  from?: string,
): Promise<TokenPage> {
  let cursor = from;
  for (;;) {
    const page = await api.list({ ...queryOf(filters), limit, ...(cursor && { cursor }) });
    if (page.tokens.length > 0 || page.cursor === undefined) return page;
    cursor = page.cursor;
  }
}

/**
 * Reads all tokens that match, the newest first, unless somebody stops it.
 *
 * @param onCount gets the count so far; `false` stops
 */
async function readAll(
  api: Api,
  filters: ListFilters,
  onCount: (count: number) => boolean,
): Promise<readonly ShownToken[] | undefined> {
  // A token may come twice, if it moves while the pages are read.
  const found = new Map<string, ShownToken>();
  let cursor: string | undefined;
  do {
    if (!onCount(found.size)) return undefined;
    const page = await readFrom(api, { ...filters, ...UNSORTED }, READ, cursor);
    for (const token of page.tokens) found.set(token.id, token);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return onCount(found.size) ? [...found.values()] : undefined;
}

/** Reads all tokens that match when `start` is called, and stops when its component disappears. */
export function useReadAll(
  api: Api,
  filters: ListFilters,
  onRead: (tokens: readonly ShownToken[]) => void,
) {
  /** How many there are so far; absent while nothing is read. */
  const [count, setCount] = useState<number>();
  const [error, setError] = useState<ApiError>();
  const isWanted = useRef(true);
  useEffect(
    () => () => {
      isWanted.current = false;
    },
    [],
  );
  const start = async () => {
    setError(undefined);
    try {
      const tokens = await readAll(api, filters, (read) => {
        if (isWanted.current) setCount(read);
        return isWanted.current;
      });
      if (tokens === undefined) return;
      onRead(tokens);
    } catch (failure) {
      setError(toApiError(failure));
    }
    setCount(undefined);
  };
  return { count, error, start };
}
