import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import type { WireRequest } from '../../../http/wire.ts';
import { type ApprovalDraft, approvalOf, withScopes } from './approval-draft.ts';
import { Badge } from './controls/badge.tsx';
import { Notice } from './controls/notice.tsx';
import { type RightHost, type RightLeaf, rightsTree } from './rights.ts';
import { TEXTS } from './texts.ts';
import { Method } from './token-rights.tsx';
import { MayDo, useSummaries } from './words.tsx';

export interface ApprovalRightsProps {
  readonly request: WireRequest;
  readonly draft: ApprovalDraft;
  readonly error: string | undefined;
  readonly onChange: (draft: ApprovalDraft) => void;
}

/** All that a program asks for, by host, with a checkbox for each: what is not ticked is not approved. */
export function ApprovalRights({ request, draft, error, onChange }: ApprovalRightsProps) {
  const summaries = useSummaries();
  const errorId = useId();
  if (request.scopes.length === 0) return <Notice kind="info">{TEXTS.approve.noRights}</Notice>;
  const kept = approvalOf(request, draft).scopes;
  const beyond = new Set(request.beyond);
  return (
    <section class="card stack">
      <div>
        <h2>{TEXTS.approve.rights}</h2>
        <p class="muted" role="status">
          {kept.length === 0 ? TEXTS.approve.nothing : <MayDo scopes={kept} />}
        </p>
      </div>
      {request.beyond !== undefined && <Beyond beyond={beyond.size} all={request.scopes.length} />}
      <p class="hint">{TEXTS.approve.rightsHint}</p>
      <fieldset class="rights asked" aria-describedby={error && errorId}>
        <legend class="visually-hidden">{TEXTS.approve.rights}</legend>
        {rightsTree(request.scopes, undefined, summaries).map((host) => (
          <HostChoice
            key={host.host}
            host={host}
            dropped={draft.dropped}
            beyond={beyond}
            onChoose={(scopes, isKept) => onChange(withScopes(draft, scopes, isKept))}
          />
        ))}
      </fieldset>
      {error && (
        <p class="error" id={errorId} role="alert">
          {error}
        </p>
      )}
    </section>
  );
}

/** How much of it the token that asks does not hold. */
function Beyond({ beyond, all }: { readonly beyond: number; readonly all: number }) {
  if (beyond === 0) return <p>{TEXTS.approve.nothingBeyond}</p>;
  return <p>{TEXTS.approve.beyondCount({ count: beyond, all })}</p>;
}

interface HostChoiceProps {
  readonly host: RightHost;
  readonly dropped: ReadonlySet<string>;
  readonly beyond: ReadonlySet<string>;
  readonly onChoose: (scopes: readonly string[], isKept: boolean) => void;
}

function HostChoice({ host, dropped, beyond, onChoose }: HostChoiceProps) {
  const box = useRef<HTMLInputElement>(null);
  const rows = host.paths.flatMap(({ path, leaves }) => leaves.map((leaf) => ({ path, leaf })));
  const scopes = rows.map(({ leaf }) => leaf.scope);
  const kept = scopes.filter((scope) => !dropped.has(scope)).length;
  // After each render, because a click resets `indeterminate`.
  useLayoutEffect(() => {
    if (box.current !== null) box.current.indeterminate = kept > 0 && kept < scopes.length;
  });
  return (
    <div>
      <label class="asked-host">
        <input
          ref={box}
          type="checkbox"
          checked={kept === scopes.length}
          onChange={() => onChoose(scopes, kept < scopes.length)}
        />
        <span>
          <b dir="ltr">{host.host}</b>{' '}
          <span class="muted">{TEXTS.rights.endpoints({ count: host.count })}</span>
        </span>
      </label>
      <ul aria-label={host.host}>
        {rows.map(({ path, leaf }) => (
          <li key={leaf.scope}>
            <EndpointChoice
              path={path}
              leaf={leaf}
              isKept={!dropped.has(leaf.scope)}
              isBeyond={beyond.has(leaf.scope)}
              onChoose={(isKept) => onChoose([leaf.scope], isKept)}
            />
          </li>
        ))}
      </ul>
    </div>
  );
}

interface EndpointChoiceProps {
  readonly path: string;
  readonly leaf: RightLeaf;
  readonly isKept: boolean;
  readonly isBeyond: boolean;
  readonly onChoose: (isKept: boolean) => void;
}

function EndpointChoice({ path, leaf, isKept, isBeyond, onChoose }: EndpointChoiceProps) {
  return (
    <label>
      <input
        type="checkbox"
        checked={isKept}
        onChange={({ currentTarget }) => onChoose(currentTarget.checked)}
      />
      <span>
        {leaf.summary !== undefined && <bdi>{leaf.summary}</bdi>}{' '}
        {isBeyond && <Badge kind="warning">{TEXTS.approve.beyond}</Badge>}{' '}
        <code class="exact muted" dir="ltr">
          <Method leaf={leaf} /> {path}
        </code>
      </span>
    </label>
  );
}
