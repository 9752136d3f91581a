import { useState } from 'preact/hooks';
import type { ApiError } from '../../../http/client.ts';
import type { WireExplanation } from '../../../http/wire.ts';
import type { ShownToken } from './api.ts';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { SelectField, TextField } from './controls/field.tsx';
import { ErrorNotice, Notice } from './controls/notice.tsx';
import { limitsText } from './limits-text.ts';
import { toApiError } from './loading.ts';
import { readAddress } from './rights.ts';
import { TEXTS } from './texts.ts';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const;
type Method = (typeof METHODS)[number];
const METHOD_CHOICES = Object.fromEntries(METHODS.map((name) => [name, name])) as Record<
  Method,
  string
>;

export interface TokenExplainProps {
  readonly token: ShownToken;
  /** Offers to give the token a scope that it lacks. */
  readonly onAdd: (scope: string) => void;
}

/** Answers whether a token would be allowed a call, and why, without making it. */
export function TokenExplain({ token, onAdd }: TokenExplainProps) {
  const { api } = useConsole();
  const [method, setMethod] = useState<Method>('GET');
  const [address, setAddress] = useState('');
  const [isWrong, setWrong] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [answer, setAnswer] = useState<WireExplanation>();
  const [error, setError] = useState<ApiError>();
  const ask = async (event: Event) => {
    event.preventDefault();
    const place = readAddress(address);
    setAnswer(undefined);
    setError(undefined);
    setWrong(place === undefined);
    if (place === undefined || isBusy) return;
    setBusy(true);
    try {
      setAnswer(await api.explain(token.id, { method, ...place }));
    } catch (failure) {
      setError(toApiError(failure));
    }
    setBusy(false);
  };
  return (
    <section class="card stack">
      <h2>{TEXTS.explain.title}</h2>
      <form class="ask" onSubmit={ask} noValidate>
        <SelectField
          label={TEXTS.explain.method}
          value={method}
          choices={METHOD_CHOICES}
          onChange={setMethod}
        />
        <TextField
          label={TEXTS.explain.address}
          value={address}
          onChange={setAddress}
          placeholder={TEXTS.explain.placeholder}
          error={isWrong ? TEXTS.explain.wrongAddress : undefined}
          isMono
        />
        <Button type="submit" isBusy={isBusy}>
          {TEXTS.explain.ask}
        </Button>
      </form>
      <div role="status">{answer && <Answer answer={answer} token={token} onAdd={onAdd} />}</div>
      {error && <ErrorNotice error={error} />}
    </section>
  );
}

interface AnswerProps extends TokenExplainProps {
  readonly answer: WireExplanation;
}

function Answer({ answer, token, onAdd }: AnswerProps) {
  const { allowed, reason, grantedBy, nearest, smallest, known, suggestions = [] } = answer;
  if (allowed) {
    return (
      <Notice kind="success">
        <p>
          <b>{TEXTS.explain.yes}</b>
        </p>
        {grantedBy !== undefined && <ScopeLine label={TEXTS.explain.grantedBy} scope={grantedBy} />}
        <OtherConditions token={token} />
      </Notice>
    );
  }
  return (
    <Notice kind="warning">
      <p>
        <b>{TEXTS.explain.no}</b> {reasonOf(answer)}
      </p>
      {nearest && <ScopeLine label={TEXTS.explain.nearest[nearest.failed]} scope={nearest.scope} />}
      {smallest !== undefined && (
        <>
          <ScopeLine label={TEXTS.explain.smallest} scope={smallest} />
          {known && reason === 'insufficient_scope' && (
            <Button onClick={() => onAdd(smallest)}>{TEXTS.explain.add}</Button>
          )}
        </>
      )}
      {suggestions.length > 0 && (
        <p>
          {TEXTS.explain.suggestions} <ScopeNames scopes={suggestions} />
        </p>
      )}
    </Notice>
  );
}

/**
 * An explanation is about scopes only. Whether limits allow a use is not known before it is tried.
 */
function OtherConditions({ token: { limits, parent } }: { readonly token: ShownToken }) {
  return (
    <>
      {limits !== undefined && <p>{TEXTS.explain.limits({ limits: limitsText(limits) })}</p>}
      {parent !== undefined && <p>{TEXTS.explain.ancestorLimits}</p>}
    </>
  );
}

function reasonOf({ reason = '', needed }: WireExplanation): string {
  // Nothing is needed for a request that cannot be read in one way.
  if (needed === '') return TEXTS.explain.ambiguous({ reason });
  const known: Readonly<Record<string, string>> = TEXTS.explain.reasons;
  return known[reason] ?? TEXTS.explain.otherReason({ reason });
}

function ScopeLine({ label, scope }: { readonly label: string; readonly scope: string }) {
  return (
    <p>
      {label} <code dir="ltr">{scope}</code>
    </p>
  );
}

function ScopeNames({ scopes }: { readonly scopes: readonly string[] }) {
  return (
    <>
      {scopes.map((scope, index) => (
        <span key={scope}>
          {index > 0 && ', '}
          <code dir="ltr">{scope}</code>
        </span>
      ))}
    </>
  );
}
