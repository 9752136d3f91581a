import type { ComponentChildren } from 'preact';
import type { ApiError } from '../../../../http/client.ts';
import { TEXTS } from '../texts.ts';
import { Button } from './button.tsx';
import { Icon } from './icon.tsx';

export interface NoticeProps {
  readonly kind: 'info' | 'warning' | 'error' | 'success';
  readonly children: ComponentChildren;
}

const ICONS = { info: 'info', warning: 'alert', error: 'alert', success: 'check' } as const;

/** Something that the person should read. Errors are read out immediately. */
export function Notice({ kind, children }: NoticeProps) {
  return (
    <div class={`notice ${kind}`} role={kind === 'error' ? 'alert' : undefined}>
      <Icon name={ICONS[kind]} />
      <div>{children}</div>
    </div>
  );
}

export interface ErrorNoticeProps {
  readonly error: ApiError;
  readonly onRetry?: () => void;
}

/** Shows the message of a failed call, with a button to try again. */
export function ErrorNotice({ error, onRetry }: ErrorNoticeProps) {
  return (
    <Notice kind="error">
      <p dir="auto">{messageOf(error)}</p>
      {onRetry && <Button onClick={onRetry}>{TEXTS.errors.retry}</Button>}
    </Notice>
  );
}

type Failure = Pick<ApiError, 'code' | 'message'> & Partial<Pick<ApiError, 'retryAfterSeconds'>>;

/** The text that the page shows for a failed call. */
export function messageOf({ code, message, retryAfterSeconds }: Failure): string {
  if (code === 'unreachable') return TEXTS.errors.unreachable;
  const texts: Readonly<Record<string, typeof TEXTS.errors.codes.internal>> = TEXTS.errors.codes;
  const sentence = sentenceOf(message);
  const told = texts[code]?.({ message: sentence }) ?? sentence;
  const wait =
    retryAfterSeconds === undefined ? [] : [TEXTS.errors.wait({ count: retryAfterSeconds })];
  return [told, ...wait].join(' ');
}

function sentenceOf(message: string): string {
  // A name such as expiresIn stays as it is.
  const sentence = message.replace(
    /^[a-z]+(?![\w.])/,
    (word) => word[0]?.toUpperCase() + word.slice(1),
  );
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}
