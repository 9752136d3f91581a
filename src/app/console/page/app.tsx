import { useCallback, useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ApiError } from '../../../http/client.ts';
import { type Abilities, Api, checkSession, readAbilities } from './api.ts';
import { type Console, ConsoleContext } from './context.ts';
import { Button } from './controls/button.tsx';
import { Dialog } from './controls/dialog.tsx';
import { Notice } from './controls/notice.tsx';
import { LoadedPart, type LoadedPartProps, PageTitle, Screen } from './controls/screen.tsx';
import { useLoaded } from './loading.ts';
import { NewTokenScreen } from './new-token.tsx';
import { RenewDialog, useRenewal } from './renew.tsx';
import { ReviewScreen } from './review.tsx';
import { goTo, keepFocus, type Leaving, type Route, useRoute, type WayOut } from './router.ts';
import { HOST_SESSION, type Session } from './session.ts';
import { Shell } from './shell.tsx';
import { SignInForm } from './sign-in.tsx';
import { TEXTS } from './texts.ts';
import { TokenScreen } from './token.tsx';
import { TokenList } from './token-list.tsx';

export interface AppProps {
  /** The address of the token service. */
  readonly base: string;
  readonly title: string;
  readonly brand: string;
}

/** The whole page: finds out how to sign in, signs in, and shows the screen of the address. */
export function App({ base, title, brand }: AppProps) {
  const abilities = useLoaded(base, () => readAbilities(base));
  const [session, setSession] = useState<Session | undefined>();
  useEffect(keepFocus, []);
  const signOut = () => {
    setSession(undefined);
    goTo({ screen: 'list' });
  };
  if (abilities.state === 'ready' && session !== undefined) {
    const signedIn = { base, title, brand, session, signOut, abilities: abilities.value };
    return <SignedIn {...signedIn} />;
  }
  return (
    <Shell title={title} brand={brand}>
      <Start loaded={abilities}>
        {({ takesPassword, takesSession }) =>
          takesPassword && !takesSession ? (
            <SignInScreen base={base} onSignedIn={setSession} />
          ) : (
            <HostSignIn base={base} onSignedIn={setSession} takesPassword={takesPassword} />
          )
        }
      </Start>
    </Shell>
  );
}

interface SignInScreenProps {
  readonly base: string;
  readonly onSignedIn: (session: Session) => void;
}

function SignInScreen(props: SignInScreenProps) {
  return (
    <div class="narrow card">
      <Screen title={TEXTS.signIn.title}>
        <p class="intro">{TEXTS.signIn.intro}</p>
        <SignInForm {...props} />
      </Screen>
    </div>
  );
}

/** Signs in with the session of the host. If there is none, asks for a password where possible. */
function HostSignIn({
  base,
  onSignedIn,
  takesPassword,
}: SignInScreenProps & { readonly takesPassword: boolean }) {
  const check = useLoaded(base, () => checkSession(base, HOST_SESSION));
  const session = check.state === 'ready' ? check.value : undefined;
  useEffect(() => {
    if (session !== undefined) onSignedIn(session);
  }, [session, onSignedIn]);
  return (
    <Start loaded={check}>
      {(is) => {
        if (is !== undefined) return null;
        if (takesPassword) return <SignInScreen base={base} onSignedIn={onSignedIn} />;
        return (
          <div class="narrow card">
            <Screen title={TEXTS.signIn.title}>
              <Notice kind="info">{TEXTS.signIn.hostRefused}</Notice>
              <Button kind="primary" onClick={check.reload}>
                {TEXTS.errors.retry}
              </Button>
            </Screen>
          </div>
        );
      }}
    </Start>
  );
}

/** Shows a value that is read before the first screen. Until then, the title is the heading. */
function Start<Value>(props: LoadedPartProps<Value>) {
  const title = useContext(PageTitle);
  return (
    <>
      {props.loaded.state !== 'ready' && <h1 class="visually-hidden">{title}</h1>}
      <LoadedPart {...props} />
    </>
  );
}

interface SignedInProps extends AppProps {
  readonly session: Session;
  readonly abilities: Abilities;
  readonly signOut: () => void;
}

