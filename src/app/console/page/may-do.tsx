import type { Choices } from './api.ts';
import { useConsole } from './context.ts';
import { useLoaded } from './loading.ts';
import { rightsLine } from './rights.ts';

/** What scopes allow, in one line. */
export function MayDo({ scopes }: { readonly scopes: readonly string[] }) {
  const { permissions } = useKnownWords();
  return <>{permissions && rightsLine(scopes, permissions)}</>;
}

/**
 * The words of the account's catalog. Without `permissions` they are still being read; if that fails, there are
 * none.
 */
export function useKnownWords(): Partial<Pick<Choices, 'scopes' | 'permissions'>> {
  const { choices } = useConsole();
  const loaded = useLoaded('choices', choices);
  if (loaded.state === 'ready') return loaded.value;
  return loaded.state === 'failed' ? NO_WORDS : {};
}

const NO_WORDS = { scopes: [], permissions: [] };
