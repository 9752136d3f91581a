import { useEffect, useRef, useState } from 'preact/hooks';
import type { ShownToken } from './api.ts';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { Dialog } from './controls/dialog.tsx';
import { messageOf, Notice } from './controls/notice.tsx';
import { toApiError } from './loading.ts';
import { TEXTS } from './texts.ts';

/** How many names the question tells. */
const NAMED = 8;

export interface BulkRevokeProps {
  readonly tokens: readonly ShownToken[];
  readonly onDone: () => void;
  readonly onCancel: () => void;
}

interface Progress {
  readonly done: number;
  readonly failures: readonly { readonly token: ShownToken; readonly message: string }[];
}

/** Revokes several tokens, one after the other, and tells how far it is. */
export function BulkRevokeDialog({ tokens: given, onDone, onCancel }: BulkRevokeProps) {
  const { api, announce } = useConsole();
  // The list may change while this runs.
  const [tokens] = useState(given);
  const [progress, setProgress] = useState<Progress>();
  const isWanted = useRef(true);
  useEffect(
    () => () => {
      isWanted.current = false;
    },
    [],
  );
  const revoke = async () => {
    let now: Progress = { done: 0, failures: [] };
    setProgress(now);
    for (const token of tokens) {
      if (!isWanted.current) return;
      const message = await failureOf(() => api.revoke(token));
      const failures = message === '' ? now.failures : [...now.failures, { token, message }];
      now = { done: now.done + 1, failures };
      setProgress(now);
    }
    if (now.failures.length > 0) return;
    announce(TEXTS.bulk.done({ count: tokens.length }));
    onDone();
  };
  return (
    <Dialog
      title={TEXTS.bulk.title({ count: tokens.length })}
      onCancel={progress ? onDone : onCancel}
    >
      {progress === undefined ? (
        <Question tokens={tokens} onRevoke={revoke} onCancel={onCancel} />
      ) : (
        <Work progress={progress} total={tokens.length} onClose={onDone} />
      )}
    </Dialog>
  );
}

/** What went wrong; empty if nothing did. A token that is gone already is as good as revoked. */
async function failureOf(call: () => Promise<void>): Promise<string> {
  try {
    await call();
    return '';
  } catch (failure) {
    const error = toApiError(failure);
    return error.code === 'not_found' ? '' : messageOf(error);
  }
}

interface QuestionProps {
  readonly tokens: readonly ShownToken[];
  readonly onRevoke: () => void;
  readonly onCancel: () => void;
}

function Question({ tokens, onRevoke, onCancel }: QuestionProps) {
  return (
    <>
      <ul class="names">
        {tokens.slice(0, NAMED).map(({ id, name = TEXTS.list.unnamed }) => (
          <li key={id} dir="auto">
            {name}
          </li>
        ))}
        {tokens.length > NAMED && <li>{TEXTS.bulk.andMore({ count: tokens.length - NAMED })}</li>}
      </ul>
      <p>{TEXTS.revoke.warning}</p>
      <div class="actions">
        <Button kind="danger" onClick={onRevoke}>
          {TEXTS.bulk.confirm({ count: tokens.length })}
        </Button>
        <Button onClick={onCancel}>{TEXTS.actions.cancel}</Button>
      </div>
    </>
  );
}

interface WorkProps {
  readonly progress: Progress;
  readonly total: number;
  readonly onClose: () => void;
}

function Work({ progress: { done, failures }, total, onClose }: WorkProps) {
  const text = TEXTS.bulk.progress({ done, count: total });
  return (
    <>
      <progress value={done} max={total} aria-label={text} />
      <p role="status">{text}</p>
      {failures.length > 0 && (
        <Notice kind="error">
          <p>{TEXTS.bulk.failed({ count: failures.length })}</p>
          <ul class="names">
            {failures.map(({ token: { id, name = TEXTS.list.unnamed }, message }) => (
              <li key={id}>
                <b dir="auto">{name}</b>: {message}
              </li>
            ))}
          </ul>
        </Notice>
      )}
      <div class="actions">
        <Button onClick={onClose}>{done < total ? TEXTS.bulk.stop : TEXTS.actions.close}</Button>
      </div>
    </>
  );
}
