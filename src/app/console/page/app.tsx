import { useCallback, useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ApiError } from '../../../http/client.ts';
import {
  type Abilities,
  Api,
  type Door,
  endSession,
  findSession,
  readAbilities,
  renewSession,
  takesRequests,
} from './api.ts';
import { ApproveScreen } from './approve.tsx';
import { type Console, ConsoleContext } from './context.ts';
import { Button } from './controls/button.tsx';
import { Dialog } from './controls/dialog.tsx';
import { messageOf, Notice } from './controls/notice.tsx';
import { LoadedPart, type LoadedPartProps, PageTitle, Screen } from './controls/screen.tsx';
import { toApiError, useLoaded } from './loading.ts';
import { NewTokenScreen } from './new-token.tsx';
import { RenewDialog, useRenewal } from './renew.tsx';
import { ReviewScreen } from './review.tsx';
import { goTo, keepFocus, type Leaving, type Route, useRoute, type WayOut } from './router.ts';
import { type Session, usernameOf } from './session.ts';
import { Shell } from './shell.tsx';
import { SignInForm } from './sign-in.tsx';
import { TEXTS } from './texts.ts';
import { TokenScreen } from './token.tsx';
import { TokenList } from './token-list.tsx';

export interface AppProps {
  /** The address of the token service. */
  readonly base: string;
  /** The address below which the service answers the calls of its catalog, as an example. */
  readonly example: string | undefined;
  readonly title: string;
  readonly brand: string;
}

/** The whole page: finds out how to sign in, signs in, and shows the screen of the address. */
export function App({ base, example, title, brand }: AppProps) {
  const abilities = useLoaded(base, () => readAbilities(base));
  const [session, setSession] = useState<Session | undefined>();
  useEffect(keepFocus, []);
  const signOut = () => {
    setSession(undefined);
    goTo({ screen: 'list' });
  };
  if (abilities.state === 'ready' && session !== undefined) {
    const signedIn = { base, example, title, brand, session, signOut, abilities: abilities.value };
    return <SignedIn {...signedIn} />;
  }
  return (
    <Shell title={title} brand={brand}>
      <Start loaded={abilities}>
        {(ready) => {
          const door = { base, abilities: ready };
          const { takesPassword, takesSession } = ready;
          return takesPassword && !takesSession ? (
            <SignInScreen door={door} onSignedIn={setSession} />
          ) : (
            <SessionSignIn door={door} onSignedIn={setSession} takesPassword={takesPassword} />
          );
        }}
      </Start>
    </Shell>
  );
}

interface SignInScreenProps {
  readonly door: Door;
  readonly onSignedIn: (session: Session) => void;
}

function SignInScreen(props: SignInScreenProps) {
  return (
    <div class="narrow card">
      <Screen title={TEXTS.signIn.title}>
        <p class="intro">
          {props.door.abilities.keepsSession ? TEXTS.signIn.introKept : TEXTS.signIn.intro}
        </p>
        <SignInForm {...props} />
      </Screen>
    </div>
  );
}

/** Signs in with the session of the browser. If there is none, asks for a password where possible. */
function SessionSignIn({
  door,
  onSignedIn,
  takesPassword,
}: SignInScreenProps & { readonly takesPassword: boolean }) {
  const check = useLoaded(door.base, () => findSession(door));
  const session = check.state === 'ready' ? check.value : undefined;
  useEffect(() => {
    if (session !== undefined) onSignedIn(session);
  }, [session, onSignedIn]);
  return (
    <Start loaded={check}>
      {(is) => {
        if (is !== undefined) return null;
        if (takesPassword) return <SignInScreen door={door} onSignedIn={onSignedIn} />;
        return (
          <div class="narrow card">
            <Screen title={TEXTS.signIn.title}>
              <div class="stack">
                <Notice kind="info">{TEXTS.signIn.hostRefused}</Notice>
                <Button kind="primary" onClick={check.reload}>
                  {TEXTS.errors.retry}
                </Button>
              </div>
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
function SignedIn({ base, example, title, brand, session, abilities, signOut }: SignedInProps) {
  const door = { base, abilities };
  const { leaving, question } = useLeaving();
  const route = useRoute(leaving);
  const renewQuietly = useCallback(() => renewSession(base, session), [base, session]);
  const renewal = useRenewal(renewQuietly);
  const { message, announce } = useMessage();
  const username = usernameOf(session);
  const console = useMemo((): Console => {
    const api = new Api({ base, session, renew: renewal.renew });
    const choices = onceDone(() => api.choices());
    return { api, abilities, base, example, username, announce, leaving, choices };
  }, [base, example, session, username, abilities, renewal.renew, announce, leaving]);
  const end = () => {
    renewal.refuse(new ApiError('unauthenticated', TEXTS.errors.signedOut));
    signOut();
  };
  const tellOthers = useSignOutElsewhere(base, session, end);
  const endEverywhere = async () => {
    try {
      await endSession(base, session);
    } catch (error) {
      return announce(messageOf(toApiError(error)));
    }
    tellOthers();
    end();
  };
  const leave = () => leaving.ask({ leave: () => void endEverywhere() });
  return (
    <ConsoleContext.Provider value={console}>
      <Shell
        title={title}
        brand={brand}
        route={route}
        hasReview={abilities.has('/review')}
        username={username}
        onSignOut={session.kind === 'host' ? undefined : leave}
        message={message}
      >
        <CurrentScreen route={route} abilities={abilities} />
      </Shell>
      {renewal.isAsked && (
        <RenewDialog door={door} session={session} onRenewed={renewal.accept} onLeave={leave} />
      )}
      {question}
    </ConsoleContext.Provider>
  );
}

/**
 * Signs this tab out when another tab of the same service does. Returns a function that tells the others.
 * Those with a password of their own keep it.
 */
function useSignOutElsewhere(base: string, session: Session, signOut: () => void): () => void {
  const latest = useRef(signOut);
  latest.current = signOut;
  const isShared = session.kind === 'own';
  const channel = useMemo(
    () => (isShared ? new BroadcastChannel(`tokenwright ${base}`) : undefined),
    [base, isShared],
  );
  useEffect(() => {
    channel?.addEventListener('message', () => latest.current());
    return () => channel?.close();
  }, [channel]);
  return () => channel?.postMessage('signed out');
}

interface CurrentScreenProps extends Pick<Console, 'abilities'> {
  readonly route: Route;
}

function CurrentScreen({ route, abilities }: CurrentScreenProps) {
  if (route.screen === 'approve' && takesRequests(abilities)) return <ApproveScreen />;
  switch (route.screen) {
    case 'new':
      return <NewTokenScreen />;
    case 'review':
      return <ReviewScreen />;
    case 'token':
      return <TokenScreen key={route.id} id={route.id} />;
    default:
      return <TokenList search={route.screen === 'list' ? (route.search ?? '') : ''} />;
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
