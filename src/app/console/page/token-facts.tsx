import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { ShownToken } from './api.ts';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { CopyButton } from './controls/copy-button.tsx';
import { Foreign } from './controls/foreign.tsx';
import { Icon, type IconName } from './controls/icon.tsx';
import { ErrorNotice } from './controls/notice.tsx';
import { exactTime, Time } from './controls/time.tsx';
import { limitsText } from './limits-text.ts';
import { toApiError } from './loading.ts';
import { LANGUAGE, TEXTS } from './texts.ts';
import { LastUse, LinkTo } from './token-row.tsx';

/** The facts about a token, apart from its scopes: the most important ones first. */
export function TokenFacts({ token }: { readonly token: ShownToken }) {
  const { uses, metadata, limits } = token;
  return (
    <section class="card" aria-label={TEXTS.token.facts}>
      <dl class="fact-list">
        <Fact
          label={token.state === 'expired' ? TEXTS.list.expired : TEXTS.token.expires}
          icon="clock"
        >
          <Moment seconds={token.expire} />
        </Fact>
        <Fact label={TEXTS.list.lastUsed} icon="use">
          <b>
            <LastUse token={token} />
          </b>
          {uses !== undefined && uses > 0 && (
            <span class="muted exact">{TEXTS.rights.uses({ count: uses })}</span>
          )}
        </Fact>
        <Fact label={TEXTS.token.created} icon="plus">
          <Moment seconds={token.createdAt} />
        </Fact>
        <Fact label={TEXTS.token.value} icon="key">
          <Value token={token} />
        </Fact>
        <Origin token={token} />
        {limits !== undefined && (
          <Fact label={TEXTS.token.limits} icon="shield">
            {limitsText(limits)}
          </Fact>
        )}
        {metadata !== undefined && (
          <Fact label={TEXTS.token.metadata} icon="info">
            <code dir="ltr">{JSON.stringify(metadata)}</code>
          </Fact>
        )}
      </dl>
    </section>
  );
}

/** Who made the token, from what, and for what. */
function Origin({ token }: { readonly token: ShownToken }) {
  const { createdBy, purpose, actor, parent, elevates } = token;
  return (
    <>
      {createdBy !== undefined && (
        <Fact label={TEXTS.token.createdBy} icon="user">
          <Foreign text={createdBy} />
        </Fact>
      )}
      {purpose !== undefined && (
        <Fact label={TEXTS.token.purpose} icon="info">
          <Foreign text={purpose} />
        </Fact>
      )}
      {actor !== undefined && (
        <Fact label={TEXTS.token.actor} icon="user">
          <b>
            <Foreign text={actor.sub} />
          </b>
          <span class="muted exact">
            {TEXTS.token.actorToken} <code dir="ltr">{actor.token}</code>
          </span>
        </Fact>
      )}
      {elevates !== undefined ? (
        <Fact label={TEXTS.token.elevates} icon="branch">
          <LinkTo id={elevates} />
          <span class="muted exact">{TEXTS.token.endsWithChange}</span>
        </Fact>
      ) : (
        parent !== undefined && (
          <Fact label={TEXTS.token.parent} icon="branch">
            <LinkTo id={parent} />
          </Fact>
        )
      )}
    </>
  );
}

/** What programs need to name a token; few people do. */
export function TokenHandles({ token }: { readonly token: ShownToken }) {
  return (
    <details class="card">
      <summary>{TEXTS.token.details}</summary>
      <dl class="fact-list">
        <Fact label={TEXTS.token.id}>
          <span class="inline">
            <code dir="ltr">{token.id}</code>
            <CopyButton text={token.id} label={TEXTS.token.copyId} />
          </span>
        </Fact>
        <Fact label={TEXTS.token.version}>{LANGUAGE.counts.format(token.version)}</Fact>
      </dl>
    </details>
  );
}

interface FactProps {
  readonly label: string;
  readonly icon?: IconName;
  readonly children: ComponentChildren;
}

export function Fact({ label, icon, children }: FactProps) {
  return (
    <div>
      <dt>
        {icon && <Icon name={icon} />} {label}
      </dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A time as a distance from now, with the exact time below it. */
export function Moment({ seconds }: { readonly seconds: number }) {
  return (
    <>
      <b>
        <Time seconds={seconds} />
      </b>
      <span class="muted exact">{exactTime(seconds)}</span>
    </>
  );
}

/** The masked value. If the service can show the value again, a button asks for it. */
function Value({ token: { id, masked, isReadable } }: { readonly token: ShownToken }) {
  const { api } = useConsole();
  const [value, setValue] = useState<string>();
  const [error, setError] = useState<ReturnType<typeof toApiError>>();
  const reveal = async () => {
    setError(undefined);
    try {
      setValue(await api.reveal(id));
    } catch (failure) {
      setError(toApiError(failure));
    }
  };
  return (
    <span class="inline">
      <code dir="ltr">{value ?? masked}</code>
      <CopyButton
        key={value}
        text={value ?? masked}
        label={value === undefined ? TEXTS.token.copyMasked : TEXTS.value.copyValue}
      />
      {/* One button for both, so that it keeps the focus. */}
      {isReadable && (
        <Button onClick={value === undefined ? reveal : () => setValue(undefined)}>
          {value === undefined ? TEXTS.token.show : TEXTS.token.hide}
        </Button>
      )}
      {error && <ErrorNotice error={error} />}
    </span>
  );
}
