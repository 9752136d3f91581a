import { useEffect, useRef, useState } from 'preact/hooks';
import type { Api, ShownToken } from './api.ts';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { Dialog, DialogActions } from './controls/dialog.tsx';
import { ErrorNotice, messageOf, Notice } from './controls/notice.tsx';
import type { ListFilters } from './list-filters.ts';
import { useReadAll } from './read-tokens.ts';
import { type RevokeFailure, type RevokeProgress, revokeMany } from './revoke-many.ts';
import { nameOf } from './shown-token.ts';
import { TEXTS } from './texts.ts';

/** How many names the question and the report show. */
const MAX_NAMES = 8;

export interface BulkRevokeProps {
  readonly tokens: readonly ShownToken[];
  readonly onDone: () => void;
  readonly onCancel: () => void;
}

/** Revokes several tokens, shows the progress, can be stopped, and reports what is left. */
export function BulkRevokeDialog({ tokens: given, onDone, onCancel }: BulkRevokeProps) {
  // The list may change while this runs.
  const [tokens] = useState(given);
  const { progress, isRunning, run, stop } = useRevoking(tokens, onDone);
  const leave = progress === undefined ? onCancel : onDone;
  return (
    <Dialog title={TEXTS.bulk.title({ count: tokens.length })} onCancel={isRunning ? stop : leave}>
      {progress === undefined ? (
        <Question tokens={tokens} onRevoke={() => run()} onCancel={onCancel} />
      ) : (
        <>
          <ProgressBar done={tokens.length - progress.left.length} total={tokens.length} />
          {!isRunning && <Report progress={progress} total={tokens.length} />}
          {isRunning ? (
            <div class="actions">
              <Button onClick={stop}>{TEXTS.bulk.stop}</Button>
            </div>
          ) : (
            <ReportActions progress={progress} onGoOn={() => run(progress)} onClose={onDone} />
          )}
        </>
      )}
    </Dialog>
  );
}

/** Revokes tokens. A second run goes on with those that are left and those that failed. */
function useRevoking(tokens: readonly ShownToken[], onDone: () => void) {
  const { api, announce } = useConsole();
  const [progress, setProgress] = useState<RevokeProgress>();
  const [isRunning, setRunning] = useState(false);
  const isWanted = useRef(true);
  const stop = () => {
    isWanted.current = false;
  };
  useEffect(() => stop, []);
  const run = async (before?: RevokeProgress) => {
    isWanted.current = true;
    setRunning(true);
    const failed = before?.failures ?? [];
    const changed = new Set(failed.filter(hasChanged).map(({ token }) => token.id));
    const asked = before ? [...before.left, ...failed.map(({ token }) => token)] : tokens;
    const revokedBefore = before?.revoked ?? 0;
    const inTotal = (now: RevokeProgress) => ({ ...now, revoked: now.revoked + revokedBefore });
    const all = inTotal(
      await revokeMany(asked, {
        revoke: (token) => revokeNow(api, token, changed.has(token.id)),
        isWanted: () => isWanted.current,
        onProgress: (now) => setProgress(inTotal(now)),
      }),
    );
    setProgress(all);
    setRunning(false);
    if (all.revoked < tokens.length) return;
    announce(TEXTS.bulk.done({ count: tokens.length }));
    onDone();
  };
  return { progress, isRunning, run, stop };
}

const hasChanged = ({ error }: RevokeFailure) => error.code === 'version_conflict';

/**
 * Revokes a token. If a report has shown that it was changed meanwhile, revokes it as it is now.
 */
async function revokeNow(api: Api, token: ShownToken, isChanged: boolean): Promise<void> {
  await api.revoke(isChanged ? await api.get(token.id) : token);
}

interface QuestionProps {
  readonly tokens: readonly ShownToken[];
  readonly onRevoke: () => void;
  readonly onCancel: () => void;
}

