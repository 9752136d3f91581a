import type { ComponentChildren } from 'preact';
import type { ShownToken } from './api.ts';
import { FindingBadge, StateBadge } from './controls/badge.tsx';
import { Time } from './controls/time.tsx';
import { summaryOf } from './rights.ts';
import { hrefOf } from './router.ts';
import { nameOf } from './shown-token.ts';
import { TEXTS } from './texts.ts';

export interface TokenRowProps {
  readonly token: ShownToken;
  /** The codes of its findings in the review. */
  readonly findings?: readonly string[];
  /** Absent if the token cannot be selected. */
  readonly selection?: { readonly isSelected: boolean; readonly onToggle: () => void };
  /** Shown below its facts. */
  readonly children?: ComponentChildren;
}

/** One token of the list. */
export function TokenRow({ token, findings = [], selection, children }: TokenRowProps) {
  const name = nameOf(token);
  return (
    <li class={selection ? 'token selectable' : 'token'}>
      {selection && (
        <input
          type="checkbox"
          aria-label={TEXTS.bulk.select({ name })}
          checked={selection.isSelected}
          onChange={selection.onToggle}
        />
      )}
      <div class="token-name">
        <a href={hrefOf({ screen: 'token', id: token.id })} dir="auto" title={name}>
          {name}
        </a>
        {token.state !== 'active' && <StateBadge state={token.state} />}
        {findings.map((code) => (
          <FindingBadge key={code} code={code} />
        ))}
        <code dir="ltr">{token.masked}</code>
      </div>
      <div class="token-about">
        <p class="token-rights">{summaryOf(token.scopes)}</p>
        <dl class="facts">
          <div>
            <dt>{token.state === 'expired' ? TEXTS.list.expired : TEXTS.list.expires}</dt>
            <dd>
              <Time seconds={token.expire} />
            </dd>
          </div>
          <div>
            <dt>{TEXTS.list.lastUsed}</dt>
            <dd>
              <LastUse token={token} />
            </dd>
          </div>
          <div>
            <dt>{TEXTS.list.created}</dt>
            <dd>
              <Time seconds={token.createdAt} />
            </dd>
          </div>
        </dl>
      </div>
      {children}
    </li>
  );
}

/** When a token was last used, if the service records that. */
export function LastUse({ token: { lastUsed } }: { readonly token: ShownToken }) {
  if (lastUsed === undefined) return <>{TEXTS.list.notRecorded}</>;
  if (lastUsed === null) return <>{TEXTS.list.neverUsed}</>;
  return <Time seconds={lastUsed} />;
}
