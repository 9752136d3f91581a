import { useRef, useState } from 'preact/hooks';
import type { ApiError } from '../../../http/client.ts';
import type { Api, ShownToken } from './api.ts';
import { readCode } from './approval-draft.ts';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { TextField } from './controls/field.tsx';
import { ErrorNotice } from './controls/notice.tsx';
import { BackLink, Screen } from './controls/screen.tsx';
import { type AskedRequest, Decision } from './decision.tsx';
import { toApiError } from './loading.ts';
import { TEXTS } from './texts.ts';
import { focusFirstError } from './token-form.tsx';

/** Asks for a code, and then for a decision about the request that has it. */
export function ApproveScreen() {
  const [asked, setAsked] = useState<AskedRequest>();
  if (asked === undefined) return <CodeScreen onFound={setAsked} />;
  return <Decision asked={asked} onDone={() => setAsked(undefined)} />;
}

interface CodeScreenProps {
  readonly onFound: (asked: AskedRequest) => void;
}

function CodeScreen({ onFound }: CodeScreenProps) {
  const { api } = useConsole();
  const [typed, setTyped] = useState('');
  const [isBusy, setBusy] = useState(false);
  const { form, error, setError, fail } = useCodeError();
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    const code = readCode(typed);
    // What cannot be a code costs no try.
    if (code === undefined) return fail('wrongCode');
    setBusy(true);
    setError(undefined);
    try {
      return onFound(await readRequest(api, code));
    } catch (failure) {
      const reason = toApiError(failure);
      fail(reason.code === 'not_found' ? 'unknownCode' : reason);
    }
    setBusy(false);
  };
  return (
    <Screen title={TEXTS.approve.title} above={<BackLink />}>
      <p class="intro">{TEXTS.approve.intro}</p>
      <form class="card stack enter-code" ref={form} onSubmit={submit} noValidate>
        <TextField
          label={TEXTS.approve.code}
          hint={TEXTS.approve.codeHint}
          value={typed}
          onChange={(text) => {
            setTyped(text);
            setError(undefined);
          }}
          error={typeof error === 'string' ? TEXTS.approve[error] : undefined}
          maxLength={64}
          isMono
          isFirst
        />
        {typeof error === 'object' && <ErrorNotice error={error} />}
        <div class="actions">
          <Button kind="primary" type="submit" isBusy={isBusy}>
            {isBusy ? TEXTS.approve.submitting : TEXTS.approve.submit}
          </Button>
        </div>
      </form>
    </Screen>
  );
}

function useCodeError() {
  const [error, setError] = useState<ApiError | 'wrongCode' | 'unknownCode'>();
  const form = useRef<HTMLFormElement>(null);
  const fail = (reason: typeof error) => {
    setError(reason);
    // Once the error is shown.
    setTimeout(() => focusFirstError(form.current));
  };
  return { form, error, setError, fail };
}

/** Nobody can decide about an elevation without knowing the token that asks, so all is read or nothing. */
async function readRequest(api: Api, code: string): Promise<AskedRequest> {
  const request = await api.request(code);
  const line: ShownToken[] = [];
  for (let id = request.elevates; id !== undefined; id = line.at(-1)?.parent) {
    line.push(await api.get(id));
  }
  return { code, request, line };
}
