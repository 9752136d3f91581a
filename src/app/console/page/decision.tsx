import { useRef, useState } from 'preact/hooks';
import type { ApiError } from '../../../http/client.ts';
import type { WireRequest } from '../../../http/wire.ts';
import type { ShownToken } from './api.ts';
import {
  type ApprovalDraft,
  approvalOf,
  draftOfRequest,
  lifetimesWithin,
} from './approval-draft.ts';
import { ApprovalRights } from './approval-rights.tsx';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { SelectField } from './controls/field.tsx';
import { ErrorNotice, Notice } from './controls/notice.tsx';
import { BackLink, Screen } from './controls/screen.tsx';
import { durationText } from './controls/time.tsx';
import { toApiError } from './loading.ts';
import { FirstToken, RequestFacts } from './request-facts.tsx';
import { TEXTS } from './texts.ts';
import { TokenRights } from './token-rights.tsx';

/** A request for a token, and what a person has to know about it. */
export interface AskedRequest {
  /** As the person typed it. It is in no address. */
  readonly code: string;
  readonly request: WireRequest;
  /** Of an elevation: the token that asks, and then those above it. */
  readonly line: readonly ShownToken[];
}

export interface DecisionProps {
  readonly asked: AskedRequest;
  /** Leads back to the form for a code. */
  readonly onDone: () => void;
}

/** What became of the request: decided here, or before by somebody else, or it cannot be decided any more. */
type Outcome = 'approved' | 'denied' | 'decided' | 'gone';

interface Decided {
  readonly outcome?: Outcome | undefined;
  readonly request: WireRequest;
}

/** Shows a request, and approves it, a part of it, or denies it. */
export function Decision({ asked, onDone }: DecisionProps) {
  const { decided, busy, error, decide } = useDecision(asked);
  const { outcome, request } = decided;
  if (outcome === undefined) {
    return (
      <Screen title={titleOf(request)} above={<BackLink />}>
        <DecisionForm asked={asked} busy={busy} error={error} onDecide={decide} />
      </Screen>
    );
  }
  return (
    <Screen key={outcome} title={TEXTS.approve[`${outcome}Title`]} above={<BackLink />}>
      <div class="stack">
        <OutcomeNotice outcome={outcome} request={request} />
        <RequestFacts request={request} />
        {outcome === 'approved' && (
          <section class="card stack">
            <h2>{TEXTS.approve.approvedRights}</h2>
            <TokenRights scopes={request.scopes} usage={undefined} />
          </section>
        )}
        <div class="actions">
          <Button onClick={onDone}>{TEXTS.approve.another}</Button>
        </div>
      </div>
    </Screen>
  );
}

function titleOf({ elevates }: WireRequest): string {
  return elevates === undefined ? TEXTS.approve.asks : TEXTS.approve.asksMore;
}

function OutcomeNotice({ outcome, request }: Decided & { readonly outcome: Outcome }) {
  const { approved, denied, decided, gone } = TEXTS.approve;
  switch (outcome) {
    case 'approved':
      return (
        <Notice kind="success">
          <p>{approved}</p>
          {request.elevates !== undefined && <p>{TEXTS.approve.approvedMore}</p>}
        </Notice>
      );
    case 'denied':
      return <Notice kind="success">{denied}</Notice>;
    case 'decided':
      return (
        <Notice kind="info">{request.state === 'pending' ? gone : decided[request.state]}</Notice>
      );
    case 'gone':
      return <Notice kind="warning">{gone}</Notice>;
  }
}

/** The draft that is approved; `undefined` denies. */
type Verdict = ApprovalDraft | undefined;

