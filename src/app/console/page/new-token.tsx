import { useState } from 'preact/hooks';
import type { FreshToken } from './api.ts';
import { useConsole } from './context.ts';
import { BackLink, LoadedPart, Screen } from './controls/screen.tsx';
import { useLoaded } from './loading.ts';
import { curlOf } from './new-token-draft.ts';
import { goTo, hrefOf } from './router.ts';
import { TEXTS } from './texts.ts';
import { TokenForm } from './token-form.tsx';
import { ValueOnce } from './value-once.tsx';

/** Makes a token and shows its value. The value has no address of its own: going back leaves it. */
export function NewTokenScreen() {
  const { api, abilities, base, username, choices } = useConsole();
  const loaded = useLoaded('choices', choices);
  const [issued, setIssued] = useState<FreshToken>();
  if (issued !== undefined) {
    return <ValueOnce token={issued} onDone={() => goTo({ screen: 'token', id: issued.id })} />;
  }
  return (
    <Screen title={TEXTS.newToken.title} above={<BackLink />}>
      <LoadedPart loaded={loaded}>
        {(all) => (
          <TokenForm
            choices={all}
            maxSeconds={abilities.maxSeconds}
            issue={(body) => api.issue(body)}
            curlOf={(body) => curlOf(base, username, body)}
            onIssued={setIssued}
            cancel={
              <a class="button" href={hrefOf({ screen: 'list' })}>
                {TEXTS.actions.cancel}
              </a>
            }
          />
        )}
      </LoadedPart>
    </Screen>
  );
}
