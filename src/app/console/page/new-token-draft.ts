import type { WirePreset } from '../../../http/wire.ts';
import { type Scope, safeParseScope } from '../../../scope/index.ts';
import {
  type AskedLimits,
  draftOf,
  type LimitName,
  type LimitsDraft,
  limitsOf,
  NO_LIMITS,
} from './limits-draft.ts';
import { barePathOf } from './picker/tree.ts';

/** The body of `POST /token`. */
export interface NewToken {
  readonly scopes: readonly string[];
  readonly name?: string;
  /** A lifetime such as `30d`. */
  readonly expiresIn?: string;
  readonly expire?: string;
  readonly limits?: AskedLimits;
}

const LIFETIMES = ['7d', '30d', '90d', '365d'] as const;

/** How long a new token lives: a lifetime as the service takes it, its default, or until a date. */
export type Expiry = UsualExpiry | `${number}s`;

/** Those that are offered; others come from presets. A token that exists can also keep its expiry. */
export type UsualExpiry = (typeof LIFETIMES)[number] | 'default' | 'date' | 'kept';

/** What a person has entered. */
export interface Draft extends LimitsDraft {
  readonly name: string;
  readonly expiry: Expiry;
  /** The value of a date field, such as `2027-01-31`; empty for no date. */
  readonly date: string;
  readonly scopes: readonly string[];
}

export const EMPTY_DRAFT: Draft = {
  ...NO_LIMITS,
  name: '',
  expiry: '30d',
  date: '',
  scopes: [],
};

/** The seconds of a lifetime; `undefined` for the default and for a date. */
export function secondsOf(expiry: Expiry): number | undefined {
  const count = Number.parseInt(expiry, 10);
  if (Number.isNaN(count)) return undefined;
  return expiry.endsWith('s') ? count : count * 86_400;
}

/**
 * The choices that a service with a longest lifetime allows, and which of them is chosen at first.
 */
export function expiriesWithin(maxSeconds = Number.POSITIVE_INFINITY): {
  readonly choices: readonly Expiry[];
  readonly first: Expiry;
} {
  const usual = LIFETIMES.filter((lifetime) => (secondsOf(lifetime) ?? 0) <= maxSeconds);
  if (usual.length === 0) return { choices: ['default', 'date'], first: 'default' };
  return { choices: [...usual, 'date'], first: usual.includes('30d') ? '30d' : '7d' };
}

/** What a preset fills in: its scopes, its lifetime and its limits. */
export function draftOfPreset({ scopes, ttl, limits }: WirePreset): Partial<Draft> {
  return {
    scopes,
    ...(ttl !== undefined && { expiry: expiryOf(ttl) }),
    ...(limits !== undefined && draftOf(limits)),
  };
}

function expiryOf(ttl: number): Expiry {
  return LIFETIMES.find((lifetime) => secondsOf(lifetime) === ttl) ?? `${ttl}s`;
}

/** The fields of the form that can show an error. */
export type FieldName = 'name' | 'expiry' | 'scopes' | LimitName;

/**
 * The body of the call. Invalid text is sent as it was entered, so that the service says what is
 * wrong with it.
 */
export function bodyOf(draft: Draft): NewToken {
  const name = draft.name.trim();
  const limits = limitsOf(draft);
  return {
    ...(name !== '' && { name }),
    ...lifetimeOf(draft),
    scopes: draft.scopes,
    ...(limits !== undefined && { limits }),
  };
}

export function lifetimeOf({
  expiry,
  date,
}: Pick<Draft, 'expiry' | 'date'>): Pick<NewToken, 'expire' | 'expiresIn'> {
  if (expiry === 'default' || expiry === 'kept') return {};
  return expiry === 'date' ? { expire: endOf(date) } : { expiresIn: expiry };
}

/** The last second of a day, in the time zone of the person. */
function endOf(date: string): string {
  const [, year, month, day] = /^(\d{4,6})-(\d\d)-(\d\d)$/.exec(date) ?? [];
  if (year === undefined) return date;
  const end = new Date(Number(year), Number(month) - 1, Number(day), 23, 59, 59);
  return end.toISOString().replace('.000Z', 'Z');
}

