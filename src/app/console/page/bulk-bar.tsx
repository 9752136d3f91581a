import { useEffect, useRef, useState } from 'preact/hooks';
import type { ApiError, ShownToken, TokenPage } from './api.ts';
import { Button } from './controls/button.tsx';
import { ErrorNotice } from './controls/notice.tsx';
import { toApiError } from './loading.ts';
import { TEXTS } from './texts.ts';

export interface BulkBarProps {
  readonly isAll: boolean;
  readonly count: number;
  readonly onToggleAll: () => void;
  readonly onRevoke: () => void;
  /** Reads the first page of all that match, or the one of a cursor; absent if all are shown. */
  readonly read: ((cursor?: string) => Promise<TokenPage>) | undefined;
  readonly onSelectMatching: (tokens: readonly ShownToken[]) => void;
}

/** The actions on the selected tokens. */
export function BulkBar(props: BulkBarProps) {
  const { isAll, count, onToggleAll, onRevoke, read, onSelectMatching } = props;
  return (
    <div class="bulk">
      <label>
        <input type="checkbox" checked={isAll} onChange={onToggleAll} /> {TEXTS.bulk.selectAll}
      </label>
      {isAll && read && <SelectMatching read={read} onRead={onSelectMatching} />}
      {count > 0 && (
        <>
          <span>{TEXTS.bulk.selected({ count })}</span>
          <Button kind="danger" onClick={onRevoke}>
            {TEXTS.bulk.revoke}
          </Button>
        </>
      )}
    </div>
  );
}

interface SelectMatchingProps {
  readonly read: (cursor?: string) => Promise<TokenPage>;
  readonly onRead: (tokens: readonly ShownToken[]) => void;
}

/** Reads all tokens that match, including those that are not shown. */
function SelectMatching({ read, onRead }: SelectMatchingProps) {
  const [count, setCount] = useState<number>();
  const [error, setError] = useState<ApiError>();
  const isWanted = useRef(true);
  useEffect(
    () => () => {
      isWanted.current = false;
    },
    [],
  );
  const select = async () => {
    setError(undefined);
    const found = new Map<string, ShownToken>();
    let cursor: string | undefined;
    try {
      do {
        setCount(found.size);
        const page = await read(cursor);
        if (!isWanted.current) return;
        // A token may come twice, if it moves while the pages are read.
        for (const token of page.tokens) found.set(token.id, token);
        cursor = page.cursor;
      } while (cursor !== undefined);
      onRead([...found.values()]);
    } catch (failure) {
      setError(toApiError(failure));
    }
    setCount(undefined);
  };
  return (
    <>
      <Button onClick={select} isBusy={count !== undefined}>
        {count === undefined ? TEXTS.bulk.selectMatching : TEXTS.bulk.reading({ count })}
      </Button>
      {error && <ErrorNotice error={error} />}
    </>
  );
}
