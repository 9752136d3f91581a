import { parseScope, type Scope } from '../../../scope/index.ts';
import { isReading } from './picker/tree.ts';
import { LANGUAGE, TEXTS } from './texts.ts';

/** What scopes allow, in one line: `12 endpoints of api.acme.example, read-only`. */
export function summaryOf(scopes: readonly string[]): string {
  // A revoked token keeps none.
  if (scopes.length === 0) return TEXTS.rights.none;
  const parsed = scopes.map((scope) => parseScope(scope));
  const hosts = new Set(parsed.map(({ domain }) => domain));
  const [host = ''] = hosts;
  const endpoints = TEXTS.rights.endpoints({ count: endpointsOf(parsed) });
  const where =
    hosts.size === 1
      ? TEXTS.rights.ofHost({ endpoints, host })
      : TEXTS.rights.ofHosts({ endpoints, count: hosts.size });
  const methods = methodsOf(parsed);
  return LANGUAGE.lists.format(methods === '' ? [where] : [where, methods]);
}

/** Counts each scope once, even if it is listed twice. */
function endpointsOf(scopes: readonly Scope[]): number {
  return new Set(scopes.map(String)).size;
}

function methodsOf(scopes: readonly Scope[]): string {
  if (scopes.every((scope) => isReading({ scope }))) return TEXTS.rights.readOnly;
  return scopes.every(({ method }) => method === '*') ? TEXTS.rights.everyMethod : '';
}
