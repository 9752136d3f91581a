import type { WireAdvice, WireUsage } from '../../../http/wire.ts';
import { ScopeSet } from '../../../scope/index.ts';
import { removable } from '../../../scope/removal.ts';
import type { ShownToken } from './api.ts';
import { useChange } from './change.tsx';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { Dialog, DialogActions } from './controls/dialog.tsx';
import { ErrorNotice, Notice } from './controls/notice.tsx';
import { LoadedPart } from './controls/screen.tsx';
import { exactTime } from './controls/time.tsx';
import { ScopeList } from './difference.tsx';
import { useLoaded } from './loading.ts';
import { summaryOf } from './rights.ts';
import { TEXTS } from './texts.ts';

/** How long the service counts before it gives advice. */
const ADVICE_DAYS = 30;

interface NarrowDialogProps {
  readonly token: ShownToken;
  readonly onChanged: (token: ShownToken) => void;
  readonly onCancel: () => void;
}

/** Removes the scopes of a token that were not used, and says what is known about them. */
export function NarrowDialog(props: NarrowDialogProps) {
  const { token, onCancel } = props;
  const { api } = useConsole();
  const loaded = useLoaded(token.id, () =>
    Promise.all([api.advice(token.id), api.usage(token.id)]),
  );
  return (
    <Dialog title={TEXTS.narrow.title} onCancel={onCancel}>
      <LoadedPart loaded={loaded}>
        {([advice, usage]) => <Advice {...props} advice={advice} usage={usage} />}
      </LoadedPart>
    </Dialog>
  );
}

interface AdviceProps extends NarrowDialogProps {
  readonly advice: WireAdvice;
  readonly usage: WireUsage;
}

function Advice({ advice: { unused, kept, since }, usage, ...props }: AdviceProps) {
  if (unused.length > 0) {
    if (kept.length === 0) return <NothingToRemove {...props} text={TEXTS.narrow.allUnused} />;
    const intro = TEXTS.narrow.since({ date: exactTime(since) });
    return <RemoveScopes {...props} unused={unused} kept={kept} intro={intro} />;
  }
  const begin = since + ADVICE_DAYS * 86_400;
  if (begin <= Date.now() / 1000) {
    return <NothingToRemove {...props} text={TEXTS.narrow.none({ count: ADVICE_DAYS })} />;
  }
  const early = TEXTS.narrow.early({ since: exactTime(since), begin: exactTime(begin) });
  return <SoFar {...props} usage={usage} intro={early} />;
}

interface SoFarProps extends NarrowDialogProps {
  readonly usage: WireUsage;
  readonly intro: string;
}

/** Before there is advice: what was not used so far, which can be removed nevertheless. */
function SoFar({ usage, intro, ...props }: SoFarProps) {
  const { scopes } = props.token;
  const unused = unusedIn(scopes, usage);
  const { unknownSoFar, allUsedSoFar, noneUsedSoFar, unusedSoFar, anyway } = TEXTS.narrow;
  if (unused === undefined) return <NothingToRemove {...props} intro={intro} text={unknownSoFar} />;
  const count = unused.size;
  if (count === 0) return <NothingToRemove {...props} intro={intro} text={allUsedSoFar} />;
  if (count === scopes.length) {
    return <NothingToRemove {...props} intro={intro} text={noneUsedSoFar} />;
  }
  return (
    <RemoveScopes
      {...props}
      intro={intro}
      unused={[...unused]}
      kept={scopes.filter((scope) => !unused.has(scope))}
      title={unusedSoFar({ count })}
      confirm={anyway({ count })}
    />
  );
}

/** The scopes without a use that can be removed; `undefined` if other uses may have needed any of them. */
function unusedIn(
  scopes: readonly string[],
  { uses, scopes: counted, derived }: WireUsage,
): ReadonlySet<string> | undefined {
  const held = new Set(scopes);
  const byScope = counted.filter(({ scope }) => held.has(scope));
  const known = byScope.reduce((sum, used) => sum + used.uses, 0);
  if (known < uses || derived !== undefined) return undefined;
  const unused = byScope.filter((used) => used.uses === 0).map(({ scope }) => scope);
  return removable(ScopeSet.from(scopes), new Set(unused));
}

interface RemoveDialogProps extends NarrowDialogProps {
  readonly scopes: readonly string[];
}

/** Removes scopes of a token that its account may no longer have. */
export function RemoveDialog(props: RemoveDialogProps) {
  const { token, scopes, onCancel } = props;
  const kept = token.scopes.filter((scope) => !scopes.includes(scope));
  return (
    <Dialog title={TEXTS.narrow.removeTitle} onCancel={onCancel}>
      {kept.length === 0 ? (
        <NothingToRemove text={TEXTS.narrow.allOrphaned} {...props} />
      ) : (
        <RemoveScopes {...props} unused={scopes} kept={kept} intro={TEXTS.narrow.orphaned} />
      )}
    </Dialog>
  );
}

interface NothingToRemoveProps extends NarrowDialogProps {
  readonly intro?: string;
  readonly text: string;
}

function NothingToRemove({ intro, text, onCancel }: NothingToRemoveProps) {
  return (
    <>
      {intro && <p>{intro}</p>}
      <Notice kind="info">{text}</Notice>
      <div class="actions">
        <Button kind="primary" onClick={onCancel}>
          {TEXTS.actions.close}
        </Button>
      </div>
    </>
  );
}

interface RemoveScopesProps extends NarrowDialogProps {
  readonly unused: readonly string[];
  readonly kept: readonly string[];
  readonly intro: string;
  /** Above the list of what is removed. */
  readonly title?: string;
  readonly confirm?: string;
}

function RemoveScopes(props: RemoveScopesProps) {
  const { token, unused, kept, intro, title, confirm, onChanged, onCancel } = props;
  const { announce } = useConsole();
  const { isBusy, error, run, question } = useChange(token, onChanged);
  const count = unused.length;
  const narrow = () =>
    run(async (api, seen) => {
      onChanged(await api.patch(seen, { removeScopes: unused }));
      announce(TEXTS.narrow.done({ count }));
    });
  return (
    <>
      <p>{intro}</p>
      <ScopeList
        title={title ?? TEXTS.difference.removed({ count })}
        kind="removed"
        scopes={unused}
      />
      <ScopeList
        title={TEXTS.difference.kept({ summary: summaryOf(kept) })}
        kind="kept"
        scopes={kept}
      />
      {error && <ErrorNotice error={error} />}
      <DialogActions onClick={narrow} isBusy={isBusy} onCancel={onCancel}>
        {isBusy ? TEXTS.actions.saving : (confirm ?? TEXTS.narrow.confirm({ count }))}
      </DialogActions>
      {question}
    </>
  );
}
