import { useConsole } from './context.ts';
import { LoadedPart } from './controls/screen.tsx';
import { useLoaded } from './loading.ts';
import { TEXTS } from './texts.ts';
import { TokenRow } from './token-row.tsx';

/** The most children that are shown at first. */
const SHOWN = 100;

/** The tokens that were derived from a token; nothing if there are none. */
export function TokenChildren({ id }: { readonly id: string }) {
  const { api } = useConsole();
  const loaded = useLoaded(id, () => api.list({ parent: id, state: 'all', limit: SHOWN }));
  return (
    <LoadedPart loaded={loaded}>
      {({ tokens, cursor }) =>
        tokens.length === 0 ? null : (
          <section class="stack">
            <h2>{TEXTS.token.children}</h2>
            <ul class="tokens">
              {tokens.map((token) => (
                <TokenRow key={token.id} token={token} />
              ))}
            </ul>
            {cursor !== undefined && (
              <p class="hint">{TEXTS.token.moreChildren({ count: tokens.length })}</p>
            )}
          </section>
        )
      }
    </LoadedPart>
  );
}
