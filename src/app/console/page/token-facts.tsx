import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { ShownToken } from './api.ts';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { CopyButton } from './controls/copy-button.tsx';
import { ErrorNotice } from './controls/notice.tsx';
import { Time } from './controls/time.tsx';
import { limitsText } from './limits-text.ts';
import { toApiError, useLoaded } from './loading.ts';
import { hrefOf } from './router.ts';
import { nameOf } from './shown-token.ts';
import { LANGUAGE, TEXTS } from './texts.ts';
import { LastUse } from './token-row.tsx';

/** The facts about a token, apart from its scopes. */
export function TokenFacts({ token }: { readonly token: ShownToken }) {
  const { uses, metadata, parent, limits } = token;
  return (
    <section class="card" aria-label={TEXTS.token.facts}>
      <dl class="fact-list">
        <Fact label={TEXTS.token.value}>
          <Value token={token} />
        </Fact>
        <Fact label={token.state === 'expired' ? TEXTS.list.expired : TEXTS.token.expires}>
          <Time seconds={token.expire} isExact />
        </Fact>
        <Fact label={TEXTS.token.created}>
          <Time seconds={token.createdAt} isExact />
        </Fact>
        <Fact label={TEXTS.list.lastUsed}>
          <LastUse token={token} />
          {uses !== undefined && uses > 0 && (
            <span class="muted"> ({TEXTS.rights.uses({ count: uses })})</span>
          )}
        </Fact>
        {parent !== undefined && (
          <Fact label={TEXTS.token.parent}>
            <TokenLink id={parent} />
          </Fact>
        )}
        <Fact label={TEXTS.token.id}>
          <code dir="ltr">{token.id}</code>
        </Fact>
        <Fact label={TEXTS.token.version}>{LANGUAGE.counts.format(token.version)}</Fact>
        {limits !== undefined && <Fact label={TEXTS.token.limits}>{limitsText(limits)}</Fact>}
        {metadata !== undefined && (
          <Fact label={TEXTS.token.metadata}>
            <code dir="ltr">{JSON.stringify(metadata)}</code>
          </Fact>
        )}
      </dl>
    </section>
  );
}

function Fact({
  label,
  children,
}: {
  readonly label: string;
  readonly children: ComponentChildren;
}) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A link to a token: its name, or its id until the token is read. */
function TokenLink({ id }: { readonly id: string }) {
  const { api } = useConsole();
  const loaded = useLoaded(id, () => api.get(id));
  const name = loaded.state === 'ready' ? nameOf(loaded.value) : undefined;
  return (
    <a href={hrefOf({ screen: 'token', id })} dir="auto">
      {name ?? <code dir="ltr">{id}</code>}
    </a>
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
      {value !== undefined && <CopyButton text={value} label={TEXTS.value.copyValue} />}
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