/** Everything of one account. It disappears as a whole when that account signs out. */
function SignedIn({ base, title, brand, session, abilities, signOut }: SignedInProps) {
  const { leaving, question } = useLeaving();
  const route = useRoute(leaving);
  const renewal = useRenewal();
  const { message, announce } = useMessage();
  const console = useMemo((): Console => {
    const api = new Api({ base, session, renew: renewal.renew });
    const username = session.kind === 'basic' ? session.username : undefined;
    const choices = onceDone(() => api.choices());
    return { api, abilities, base, username, announce, leaving, choices };
  }, [base, session, abilities, renewal.renew, announce, leaving]);
  const end = () => {
    renewal.refuse(new ApiError('unauthenticated', TEXTS.errors.signedOut));
    signOut();
  };
  const leave = () => leaving.ask({ leave: end });
  return (
    <ConsoleContext.Provider value={console}>
      <Shell
        title={title}
        brand={brand}
        route={route}
        hasReview={abilities.has('/review')}
        username={session.kind === 'basic' ? session.username : undefined}
        onSignOut={session.kind === 'basic' ? leave : undefined}
        message={message}
      >
        <CurrentScreen route={route} />
      </Shell>
      {renewal.isAsked && (
        <RenewDialog base={base} session={session} onRenewed={renewal.accept} onLeave={leave} />
      )}
      {question}
    </ConsoleContext.Provider>
  );
}

function CurrentScreen({ route }: { readonly route: Route }) {
  switch (route.screen) {
    case 'new':
      return <NewTokenScreen />;
    case 'review':
      return <ReviewScreen />;
    case 'token':
      return <TokenScreen key={route.id} id={route.id} />;
    default:
      return <TokenList />;
  }
}

/** How long a message is shown, in milliseconds. */
const MESSAGE_MS = 6000;

/** A message that is shown for a moment. The same message twice is shown, and read out, twice. */
function useMessage() {
  const [message, setMessage] = useState({ text: '', round: 0 });
  const announce = useCallback(
    (text: string) => setMessage(({ round }) => ({ text, round: round + 1 })),
    [],
  );
  useEffect(() => {
    if (message.text === '') return undefined;
    const timer = setTimeout(() => announce(''), MESSAGE_MS);
    return () => clearTimeout(timer);
  }, [message, announce]);
  return { message, announce };
}

/** Calls a function once and keeps its result. Calls it again only if it failed. */
function onceDone<Value>(call: () => Promise<Value>): () => Promise<Value> {
  let done: Promise<Value> | undefined;
  return () => {
    done ??= call().catch((error: unknown) => {
      done = undefined;
      throw error;
    });
    return done;
  };
}

/** Asks before a person leaves a screen. Also returns the question, to show it over everything. */
function useLeaving() {
  /**
   * The functions that end the holds. There can be several: a value can be shown over another one.
   */
  const holds = useRef(new Set<() => void>());
  const [way, setWay] = useState<WayOut>();
  const leaving = useMemo((): Leaving => {
    const ask = (asked: WayOut) => (holds.current.size > 0 ? setWay(asked) : asked.leave());
    return { ask, hold: () => holdIn(holds.current), dismiss: () => setWay(undefined) };
  }, []);
  const leave = () => {
    for (const end of holds.current) end();
    setWay(undefined);
    way?.leave();
  };
  const stay = () => {
    setWay(undefined);
    way?.stay?.();
  };
  return { leaving, question: way && <LeaveDialog onLeave={leave} onStay={stay} /> };
}

function holdIn(holds: Set<() => void>): () => void {
  // The browser asks in words of its own before it closes or reloads the page.
  const warn = (event: Event) => event.preventDefault();
  addEventListener('beforeunload', warn);
  const end = () => {
    removeEventListener('beforeunload', warn);
    holds.delete(end);
  };
  holds.add(end);
  return end;
}

interface LeaveDialogProps {
  readonly onLeave: () => void;
  readonly onStay: () => void;
}

function LeaveDialog({ onLeave, onStay }: LeaveDialogProps) {
  return (
    <Dialog title={TEXTS.value.leaveTitle} onCancel={onStay}>
      <p>{TEXTS.value.notCopied}</p>
      <div class="actions">
        <Button kind="primary" onClick={onStay}>
          {TEXTS.value.stay}
        </Button>
        <Button kind="danger" onClick={onLeave}>
          {TEXTS.value.leave}
        </Button>
      </div>
    </Dialog>
  );
}
