import { type Scope, safeParseScope } from '../../../scope/grammar.ts';
import { quoted } from './new-token-draft.ts';
import { barePathOf } from './picker/tree.ts';

/** A first call with a token. The shell reads the value as input, so that it is in no history. */
export interface FirstCall {
  readonly command: string;
  /** Whether a part of the address has to be filled in. */
  readonly isTemplate: boolean;
}

/** A call that a token allows, preferably one that works as it is; `undefined` if there is none. */
export function firstCallOf(scopes: readonly string[]): FirstCall | undefined {
  const known = scopes.flatMap((text) => {
    const reading = safeParseScope(text);
    return reading.ok && !reading.scope.domain.includes('*') ? reading.scope : [];
  });
  const [best] = known.sort((a, b) => effort(a) - effort(b));
  if (best === undefined) return undefined;
  const path = barePathOf(best);
  const isTemplate = path.includes('{}');
  const address = `https://${best.domain}/${path.replaceAll('{}', '…')}`;
  const method = best.method === '*' ? 'GET' : best.method;
  const curl = ['curl', ...optionsOf(method), '--header "Authorization: Bearer $TOKEN"'].join(' ');
  return { command: `read -rs TOKEN\n${curl} \\\n  ${quoted(address)}`, isTemplate };
}

function optionsOf(method: string): string[] {
  if (method === 'GET') return [];
  return method === 'HEAD' ? ['--head'] : [`--request ${method}`];
}

/** Ranks calls: the lowest is the safest and the easiest to try. */
function effort({ method, path }: Scope): number {
  const isReading = method === 'GET' || method === '*';
  return (isReading ? 0 : 100) + 10 * (path.split('{}').length - 1) + path.split('/').length;
}
