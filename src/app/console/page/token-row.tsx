import type { ComponentChildren } from 'preact';
import type { ShownToken } from './api.ts';
import { useConsole } from './context.ts';
import { StateBadge } from './controls/badge.tsx';
import { Time } from './controls/time.tsx';
import { useLoaded } from './loading.ts';
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
        {token.state !== 'active' && <StateBadge token={token} />}
        <code dir="ltr">{token.masked}</code>
        {token.elevates !== undefined && <Elevation id={token.elevates} />}
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

export interface LinkToProps {
  readonly id: string;
  /** The token, if it was read before. */
  readonly known?: ShownToken | undefined;
}

/** A link to a token: its name, or its id until the token is read. */
export function LinkTo({ id, known }: LinkToProps) {
  const { api } = useConsole();
  const loaded = useLoaded(id, async () => known ?? api.get(id));
  const name = loaded.state === 'ready' ? nameOf(loaded.value) : undefined;
  return (
    <a href={hrefOf({ screen: 'token', id })}>
      {name === undefined ? <code dir="ltr">{id}</code> : <bdi>{name}</bdi>}
    </a>
  );
}

/** What an elevation adds rights to, and when it ends. */
export function Elevation({ id, known }: LinkToProps) {
  return (
    <span class="elevation">
      {TEXTS.token.elevates} <LinkTo id={id} known={known} />. {TEXTS.token.endsWithChange}
    </span>
  );
}

/** When a token was last used, if the service records that. */
export function LastUse({ token: { lastUsed } }: { readonly token: ShownToken }) {
  if (lastUsed === undefined) return <>{TEXTS.list.notRecorded}</>;
  if (lastUsed === null) return <>{TEXTS.list.neverUsed}</>;
  return <Time seconds={lastUsed} />;
}
