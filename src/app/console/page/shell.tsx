import type { ComponentChildren } from 'preact';
import { Button } from './controls/button.tsx';
import { Icon } from './controls/icon.tsx';
import { PageTitle } from './controls/screen.tsx';
import { hrefOf, type Route } from './router.ts';
import { TEXTS } from './texts.ts';

export interface ShellProps {
  readonly title: string;
  readonly brand: string;
  readonly children: ComponentChildren;
  /** Absent before somebody has signed in. */
  readonly route?: Route;
  readonly hasReview?: boolean;
  readonly username?: string | undefined;
  readonly onSignOut?: (() => void) | undefined;
  /** What just happened. */
  readonly message?: { readonly text: string; readonly round: number };
}

/** The frame around every screen. */
export function Shell(props: ShellProps) {
  const { title, brand, children, route, hasReview, username, onSignOut, message } = props;
  return (
    <PageTitle.Provider value={brand === '' ? title : `${title} · ${brand}`}>
      <button type="button" class="button skip" onClick={skip}>
        {TEXTS.shell.skip}
      </button>
      <header class="bar">
        <div class="bar-inside">
          <p class="brand">
            <Mark brand={brand} />
            <span>
              {brand && <b dir="auto">{brand}</b>} <span dir="auto">{title}</span>
            </span>
          </p>
          {route && (
            <nav aria-label={TEXTS.shell.sections}>
              <NavLink to={{ screen: 'list' }} isHere={route.screen !== 'review'}>
                {TEXTS.shell.tokens}
              </NavLink>
              {hasReview && (
                <NavLink to={{ screen: 'review' }} isHere={route.screen === 'review'}>
                  {TEXTS.shell.review}
                </NavLink>
              )}
            </nav>
          )}
          {onSignOut && <SignedIn username={username} onSignOut={onSignOut} />}
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
      <div class="toast" role="status">
        {message && message.text !== '' && (
          <p class="message" key={message.round}>
            {message.text}
          </p>
        )}
      </div>
    </PageTitle.Provider>
  );
}

/** A mark beside the name: the first letter of the host's, or ours. */
function Mark({ brand }: { readonly brand: string }) {
  const [letter] = new Intl.Segmenter().segment(brand);
  return (
    <span class="mark" aria-hidden="true">
      {letter ? letter.segment.toUpperCase() : <Icon name="key" />}
    </span>
  );
}

/** A button calls this, not a link: an address names a screen, not a place in it. */
function skip(): void {
  document.getElementById('content')?.focus();
}

interface SignedInProps {
  readonly username: string | undefined;
  readonly onSignOut: () => void;
}

function SignedIn({ username = '', onSignOut }: SignedInProps) {
  return (
    <div class="who">
      <span class="who-name" title={TEXTS.shell.signedInAs({ name: username })} dir="auto">
        {username}
      </span>
      <Button kind="quiet" onClick={onSignOut}>
        {TEXTS.shell.signOut}
      </Button>
    </div>
  );
}

interface NavLinkProps {
  readonly to: Route;
  readonly isHere: boolean;
  readonly children: string;
}

function NavLink({ to, isHere, children }: NavLinkProps) {
  return (
    <a href={hrefOf(to)} aria-current={isHere ? 'page' : undefined}>
      {children}
    </a>
  );
}
