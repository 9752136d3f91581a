import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from '../../../http/client.ts';

/** The state of something that is read from the service. */
export type Loading<Value> =
  | { readonly state: 'loading' }
  | { readonly state: 'failed'; readonly error: ApiError }
  | { readonly state: 'ready'; readonly value: Value };

export type Loaded<Value> = Loading<Value> & {
  /** Reads it again. The current value stays until the answer. */
  readonly reload: () => void;
  /** Replaces the value, for example by the answer to a change. */
  readonly set: (value: Value) => void;
};

/**
 * Reads something when a component appears, and again when `key` changes or the browser is back
 * online after a failure.
 */
export function useLoaded<Value>(key: string, read: () => Promise<Value>): Loaded<Value> {
  const [loading, setLoading] = useState<Loading<Value> & { key: string }>({
    key,
    state: 'loading',
  });
  const [round, setRound] = useState(0);
  const reload = useCallback(() => setRound((count) => count + 1), []);
  useEffect(() => {
    let isWanted = true;
    const settle = (next: Loading<Value>) => isWanted && setLoading({ ...next, key });
    read().then(
      (value) => settle({ state: 'ready', value }),
      (error: unknown) => settle({ state: 'failed', error: toApiError(error) }),
    );
    return () => {
      isWanted = false;
    };
  }, [key, round]);
  const hasFailed = loading.state === 'failed';
  useEffect(() => {
    if (!hasFailed) return undefined;
    addEventListener('online', reload);
    return () => removeEventListener('online', reload);
  }, [hasFailed, reload]);
  const set = useCallback((value: Value) => setLoading({ key, state: 'ready', value }), [key]);
  // A value that was read for another key is never shown, not even for a moment.
  const current: Loading<Value> = loading.key === key ? loading : { state: 'loading' };
  return { ...current, reload, set };
}

/** A fault of the page itself is shown too, rather than nothing. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError('internal', error instanceof Error ? error.message : String(error));
}

/** Milliseconds without typing after which a text counts. */
const TYPING_MS = 250;

/** The text of a field, and a function for each change of it. `onSettled` gets it when the typing pauses. */
export function useTyped(
  value: string,
  onSettled: (text: string) => void,
): readonly [string, (text: string) => void] {
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const latest = useRef(onSettled);
  latest.current = onSettled;
  useEffect(() => {
    // What is being typed is newer.
    if (timer.current === undefined) setText(value);
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (next: string) => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      timer.current = undefined;
      latest.current(next);
    }, TYPING_MS);
  };
  return [text, type];
}
