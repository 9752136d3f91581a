import type { ShownToken } from './api.ts';
import { StateBadge } from './controls/badge.tsx';
import { Time } from './controls/time.tsx';
import { summaryOf } from './rights.ts';
import { hrefOf } from './router.ts';
import { TEXTS } from './texts.ts';

/** One token of the list. */
export function TokenRow({ token }: { readonly token: ShownToken }) {
  return (
    <li class="token">
      <div class="token-name">
        <a href={hrefOf({ screen: 'token', id: token.id })} dir="auto">
          {token.name ?? TEXTS.list.unnamed}
        </a>
        {token.state !== 'active' && <StateBadge state={token.state} />}
        <code dir="ltr">{token.masked}</code>
      </div>
      <p class="token-rights">{summaryOf(token.scopes)}</p>
      <dl class="facts">
        <div>
          <dt>{TEXTS.list.expires}</dt>
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
    </li>
  );
}

/** When a token was last used, if the service records that. */
export function LastUse({ token: { lastUsed } }: { readonly token: ShownToken }) {
  if (lastUsed === undefined) return <>{TEXTS.list.notRecorded}</>;
  if (lastUsed === null) return <>{TEXTS.list.neverUsed}</>;
  return <Time seconds={lastUsed} />;
}
