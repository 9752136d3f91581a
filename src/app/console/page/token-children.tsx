import { useState } from 'preact/hooks';
import type { ShownToken } from './api.ts';
import { useConsole } from './context.ts';
import { LoadedPart } from './controls/screen.tsx';
import { useLoaded } from './loading.ts';
import { nameOf } from './shown-token.ts';
import { TEXTS } from './texts.ts';
import { TokenRow } from './token-row.tsx';

/** The most children of one token that are shown. */
const SHOWN = 100;

/** The tokens that were derived from a token, as a tree; nothing if there are none. */
export function TokenChildren({ id }: { readonly id: string }) {
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
