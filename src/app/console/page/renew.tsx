import { useCallback, useRef, useState } from 'preact/hooks';
import { checkSession, type Door } from './api.ts';
import { Button } from './controls/button.tsx';
import { Dialog } from './controls/dialog.tsx';
import { ErrorNotice, Notice } from './controls/notice.tsx';
import { type Loading, toApiError } from './loading.ts';
import type { Session } from './session.ts';
import { SignInForm } from './sign-in.tsx';
import { TEXTS } from './texts.ts';

export interface Renewal {
  /** Whether somebody has to sign in again. */
  readonly isAsked: boolean;
  /** Asks for a session; all who ask at the same time get the same one. */
  readonly renew: () => Promise<Session>;
  readonly accept: (session: Session) => void;
  readonly refuse: (reason: Error) => void;
}

interface Waiting {
  readonly session: Promise<Session>;
  readonly accept: (session: Session) => void;
  readonly refuse: (reason: Error) => void;
}

/**
 * Lets calls wait while somebody signs in again, so that nothing that was entered is lost.
 *
 * @param renewQuietly tries first without the person; resolves to `undefined` if that does not work
 */
export function useRenewal(renewQuietly: () => Promise<Session | undefined>): Renewal {
  const waiting = useRef<Waiting | undefined>(undefined);
  const [isAsked, setAsked] = useState(false);
  const settle = useCallback((use: (waiting: Waiting) => void) => {
    if (waiting.current !== undefined) use(waiting.current);
    waiting.current = undefined;
    setAsked(false);
  }, []);
  const renew = useCallback(() => {
    if (waiting.current === undefined) {
      const { promise, resolve, reject } = Promise.withResolvers<Session>();
      waiting.current = { session: promise, accept: resolve, refuse: reject };
      renewQuietly().then(
        (session) =>
          session === undefined
            ? setAsked(waiting.current !== undefined)
            : settle(({ accept }) => accept(session)),
        (error) => settle(({ refuse }) => refuse(error)),
      );
    }
    return waiting.current.session;
  }, [renewQuietly, settle]);
  return {
    isAsked,
    renew,
    accept: (session) => settle(({ accept }) => accept(session)),
    refuse: (reason) => settle(({ refuse }) => refuse(reason)),
  };
}

export interface RenewDialogProps {
  readonly door: Door;
  readonly session: Session;
  readonly onRenewed: (session: Session) => void;
  readonly onLeave: () => void;
}

/** Asks the same person to sign in again, over the screen that was interrupted. */
export function RenewDialog({ door, session, onRenewed, onLeave }: RenewDialogProps) {
  return (
    <Dialog title={TEXTS.renew.title} onCancel={onLeave}>
      {session.kind !== 'host' ? (
        <>
          <p>{TEXTS.renew.intro}</p>
          <SignInForm door={door} username={session.username} onSignedIn={onRenewed} />
        </>
      ) : (
        <HostRenewal door={door} session={session} onRenewed={onRenewed} />
      )}
      <Button kind="quiet" onClick={onLeave}>
        {TEXTS.renew.leave}
      </Button>
    </Dialog>
  );
}

function HostRenewal({ door, session, onRenewed }: Omit<RenewDialogProps, 'onLeave'>) {
  const [check, setCheck] = useState<Loading<boolean>>();
  const goOn = async () => {
    setCheck({ state: 'loading' });
    try {
      const renewed = await checkSession(door.base, session);
      if (renewed !== undefined) return onRenewed(renewed);
      setCheck({ state: 'ready', value: false });
    } catch (error) {
      setCheck({ state: 'failed', error: toApiError(error) });
    }
  };
  return (
    <div class="stack">
      <p>{TEXTS.renew.hostIntro}</p>
      {check?.state === 'ready' && <Notice kind="error">{TEXTS.renew.stillRefused}</Notice>}
      {check?.state === 'failed' && <ErrorNotice error={check.error} />}
      <Button kind="primary" onClick={goOn} isBusy={check?.state === 'loading'}>
        {TEXTS.renew.goOn}
      </Button>
    </div>
  );
}