function Question({ tokens, onRevoke, onCancel }: QuestionProps) {
  const { abilities } = useConsole();
  return (
    <>
      <ul class="names">
        {tokens.slice(0, MAX_NAMES).map((token) => (
          <li key={token.id}>
            <bdi>{nameOf(token)}</bdi>
          </li>
        ))}
        {tokens.length > MAX_NAMES && (
          <li>{TEXTS.bulk.andMore({ count: tokens.length - MAX_NAMES })}</li>
        )}
      </ul>
      <p>{TEXTS.bulk.warning}</p>
      {abilities.has('/token/derive') && <p>{TEXTS.bulk.descendants}</p>}
      <DialogActions kind="danger" onClick={onRevoke} onCancel={onCancel}>
        {TEXTS.bulk.confirm({ count: tokens.length })}
      </DialogActions>
    </>
  );
}

function ProgressBar({ done, total }: { readonly done: number; readonly total: number }) {
  const text = TEXTS.bulk.progress({ done, count: total });
  return (
    <>
      <progress value={done} max={total} aria-label={text} />
      <p role="status">{text}</p>
    </>
  );
}

interface ReportProps {
  readonly progress: RevokeProgress;
  readonly total: number;
}

/** Reports the result of a run that has not revoked all tokens. */
function Report({ progress: { revoked, failures, left, error }, total }: ReportProps) {
  return (
    <>
      {error && <ErrorNotice error={error} />}
      <Notice kind="warning">
        <p>{TEXTS.bulk.revoked({ done: revoked, count: total })}</p>
        {left.length > 0 && <p>{TEXTS.bulk.left({ count: left.length })}</p>}
      </Notice>
      {failures.length > 0 && (
        <Notice kind="error">
          <p>{TEXTS.bulk.failed({ count: failures.length })}</p>
          <ul class="names">
            {failures.slice(0, MAX_NAMES).map(({ token, error: reason }) => (
              <li key={token.id}>
                <b dir="auto">{nameOf(token)}</b>: {messageOf(reason)}
              </li>
            ))}
            {failures.length > MAX_NAMES && (
              <li>{TEXTS.bulk.andMore({ count: failures.length - MAX_NAMES })}</li>
            )}
          </ul>
        </Notice>
      )}
    </>
  );
}

interface ReportActionsProps {
  readonly progress: RevokeProgress;
  readonly onGoOn: () => void;
  readonly onClose: () => void;
}

function ReportActions({ progress: { left, failures }, onGoOn, onClose }: ReportActionsProps) {
  const count = left.length + failures.length;
  return (
    <div class="actions">
      {count > 0 && (
        <Button kind="danger" onClick={onGoOn}>
          {TEXTS.bulk.goOn({ count })}
        </Button>
      )}
      <Button onClick={onClose}>{TEXTS.actions.close}</Button>
    </div>
  );
}

interface BulkBarProps {
  readonly isAll: boolean;
  readonly count: number;
  readonly onToggleAll: () => void;
  readonly onRevoke: () => void;
  /** What is listed; absent if all of it is shown, or all is selected. */
  readonly filters: ListFilters | undefined;
  readonly onSelectMatching: (tokens: readonly ShownToken[]) => void;
}

/** The actions on the selected tokens. */
export function BulkBar(props: BulkBarProps) {
  const { isAll, count, onToggleAll, onRevoke, filters, onSelectMatching } = props;
  return (
    <div class="bulk">
      <label>
        <input type="checkbox" checked={isAll} onChange={onToggleAll} /> {TEXTS.bulk.selectAll}
      </label>
      {isAll && filters && <SelectMatching filters={filters} onRead={onSelectMatching} />}
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
  readonly filters: ListFilters;
  readonly onRead: (tokens: readonly ShownToken[]) => void;
}

/** Reads all tokens that match, including those that are not shown. */
function SelectMatching({ filters, onRead }: SelectMatchingProps) {
  const { api } = useConsole();
  const { count, error, start } = useReadAll(api, filters, onRead);
  return (
    <>
      <Button onClick={start} isBusy={count !== undefined}>
        {count === undefined ? TEXTS.bulk.selectMatching : TEXTS.bulk.reading({ count })}
      </Button>
      {error && <ErrorNotice error={error} />}
    </>
  );
}
