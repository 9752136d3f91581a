import { isTokenError } from '../../errors.ts';
import type { DeriveInput } from '../../inputs/types.ts';
import type { TokenService } from '../../service.ts';
import { renamed } from '../../text/wording.ts';
import { refusedBearer } from '../bearer.ts';
import { HttpError } from '../errors.ts';
import { type AskedScopes, askedScopes, scopesOnTargets } from './asked-scopes.ts';
import type { Form } from './form.ts';
import { ACCESS_TOKEN, type Grant, tokenAnswer } from './grant.ts';

/** Seconds that an exchanged token lives, unless `ttl` says otherwise. @bound */
export const EXCHANGED_SECONDS = 3600;

/**
 * Exchanges a token for a narrower one (RFC 8693): derives a token from the value of `subject_token`, so
 * all that holds for `derive` holds here.
 */
export function exchange(tokens: TokenService): Grant {
  return async (form, address) => {
    const subject = valueIn(form, 'subject_token');
    const input: Omit<DeriveInput, 'scopes'> = {
      actorToken: actorIn(form),
      purpose: form.get('purpose'),
      ttlSeconds: secondsIn(form) ?? Math.min(EXCHANGED_SECONDS, tokens.lifetime.maxSeconds),
    };
    if ((form.get('requested_token_type') ?? ACCESS_TOKEN) !== ACCESS_TOKEN) {
      throw otherType('requested_token_type');
    }
    const asked = askedScopes(form);
    try {
      const scopes = await scopesFor(tokens, subject, asked);
      return tokenAnswer(await tokens.derive(subject, { ...input, scopes }, { address }));
    } catch (error) {
      throw inWordsOfForms(error);
    }
  };
}

/** Nobody makes this process intersect long lists with a value that is certainly not one. */
async function scopesFor(
  tokens: TokenService,
  subject: string,
  asked: AskedScopes,
): Promise<readonly string[]> {
  const isForged = tokens.faultOf(subject) !== undefined;
  return scopesOnTargets(isForged && asked.hosts.length > 0 ? { ...asked, scopes: [] } : asked);
}

function actorIn(form: Form): string | undefined {
  if (form.has('actor_token')) return valueIn(form, 'actor_token');
  if (!form.has('actor_token_type')) return undefined;
  throw new HttpError('invalid_request', 'actor_token_type cannot be given without actor_token');
}

/** A token of a form. Its type has to be there, and there is one type of tokens. */
export function valueIn(form: Form, name: 'subject_token' | 'actor_token'): string {
  const value = form.require(name);
  if (form.require(`${name}_type`) === ACCESS_TOKEN) return value;
  throw otherType(`${name}_type`);
}

function otherType(name: string): HttpError {
  return new HttpError('invalid_request', `${name} must be ${ACCESS_TOKEN}`);
}

/** The lifetime that a form asks for. @throws {HttpError} `invalid_ttl` */
export function secondsIn(form: Form): number | undefined {
  const text = form.get('ttl');
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new HttpError('invalid_ttl', 'ttl must be a whole number of seconds, such as 900');
}

/** The names of parameters that have other names in the library. */
const NAMES = { scopes: 'scope', ttlSeconds: 'ttl' };

/** A failure of the service, with the names that forms have. The caller does not learn why a value is refused. */
export function inWordsOfForms(error: unknown): unknown {
  if (!isTokenError(error)) return error;
  if (error.code !== 'invalid_token') return renamed(error, NAMES);
  if (error.details?.['member'] === 'actorToken') return notLive('actor_token');
  return refusedBearer(error, () => notLive('subject_token'));
}

/** The caller does not learn why. */
function notLive(name: string): HttpError {
  return new HttpError('invalid_token', `${name} is not, or no longer, valid`);
}