/** The day that is some days after another one, as the value of a date field. */
export function dayAfter(now: Date, days: number): string {
  const day = new Date(now.getFullYear(), now.getMonth(), now.getDate() + days);
  const two = (part: number) => String(part).padStart(2, '0');
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

/**
 * The field of each member of the body, for errors. Longer names come first, such as `limits.uses`.
 */
const FIELDS: readonly (readonly [member: string, field: FieldName])[] = [
  ['limits.addresses', 'addresses'],
  ['limits.uses', 'uses'],
  ['limits.rate', 'rate'],
  ['limits', 'addresses'],
  ['scopes', 'scopes'],
  ['expiresIn', 'expiry'],
  ['expire', 'expiry'],
  ['ttl', 'expiry'],
  ['name', 'name'],
];

/** The field that an error of the service is about; `undefined` if it is about none. */
export function fieldOf(error: {
  readonly code: string;
  readonly message: string;
  readonly details: { readonly member?: string };
}): FieldName | undefined {
  const { member } = error.details;
  // If the details name only `limits`, the message may name the part.
  const isPart = (name: string) =>
    member === name || member?.startsWith(`${name}.`) || member?.startsWith(`${name}[`);
  const inMessage = (name: string) =>
    member === 'limits' && name.startsWith(member) && error.message.includes(name);
  return (FIELDS.find(([name]) => inMessage(name)) ?? FIELDS.find(([name]) => isPart(name)))?.[1];
}

/** JSON in ASCII, so that no character in a name changes the direction of the text. */
export function jsonOf(body: object, indent?: number): string {
  return JSON.stringify(body, undefined, indent).replace(
    /[\x7f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Quotes a text for a POSIX shell, which then expands nothing in it. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The same call for a shell. curl asks for the password. */
export function curlOf(base: string, username: string | undefined, body: NewToken): string {
  return curl(`${base}/token`, [userOf(username)], body);
}

/**
 * The call that derives a token. The shell reads the value as input, so that it is in no history.
 */
export function deriveCurlOf(base: string, body: NewToken): string {
  const bearer = '--header "Authorization: Bearer $TOKEN"';
  return `read -rs TOKEN && ${curl(`${base}/token/derive`, [bearer], body)}`;
}

/** The call that changes a token, refused if it is no longer the one that was shown. */
export function patchCurlOf(
  base: string,
  username: string | undefined,
  { id, version }: { readonly id: string; readonly version: number },
  body: object,
): string {
  const asked = ['--request PATCH', userOf(username), `--header 'If-Match: "${version}"'`];
  return curl(`${base}/token/${id}`, asked, body);
}

function userOf(username: string | undefined): string {
  return `--user ${username === undefined ? '"$USER_NAME"' : quoted(username)}`;
}

function curl(address: string, options: readonly string[], body: object): string {
  return [
    `curl ${quoted(address)}`,
    ...options,
    `--header 'Content-Type: application/json'`,
    `--data ${quoted(jsonOf(body))}`,
  ].join(' \\\n  ');
}

/**
 * A first call with a token. The shell reads the value as input, so that it is in no history. It is one
 * command: otherwise a shell would read the next line that is pasted as the value.
 */
interface FirstCall {
  readonly command: string;
  /** Whether a part of the address has to be filled in. */
  readonly isTemplate: boolean;
}

/**
 * A call that a token allows, preferably one that works as it is; `undefined` if there is none.
 *
 * @param example the address that answers the calls of all hosts, if they are only an example
 */
export function firstCallOf(scopes: readonly string[], example?: string): FirstCall | undefined {
  const known = scopes.flatMap((text) => {
    const reading = safeParseScope(text);
    return reading.ok && !reading.scope.domain.includes('*') ? reading.scope : [];
  });
  const [best] = known.sort((a, b) => effort(a) - effort(b));
  if (best === undefined) return undefined;
  const path = barePathOf(best);
  const isTemplate = path.includes('{}');
  const address = `${example ?? `https://${best.domain}`}/${path.replaceAll('{}', '…')}`;
  const method = best.method === '*' ? 'GET' : best.method;
  const curl = ['curl', ...optionsOf(method), '--header "Authorization: Bearer $TOKEN"'].join(' ');
  return { command: `read -rs TOKEN && ${curl} \\\n  ${quoted(address)}`, isTemplate };
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
