import type { ComponentChildren } from 'preact';
import type { ShownToken } from './api.ts';
import { StateBadge } from './controls/badge.tsx';
import { Time } from './controls/time.tsx';
import { hrefOf } from './router.ts';
import { nameOf } from './shown-token.ts';
import { TEXTS } from './texts.ts';
import { MayDo } from './words.tsx';

export interface TokenRowProps {
  readonly token: ShownToken;
  /** Shown below its facts. */
  readonly children?: ComponentChildren;
}

/** One token of a list in the page of another one. */
export function TokenRow({ token, children }: TokenRowProps) {
  return (
    <li class="token">
      <div class="token-name">
        <TokenLink token={token} />
        {token.state !== 'active' && <StateBadge state={token.state} />}
        <code dir="ltr">{token.masked}</code>
      </div>
      <div class="token-about">
        <p class="token-rights">
          <MayDo scopes={token.scopes} />
        </p>
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

/** The name of a token, which leads to its page. */
export function TokenLink({ token }: { readonly token: ShownToken }) {
  const name = nameOf(token);
  return (
    <a class="token-link" href={hrefOf({ screen: 'token', id: token.id })} title={name}>
      <bdi>{name}</bdi>
    </a>
  );
}

/** When a token was last used, if the service records that. */
export function LastUse({ token: { lastUsed } }: { readonly token: ShownToken }) {
  if (lastUsed === undefined) return <>{TEXTS.list.notRecorded}</>;
  if (lastUsed === null) return <>{TEXTS.list.neverUsed}</>;
  return <Time seconds={lastUsed} />;
}
