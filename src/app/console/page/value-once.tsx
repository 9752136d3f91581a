import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { FreshToken } from './api.ts';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { Code } from './controls/code.tsx';
import { CopyButton } from './controls/copy-button.tsx';
import { Notice } from './controls/notice.tsx';
import { Screen } from './controls/screen.tsx';
import { Time } from './controls/time.tsx';
import { DeriveScreen } from './derive.tsx';
import { useLoaded } from './loading.ts';
import { firstCallOf } from './new-token-draft.ts';
import { TEXTS } from './texts.ts';
import { MayDo } from './words.tsx';

export interface ValueOnceProps {
  readonly token: FreshToken;
  /** Leaves the screen; after that, the value is nowhere in the page. */
  readonly onDone: () => void;
  /** The text of the button that calls it. @default 'Done', or its translation */
  readonly doneText?: string;
}

/** Shows the value of a token that was just issued or rotated. */
export function ValueOnce({ token, onDone, doneText = TEXTS.value.done }: ValueOnceProps) {
  const { api, abilities, leaving } = useConsole();
  const [child, setChild] = useState<'asked' | FreshToken>();
  const [isCopied, setCopied] = useState(false);
  // Only reading the token again tells whether the service keeps values.
  const again = useLoaded(token.id, () => api.get(token.id));
  const isReadable = again.state === 'ready' && again.value.isReadable;
  const isSafe = isCopied || isReadable;
  // A layout effect, so that a value is safe as soon as it is copied. `child` is a dependency
  // because leaving a derived token ends all holds, and then this value is shown again.
  useLayoutEffect(() => (isSafe ? undefined : leaving.hold()), [isSafe, leaving, child]);
  const back = () => setChild(undefined);
  if (child === 'asked') {
    return <DeriveScreen parent={token} onDerived={setChild} onCancel={back} />;
  }
  if (child !== undefined) {
    return <ValueOnce token={child} onDone={back} doneText={TEXTS.derive.back} />;
  }
  return (
    <Screen title={token.version === 1 ? TEXTS.value.issued : TEXTS.value.rotated}>
      <div class="value-once">
        <Notice kind={isReadable ? 'info' : 'warning'}>
          <p>{isReadable ? TEXTS.value.again : TEXTS.value.once}</p>
          {token.pending && <p>{TEXTS.value.pending}</p>}
        </Notice>
        <Value value={token.value} onCopied={() => setCopied(true)} />
        <Facts token={token} />
        <FirstCall scopes={token.scopes} />
        <div class="actions">
          <Button
            kind="primary"
            onClick={() => (isSafe ? onDone() : leaving.ask({ leave: onDone }))}
          >
            {doneText}
          </Button>
          {abilities.has('/token/derive') && !token.pending && (
            <Button onClick={() => setChild('asked')}>{TEXTS.derive.title}</Button>
          )}
        </div>
      </div>
    </Screen>
  );
}

interface ValueProps {
  readonly value: string;
  readonly onCopied: () => void;
}

/**
 * Shows the value in a field, not as text of the document, so that copies of the document do not
 * hold it. A text area shows all of it, even on a phone.
 */
function Value({ value, onCopied }: ValueProps) {
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const [isGone, setGone] = useState(false);
  // A browser may keep the page in its back/forward cache.
  useEffect(() => {
    const forget = () => {
      if (field.current !== null) field.current.value = '';
      setGone(true);
    };
    addEventListener('pagehide', forget);
    return () => removeEventListener('pagehide', forget);
  }, []);
  const shown = isGone ? '' : value;
  return (
    <div class="field">
      <label for={id}>{TEXTS.value.value}</label>
      <div class="value">
        <textarea
          ref={field}
          id={id}
          class="mono"
          dir="ltr"
          rows={1}
          readOnly
          value={shown}
          autocomplete="off"
          spellcheck={false}
          onFocus={({ currentTarget }) => currentTarget.select()}
          onCopy={onCopied}
        />
        <CopyButton kind="primary" text={shown} label={TEXTS.value.copyValue} onCopied={onCopied} />
      </div>
    </div>
  );
}

function Facts({ token: { name, scopes, expire } }: Pick<ValueOnceProps, 'token'>) {
  return (
    <dl class="value-facts">
      {name !== undefined && (
        <div>
          <dt>{TEXTS.value.name}</dt>
          <dd dir="auto">{name}</dd>
        </div>
      )}
      <div>
        <dt>{TEXTS.value.rights}</dt>
        <dd>
          <MayDo scopes={scopes} />
        </dd>
      </div>
      <div>
        <dt>{TEXTS.value.expires}</dt>
        <dd>
          <Time seconds={expire} isExact />
        </dd>
      </div>
    </dl>
  );
}

function FirstCall({ scopes }: { readonly scopes: readonly string[] }) {
  const { example } = useConsole();
  const call = firstCallOf(scopes, example);
  if (call === undefined) return null;
  return (
    <section class="first-call">
      <Code title={TEXTS.value.firstCall} text={call.command} label={TEXTS.value.copyCall} />
      <p class="hint">{TEXTS.value.firstCallHint}</p>
      {call.isTemplate && <p class="hint">{TEXTS.value.fillIn}</p>}
    </section>
  );
}
