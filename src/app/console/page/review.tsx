import { useEffect, useState } from 'preact/hooks';
import type { ApiError } from '../../../http/client.ts';
import type { Finding, FreshToken, ShownToken } from './api.ts';
import { useChange } from './change.tsx';
import { useConsole } from './context.ts';
import { FindingBadge } from './controls/badge.tsx';
import { Button } from './controls/button.tsx';
import { Empty } from './controls/empty.tsx';
import { ErrorNotice } from './controls/notice.tsx';
import { Screen } from './controls/screen.tsx';
import { type Action, actionsOn, messageOfFinding, readFindings } from './findings.ts';
import { toApiError } from './loading.ts';
import { nameOf } from './shown-token.ts';
import { TEXTS } from './texts.ts';
import { type OpenDialog, TokenDialog } from './token-dialogs.tsx';
import { TokenLink } from './token-row.tsx';
import { ValueOnce } from './value-once.tsx';
import { useSummaries } from './words.tsx';

interface Reading {
  readonly findings: readonly Finding[];
  readonly isDone: boolean;
  readonly error?: ApiError;
}

const NOTHING_YET: Reading = { findings: [], isDone: false };

interface Opened {
  readonly dialog: OpenDialog;
  readonly token: ShownToken;
}

/** The findings of the review, with the actions on each. */
export function ReviewScreen() {
  const [round, setRound] = useState(0);
  const reading = useFindings(round);
  const [opened, setOpened] = useState<Opened>();
  const [fresh, setFresh] = useState<FreshToken>();
  const again = () => {
    setOpened(undefined);
    setFresh(undefined);
    setRound((count) => count + 1);
  };
  if (fresh !== undefined) return <ValueOnce token={fresh} onDone={again} />;
  const { findings, isDone, error } = reading;
  return (
    // A new screen in each round, so that the heading gets the focus when a row is gone.
    <Screen key={round} title={TEXTS.review.title}>
      <p class="intro">{TEXTS.review.intro}</p>
      {findings.length > 0 && (
        <ul class="tokens">
          {findings.map((finding) => (
            <FindingRow
              key={`${finding.code} ${finding.token.id}`}
              finding={finding}
              onOpen={(dialog) => setOpened({ dialog, token: finding.token })}
              onChanged={again}
            />
          ))}
        </ul>
      )}
      {isDone && findings.length === 0 && <AllWell />}
      {error && <ErrorNotice error={error} onRetry={again} />}
      {!error && (
        <p class={isDone && findings.length === 0 ? 'visually-hidden' : 'loading'} role="status">
          {isDone
            ? TEXTS.review.count({ count: findings.length })
            : TEXTS.review.reading({ count: findings.length })}
        </p>
      )}
      {opened && (
        <TokenDialog
          open={opened.dialog}
          token={opened.token}
          onChanged={again}
          onRotated={setFresh}
          onRevoked={again}
          onCancel={() => setOpened(undefined)}
        />
      )}
    </Screen>
  );
}

/** Reads all findings, page by page, and shows them as they come. */
function useFindings(round: number): Reading {
  const { api } = useConsole();
  const [reading, setReading] = useState(NOTHING_YET);
  useEffect(() => {
    let isWanted = true;
    let all: readonly Finding[] = [];
    readFindings(api, (findings, isDone) => {
      all = [...all, ...findings];
      if (isWanted) setReading({ findings: all, isDone });
      return isWanted;
    }).catch((error: unknown) => {
      if (isWanted) setReading({ findings: all, isDone: false, error: toApiError(error) });
    });
    return () => {
      isWanted = false;
    };
  }, [api, round]);
  return reading;
}

function AllWell() {
  return (
    <Empty icon="check" title={TEXTS.review.emptyTitle}>
      <p>{TEXTS.review.empty}</p>
    </Empty>
  );
}

interface FindingRowProps {
  readonly finding: Finding;
  readonly onOpen: (dialog: OpenDialog) => void;
  readonly onChanged: () => void;
}

function FindingRow({ finding, onOpen, onChanged }: FindingRowProps) {
  const { announce } = useConsole();
  const { code, token, scopes } = finding;
  const { isBusy, error, run, question } = useChange(token, onChanged);
  const act = (action: Action) => {
    if (action === 'resume') {
      return run(async (api, seen) => {
        await api.patch(seen, { suspended: false });
        announce(TEXTS.token.resumed);
        onChanged();
      });
    }
    return onOpen(dialogOf(action, scopes));
  };
  return (
    <li class="token finding">
      <div class="token-name">
        <TokenLink token={token} />
        <FindingBadge code={code} />
      </div>
      <div>
        <p dir="auto">{messageOfFinding(finding)}</p>
        <FoundScopes scopes={scopes} />
      </div>
      <div class="actions">
        {actionsOn(code).map((action) => (
          <Button
            key={action}
            kind={action === 'revoke' ? 'danger' : 'plain'}
            label={TEXTS.review.actionOn({
              action: TEXTS.review.actions[action],
              name: nameOf(token),
            })}
            isBusy={isBusy}
            onClick={() => act(action)}
          >
            {TEXTS.review.actions[action]}
          </Button>
        ))}
      </div>
      {error && <ErrorNotice error={error} />}
      {question}
    </li>
  );
}

/** How many scopes a finding names. */
const NAMED = 3;

/** The scopes that a finding is about, if the catalog says what they do. */
function FoundScopes({ scopes }: { readonly scopes: readonly string[] }) {
  const summaryOf = useSummaries();
  const named = scopes.flatMap((scope) => summaryOf(scope) ?? []);
  if (named.length === 0) return null;
  const shown = named.slice(0, NAMED);
  const count = scopes.length - shown.length;
  const more = count === 0 ? [] : [TEXTS.bulk.andMore({ count })];
  return (
    <p class="hint" dir="auto">
      {[...shown, ...more].join(' · ')}
    </p>
  );
}

function dialogOf(action: Exclude<Action, 'resume'>, scopes: readonly string[]): OpenDialog {
  if (action === 'remove') return { kind: 'remove', scopes };
  if (action === 'scopes') return { kind: 'edit', added: [] };
  return { kind: action === 'extend' ? 'edit' : action };
}
