import { choicesAmong, type FreshToken } from './api.ts';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { LoadedPart, Screen } from './controls/screen.tsx';
import { exactTime } from './controls/time.tsx';
import { useLoaded } from './loading.ts';
import { deriveCurlOf } from './new-token-draft.ts';
import { nameOf } from './shown-token.ts';
import { TEXTS } from './texts.ts';
import { TokenForm } from './token-form.tsx';

export interface DeriveScreenProps {
  /** With its value, which is needed to derive from it. */
  readonly parent: FreshToken;
  readonly onDerived: (token: FreshToken) => void;
  readonly onCancel: () => void;
}

/** Derives a narrower token from one that has just been made, so that its value is at hand. */
export function DeriveScreen({ parent, onDerived, onCancel }: DeriveScreenProps) {
  const { api, abilities, base, choices } = useConsole();
  const loaded = useLoaded(parent.id, async () => choicesAmong(await choices(), parent.scopes));
  const leftSeconds = Math.floor(parent.expire - Date.now() / 1000);
  const name = nameOf(parent);
  return (
    <Screen title={TEXTS.derive.title}>
      <p class="intro">{TEXTS.derive.intro({ name, date: exactTime(parent.expire) })}</p>
      <LoadedPart loaded={loaded}>
        {(all) => (
          <TokenForm
            choices={all}
            maxSeconds={Math.min(leftSeconds, abilities.maxSeconds ?? leftSeconds)}
            issue={(body) => api.derive(parent.value, body)}
            curlOf={(body) => deriveCurlOf(base, body)}
            onIssued={onDerived}
            cancel={<Button onClick={onCancel}>{TEXTS.actions.cancel}</Button>}
          />
        )}
      </LoadedPart>
    </Screen>
  );
}
