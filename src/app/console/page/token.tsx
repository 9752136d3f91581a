import { useState } from 'preact/hooks';
import type { WireUse } from '../../../http/wire.ts';
import type { FreshToken, ShownToken } from './api.ts';
import { useChange } from './change.tsx';
import { useConsole } from './context.ts';
import { StateBadge } from './controls/badge.tsx';
import { Button } from './controls/button.tsx';
import { ErrorNotice, Notice } from './controls/notice.tsx';
import { BackLink, LoadedPart, Screen } from './controls/screen.tsx';
import { Time } from './controls/time.tsx';
import { type Loaded, useLoaded } from './loading.ts';
import { goTo } from './router.ts';
import { isLive, nameOf } from './shown-token.ts';
import { TEXTS } from './texts.ts';
import { type OpenDialog, TokenDialog } from './token-dialogs.tsx';
import { TokenExplain } from './token-explain.tsx';
import { TokenFacts, TokenHandles } from './token-facts.tsx';
import { TokenRights } from './token-rights.tsx';
import { TokenRow } from './token-row.tsx';
import { ValueOnce } from './value-once.tsx';
import { MayDo } from './words.tsx';

/** One token: what it is, what it may do and does, and everything that can be changed about it. */
export function TokenScreen({ id }: { readonly id: string }) {
  const { api } = useConsole();
  const loaded = useLoaded(id, () => api.get(id));
  const [fresh, setFresh] = useState<FreshToken>();
  if (fresh !== undefined) {
    const leave = () => {
      loaded.reload();
      setFresh(undefined);
    };
    return <ValueOnce token={fresh} onDone={leave} />;
  }
  const token = loaded.state === 'ready' ? loaded.value : undefined;
  return (
    <Screen
      key={loaded.state}
      title={token === undefined ? TEXTS.token.title : nameOf(token)}
      badge={token && <StateBadge token={token} />}
      above={<BackLink />}
    >
      <LoadedPart loaded={loaded}>
        {(token) => <TokenDetails token={token} loaded={loaded} onRotated={setFresh} />}
      </LoadedPart>
    </Screen>
  );
}

interface TokenDetailsProps {
  readonly token: ShownToken;
  readonly loaded: Loaded<ShownToken>;
  readonly onRotated: (token: FreshToken) => void;
}

function TokenDetails({ token, loaded, onRotated }: TokenDetailsProps) {
  const { abilities } = useConsole();
  const [open, setOpen] = useState<OpenDialog>();
  const close = () => setOpen(undefined);
  const change = (changed: ShownToken) => {
    // The answer to a change has no use counts.
    loaded.set({ ...withUse(token), ...changed });
    close();
  };
  return (
    <div class="stack">
      <TokenBar token={token} onOpen={setOpen} onChanged={change} />
      {token.pending && (
        <PendingNotice token={token} onChanged={change} onDropped={loaded.reload} />
      )}
      <TokenFacts token={token} />
      <Rights token={token} onOpen={setOpen} />
      {isLive(token) && abilities.has('/token/{token}/explain') && (
        <TokenExplain token={token} onAdd={(added) => setOpen({ kind: 'edit', added: [added] })} />
      )}
      {abilities.listsChildren && <TokenChildren id={token.id} />}
      <TokenHandles token={token} />
      {open && (
        <TokenDialog
          open={open}
          token={token}
          onChanged={change}
          onRotated={onRotated}
          onRevoked={() => goTo({ screen: 'list' })}
          onCancel={close}
        />
      )}
    </div>
  );
}

function withUse({ uses, lastUsed }: ShownToken): Partial<ShownToken> {
  return {
    ...(uses !== undefined && { uses }),
    ...(lastUsed !== undefined && { lastUsed }),
  };
}

interface TokenBarProps {
  readonly token: ShownToken;
  readonly onOpen: (dialog: OpenDialog) => void;
  readonly onChanged: (token: ShownToken) => void;
}

/** The actions on a token in its current state. */
function TokenBar({ token, onOpen, onChanged }: TokenBarProps) {
  const { announce } = useConsole();
  const { isBusy, error, run, question } = useChange(token, onChanged);
  const { state } = token;
  const isSuspended = state === 'suspended';
  const toggle = () =>
    run(async (api, seen) => {
      onChanged(await api.patch(seen, { suspended: !isSuspended }));
      announce(isSuspended ? TEXTS.token.resumed : TEXTS.token.suspended);
    });
  return (
    <>
      {state !== 'revoked' && (
        <div class="actions">
          {isLive(token) && (
            <>
              <Button onClick={() => onOpen({ kind: 'edit' })}>{TEXTS.token.edit}</Button>
              <Button onClick={toggle} isBusy={isBusy}>
                {isSuspended ? TEXTS.token.resume : TEXTS.token.suspend}
              </Button>
              {token.elevates === undefined && (
                <Button onClick={() => onOpen({ kind: 'rotate' })}>{TEXTS.token.rotate}</Button>
              )}
            </>
          )}
          <Button kind="danger" onClick={() => onOpen({ kind: 'revoke' })}>
            {TEXTS.token.revoke}
          </Button>
        </div>
      )}
      {error && <ErrorNotice error={error} />}
      {question}
    </>
  );
}