/** Makes the decision, at most once. If somebody else was faster, finds out what they decided. */
function useDecision({ code, request }: AskedRequest) {
  const { api } = useConsole();
  const [decided, setDecided] = useState<Decided>({
    outcome: request.state === 'pending' ? undefined : 'decided',
    request,
  });
  const [busy, setBusy] = useState<'approve' | 'deny'>();
  const [error, setError] = useState<ApiError>();
  const isRunning = useRef(false);
  const settle = async (verdict: Verdict): Promise<Decided> => {
    if (verdict !== undefined) {
      const approved = await api.approve(code, approvalOf(request, verdict));
      return { outcome: 'approved', request: approved };
    }
    await api.deny(code);
    return { outcome: 'denied', request: { ...request, state: 'denied' } };
  };
  const decide = async (verdict: Verdict) => {
    if (isRunning.current) return;
    isRunning.current = true;
    setBusy(verdict === undefined ? 'deny' : 'approve');
    setError(undefined);
    try {
      setDecided(await settle(verdict));
    } catch (failure) {
      const reason = toApiError(failure);
      const fate = await fateOf(reason).catch(() => undefined);
      if (fate === undefined) setError(reason);
      else setDecided(fate);
    }
    isRunning.current = false;
    setBusy(undefined);
  };
  /** What a refusal says about the request; `undefined` if it can still be decided. */
  const fateOf = async (reason: ApiError): Promise<Decided | undefined> => {
    if (reason.code === 'not_found') return { outcome: 'gone', request };
    if (reason.code !== 'request_decided') return undefined;
    return { outcome: 'decided', request: await api.request(code) };
  };
  return { decided, busy, error, decide };
}

interface DecisionFormProps {
  readonly asked: AskedRequest;
  readonly busy: 'approve' | 'deny' | undefined;
  readonly error: ApiError | undefined;
  readonly onDecide: (verdict: Verdict) => void;
}

function DecisionForm({ asked, busy, error, onDecide }: DecisionFormProps) {
  const { request, line } = asked;
  const [draft, setDraft] = useState(() => draftOfRequest(request));
  const [isTried, setTried] = useState(false);
  const isNothing = approvalOf(request, draft).scopes.length === 0;
  const canApprove = request.scopes.length > 0;
  const approve = (event: Event) => {
    event.preventDefault();
    setTried(true);
    if (canApprove && !isNothing) onDecide(draft);
  };
  return (
    <form class="stack" onSubmit={approve} noValidate>
      <Notice kind="warning">{TEXTS.approve.warning}</Notice>
      <RequestFacts request={request} />
      {line.length > 0 && <FirstToken line={line} />}
      <ApprovalRights
        request={request}
        draft={draft}
        error={isTried && isNothing && canApprove ? TEXTS.approve.missing : undefined}
        onChange={setDraft}
      />
      {canApprove && <Lifetime request={request} draft={draft} onChange={setDraft} />}
      {error && <ErrorNotice error={error} />}
      <div class="actions">
        {canApprove && (
          <Button kind="primary" type="submit" isBusy={busy !== undefined}>
            {busy === 'approve' ? TEXTS.approve.approving : TEXTS.approve.approve}
          </Button>
        )}
        <Button kind="danger" onClick={() => onDecide(undefined)} isBusy={busy !== undefined}>
          {busy === 'deny' ? TEXTS.approve.denying : TEXTS.approve.deny}
        </Button>
      </div>
    </form>
  );
}

interface LifetimeProps {
  readonly request: WireRequest;
  readonly draft: ApprovalDraft;
  readonly onChange: (draft: ApprovalDraft) => void;
}

function Lifetime({ request, draft, onChange }: LifetimeProps) {
  const choices = lifetimesWithin(request.ttl).map((ttl) => [ttl, durationText(ttl)]);
  return (
    <section class="card enter-code">
      <SelectField
        label={TEXTS.approve.lifetime}
        hint={TEXTS.approve.lifetimeHint}
        value={String(draft.ttl)}
        choices={Object.fromEntries(choices) as Record<string, string>}
        onChange={(ttl) => onChange({ ...draft, ttl: Number(ttl) })}
      />
    </section>
  );
}
