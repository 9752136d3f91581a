import { type ComponentChildren, createContext } from 'preact';
import { useContext, useEffect, useRef } from 'preact/hooks';
import type { Loaded } from '../loading.ts';
import { hrefOf } from '../router.ts';
import { TEXTS } from '../texts.ts';
import { ErrorNotice } from './notice.tsx';

export interface ScreenProps {
  readonly title: string;
  /** After the title, such as a state. */
  readonly badge?: ComponentChildren;
  /** At the other end of the line of the title. */
  readonly actions?: ComponentChildren;
  /** Above the title, such as a link back. */
  readonly above?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** The part of the document title that all screens share. */
export const PageTitle = createContext('');

/** A screen with its heading. A screen that appears takes the focus, so that it is read out. */
export function Screen({ title, badge, actions, above, children }: ScreenProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  const pageTitle = useContext(PageTitle);
  useEffect(() => {
    const first = document.querySelector<HTMLElement>('main [autofocus]');
    if (first !== null) return first.focus();
    // It stands at the top of the screen: nobody has to look for it.
    heading.current?.setAttribute('data-arrived', '');
    heading.current?.focus();
  }, []);
  useEffect(() => {
    document.title = [title, pageTitle].join(' · ');
  }, [title, pageTitle]);
  return (
    <>
      {above}
      <div class="screen-head">
        <div class="title">
          <h1
            ref={heading}
            tabIndex={-1}
            dir="auto"
            onBlur={({ currentTarget }) => currentTarget.removeAttribute('data-arrived')}
          >
            {title}
          </h1>
          {badge}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </div>
      {children}
    </>
  );
}

/** A link from the screen of a token to the list of tokens. */
export function BackLink() {
  return (
    <a class="back" href={hrefOf({ screen: 'list' })}>
      {TEXTS.actions.back}
    </a>
  );
}

export interface LoadedPartProps<Value> {
  readonly loaded: Loaded<Value>;
  readonly children: (value: Value) => ComponentChildren;
}

/** Shows a value that was read, a note while it is being read, or why it could not be read. */
export function LoadedPart<Value>({ loaded, children }: LoadedPartProps<Value>) {
  if (loaded.state === 'ready') return <>{children(loaded.value)}</>;
  if (loaded.state === 'failed')
    return <ErrorNotice error={loaded.error} onRetry={loaded.reload} />;
  return (
    <p class="loading" role="status">
      {TEXTS.shell.loading}
    </p>
  );
}
