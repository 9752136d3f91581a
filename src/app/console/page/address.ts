import type { Question } from './api.ts';

/**
 * Splits an address as people copy it, `https://api.example/orders/7?x=1`, into host and target.
 * The target stays exactly as it was typed: a URL parser would hide parts that servers may read
 * differently.
 */
export function readAddress(text: string): Omit<Question, 'method'> | undefined {
  const [, host = '', target = ''] =
    /^(?:https?:\/\/)?([^/?#\s@:]+)(?::\d+)?([/?][^#\s]*)?(?:#\S*)?$/i.exec(text.trim()) ?? [];
  const domain = host.toLowerCase();
  if (domain === '') return undefined;
  return { domain, target: target.startsWith('/') ? target : `/${target}` };
}