interface PendingNoticeProps {
  readonly token: ShownToken;
  readonly onChanged: (token: ShownToken) => void;
  readonly onDropped: () => void;
}

/** A new value waits for its first use; it can still be dropped. */
function PendingNotice({ token, onChanged, onDropped }: PendingNoticeProps) {
  const { announce } = useConsole();
  const { isBusy, error, run, question } = useChange(token, onChanged);
  const drop = () =>
    run(async (api, seen) => {
      await api.cancelRotation(seen);
      announce(TEXTS.token.dropped);
      onDropped();
    });
  return (
    <Notice kind="info">
      <p>{TEXTS.token.pending}</p>
      <Button onClick={drop} isBusy={isBusy}>
        {TEXTS.token.drop}
      </Button>
      {error && <ErrorNotice error={error} />}
      {question}
    </Notice>
  );
}

interface RightsProps {
  readonly token: ShownToken;
  readonly onOpen: (dialog: OpenDialog) => void;
}

function Rights({ token, onOpen }: RightsProps) {
  const { api } = useConsole();
  // The service does not show the uses of a revoked token.
  const isCounted = token.uses !== undefined && token.state !== 'revoked';
  const usage = useLoaded(`${token.id} ${token.version}`, async () =>
    isCounted ? api.usage(token.id) : undefined,
  );
  return (
    <section class="card stack">
      <div class="section-head">
        <div>
          <h2>{TEXTS.token.rights}</h2>
          <p class="muted">
            <MayDo scopes={token.scopes} />
          </p>
        </div>
        {isLive(token) && isCounted && (
          <Button onClick={() => onOpen({ kind: 'narrow' })}>{TEXTS.token.narrow}</Button>
        )}
      </div>
      <LoadedPart loaded={usage}>
        {(counts) => (
          <>
            <TokenRights scopes={token.scopes} usage={counts} />
            {counts?.derived !== undefined && <DerivedUses {...counts.derived} />}
          </>
        )}
      </LoadedPart>
    </section>
  );
}

function DerivedUses({ uses, lastUsed }: WireUse) {
  return (
    <p class="muted">
      {TEXTS.rights.derivedUses({ count: uses })}{' '}
      {lastUsed === null ? TEXTS.rights.never : <Time seconds={lastUsed} />}
    </p>
  );
}

/** The most children of one token that are shown. */
const SHOWN = 100;

/** The tokens that were derived from a token, as a tree; nothing if there are none. */
function TokenChildren({ id }: { readonly id: string }) {
  const loaded = useChildren(id);
  return (
    <LoadedPart loaded={loaded}>
      {(page) =>
        page.tokens.length === 0 ? null : (
          <section class="stack">
            <h2>{TEXTS.token.children}</h2>
            <Children {...page} />
          </section>
        )
      }
    </LoadedPart>
  );
}

function useChildren(id: string) {
  const { api } = useConsole();
  return useLoaded(id, () => api.list({ parent: id, state: 'all', limit: SHOWN }));
}

interface ChildrenProps {
  readonly tokens: readonly ShownToken[];
  readonly cursor?: string;
}

function Children({ tokens, cursor }: ChildrenProps) {
  return (
    <>
      <ul class="tokens">
        {tokens.map((token) => (
          <TokenRow key={token.id} token={token}>
            <Below token={token} />
          </TokenRow>
        ))}
      </ul>
      {cursor !== undefined && (
        <p class="hint">{TEXTS.token.moreChildren({ count: tokens.length })}</p>
      )}
    </>
  );
}

/** Reads the children of a token when it is opened: a token may have any number of descendants. */
function Below({ token }: { readonly token: ShownToken }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details
      class="token-below"
      onToggle={(event) => {
        // Nested `details` may report here that they were toggled.
        if (event.target === event.currentTarget) setOpen(event.currentTarget.open);
      }}
    >
      <summary>{TEXTS.derive.below({ name: nameOf(token) })}</summary>
      {isOpen && <OpenedBelow id={token.id} />}
    </details>
  );
}

function OpenedBelow({ id }: { readonly id: string }) {
  const loaded = useChildren(id);
  return (
    <LoadedPart loaded={loaded}>
      {(page) =>
        page.tokens.length === 0 ? <p class="hint">{TEXTS.derive.none}</p> : <Children {...page} />
      }
    </LoadedPart>
  );
}
