import { once } from '../../inputs/once.ts';
import { fields, readLongInput, strict } from '../../inputs/schemas.ts';
import { readHost } from '../../scope/grammar.ts';
import { ScopeSet } from '../../scope/index.ts';
import { inTurns } from '../../time/deadline.ts';
import { HttpError } from '../errors.ts';
import { OAuthRefusal } from './failure.ts';
import type { Form } from './form.ts';

/** Different hosts of the `resource` and `audience` parameters in one form. Each multiplies its scopes. @bound */
export const MAX_TARGETS = 16;

/** What a form asks for. */
export interface AskedScopes {
  /** As they were sent. Empty if all that is held on the hosts is asked for. */
  readonly scopes: readonly string[];
  /** Of the targets (RFC 8693 section 2.1, RFC 8707). Empty if the scopes alone count. */
  readonly hosts: readonly string[];
}

/**
 * Reads `scope`, `resource` and `audience`.
 *
 * @throws {HttpError} `scopes_required` without any of them; `invalid_target`
 */
export function askedScopes(form: Form): AskedScopes {
  const sent = form.get('scope');
  const scopes = sent?.split(' ').filter((text) => text !== '') ?? [];
  const hosts = [
    ...new Set([...form.all('resource').map(hostOfResource), ...form.all('audience').map(hostOf)]),
  ];
  if (hosts.length > MAX_TARGETS) {
    throw new OAuthRefusal('invalid_target', `at most ${MAX_TARGETS} hosts can be named`);
  }
  const isAll = sent === undefined && hosts.length > 0;
  if (scopes.length > 0 || isAll) return { scopes, hosts };
  throw new HttpError(
    'scopes_required',
    'scope must hold at least one scope, with spaces between them; without it, give resource or audience for all that is held there',
  );
}

/**
 * The part of the asked scopes on the asked hosts, whatever port and path a resource has.
 *
 * @throws {TokenError} `invalid_scope`, `too_many_scopes`
 * @throws {HttpError} `scope_unmatched` if there is none
 */
export async function scopesOnTargets({ scopes, hosts }: AskedScopes): Promise<readonly string[]> {
  if (hosts.length === 0) return scopes;
  const targets = hosts.map((host) => `*:${host}/*`);
  if (scopes.length === 0) return targets;
  const asked = await readLongInput(scopeList(), { scopes });
  const onTargets = await inTurns(ScopeSet.from(targets).intersecting(asked.scopes));
  if (onTargets.size > 0) return onTargets.toArray();
  throw new HttpError(
    'scope_unmatched',
    'no scope is on a host of resource or audience; ask for scopes there, or leave scope out',
  );
}

const scopeList = once(() => strict({ scopes: fields.scopes() }));

/** An absolute URL of HTTP in the characters of RFC 3986, without user, password and fragment. */
const RESOURCE = /^https?:\/\/[^\s\\/?#@]+(?:[/?][^\s\\#]*)?$/i;

function hostOfResource(text: string): string {
  const url = RESOURCE.test(text) && URL.canParse(text) ? new URL(text) : undefined;
  const host = url && readHost(url.hostname);
  if (host !== undefined) return host;
  throw new OAuthRefusal(
    'invalid_target',
    'resource must be an absolute URL with http or https and the name of a host, without user and fragment, such as https://shop.example/orders',
  );
}

function hostOf(text: string): string {
  const host = readHost(text);
  if (host !== undefined) return host;
  throw new OAuthRefusal(
    'invalid_target',
    'audience must be the name of a host, such as shop.example',
  );
}
