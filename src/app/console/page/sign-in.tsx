import { useState } from 'preact/hooks';
import type { ApiError } from '../../../http/client.ts';
import { type Door, signInWith } from './api.ts';
import { Button } from './controls/button.tsx';
import { TextField } from './controls/field.tsx';
import { ErrorNotice, Notice } from './controls/notice.tsx';
import { toApiError } from './loading.ts';
import type { Session } from './session.ts';
import { TEXTS } from './texts.ts';

export interface SignInFormProps {
  readonly door: Door;
  /** If a session is to be renewed, the only user who may sign in. */
  readonly username?: string;
  readonly onSignedIn: (session: Session) => void;
}

type Refusal = 'refused' | 'noCookie' | 'otherUser';

/** Asks for a user name and a password, and checks them with the service. */
export function SignInForm({ door, username: only, onSignedIn }: SignInFormProps) {
  const [username, setUsername] = useState(only ?? '');
  const [password, setPassword] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | Refusal>();
  const [isTried, setTried] = useState(false);

  const submit = async (event: Event) => {
    event.preventDefault();
    setTried(true);
    if (username === '' || password === '' || isBusy) return;
    if (only !== undefined && username !== only) return setError('otherUser');
    setBusy(true);
    setError(undefined);
    try {
      const session = await signInWith(door, username, password);
      if (typeof session === 'object') return onSignedIn(session);
      setError(session);
    } catch (failure) {
      setError(toApiError(failure));
    }
    setBusy(false);
  };

  return (
    <form class="stack" onSubmit={submit} noValidate>
      {typeof error === 'string' && <Notice kind="error">{textOf(error)}</Notice>}
      {typeof error === 'object' && <ErrorNotice error={error} />}
      <TextField
        label={TEXTS.signIn.username}
        value={username}
        onChange={setUsername}
        autocomplete="username"
        isFirst
        error={isTried && username === '' ? TEXTS.signIn.missingUsername : undefined}
      />
      <TextField
        label={TEXTS.signIn.password}
        type="password"
        value={password}
        onChange={setPassword}
        autocomplete="current-password"
        error={isTried && password === '' ? TEXTS.signIn.missingPassword : undefined}
      />
      <Button kind="primary" type="submit" isBusy={isBusy}>
        {isBusy ? TEXTS.signIn.submitting : TEXTS.signIn.submit}
      </Button>
    </form>
  );
}

function textOf(refusal: Refusal): string {
  return refusal === 'otherUser' ? TEXTS.renew.otherUser : TEXTS.signIn[refusal];
}
