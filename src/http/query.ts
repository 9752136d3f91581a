import * as z from 'zod/mini';
import { MAX_REVIEWED_DAYS, MAX_WIRE_PAGE_TOKENS } from '../bounds.ts';
import { isTokenError } from '../errors.ts';
import { meantName } from '../inputs/names.ts';
import { once } from '../inputs/once.ts';
import { described, fields, readInput } from '../inputs/schemas.ts';
import type { ListInput } from '../inputs/types.ts';
import { misspelledName } from '../scope/nearest.ts';
import { shownName } from '../text/wording.ts';
import { HttpError } from './errors.ts';
import { ID_PATTERN } from './wire.ts';

/** The query of a list, with the names of the service. */
export type Filter = Omit<ListInput, 'account' | 'maxBytes' | 'scope'> & {
  readonly scope?: readonly string[] | undefined;
};

/** The queries of the calls that take parameters, each made on its first use. The service parses `scope`. */
export const QUERIES = {
  list: once(() =>
    z.object({
      scope: parameter(
        z.array(z.string()),
        'Only tokens that have to do with each of these scopes; empty for all. `scope[]` and `scope[0]` are other names of it.',
      ),
      match: parameter(
        fields.match(),
        '`overlaps`: can touch something of it; `covers`: may do all of it; `exact`: holds it.',
      ),
      state: z.optional(
        described(
          fields.state(),
          'Only tokens in this state; `live` for those that are active or suspended, `all` for those in any, and without it the active ones. A revoked token is listed until it is purged.',
        ).check(z.meta({ default: 'active' })),
      ),
      name: parameter(
        z.string(),
        'Only tokens whose name contains this, in upper or lower case; empty for all.',
      ),
      parent: parentFilter(),
      domain: parameter(
        fields.domain(),
        'Only tokens with a scope on this host, such as `shop.example`, also one with a wildcard.',
      ),
      unused: parameter(
        fields.unused(),
        '`never`: only tokens of which no use was recorded. Needs a service that records uses.',
      ),
      createdBy: parameter(
        fields.createdBy(),
        'Only tokens that this person made: exactly this text, as the service names people.',
      ),
      sort: z.optional(
        described(
          fields.sort(),
          '`created`: newest first. `expire`: what expires soonest first. `name`: by name, and those without one last. `lastUsed`: most recently used first, and never used last; needs a service that records uses. Those that come to the same are ordered by `id`. `name` and `lastUsed`, and `expire` with `parent`, take at most 10 000 tokens: beyond that, `invalid_request`.',
        ).check(z.meta({ default: 'created' })),
      ),
      limit: parameter(
        numberText('limit', MAX_WIRE_PAGE_TOKENS),
        'The most tokens on a page; 10 000 without `limit` and `cursor`. A page also ends at 1 MiB of scopes, metadata and limits.',
      ),
      cursor: parameter(fields.cursor(), 'The `cursor` of the page before.'),
    }),
  ),
  scopes: once(() =>
    z.object({
      details: parameter(
        flag('details'),
        'Also the words for each scope, the permissions and the presets.',
      ),
    }),
  ),
  get: once(() =>
    z.object({
      state: parameter(
        fields.state(),
        'Only if the token is in this state; without it, in any but `revoked`.',
      ),
    }),
  ),
  change: once(() =>
    z.object({
      dryRun: parameter(flag('dryRun'), 'Shows the result, and changes nothing.'),
    }),
  ),
  revoke: once(() =>
    z.object({
      descendants: parameter(
        flag('descendants'),
        'Also revokes all tokens that were derived from it, at any depth.',
      ),
    }),
  ),
  advice: once(() =>
    z.object({
      unusedForDays: days(
        'unusedForDays',
        'How long a scope was not used that can go; 30 without it.',
      ),
    }),
  ),
  review: once(() =>
    z.object({
      unusedForDays: days(
        'unusedForDays',
        'How long a token, or most of its scopes, was not used; 90 without it.',
      ),
      expiringWithinDays: days(
        'expiringWithinDays',
        'How soon a token in use expires; 14 without it.',
      ),
      secretOlderThanDays: days('secretOlderThanDays', 'How old a value is; 180 without it.'),
      cursor: parameter(
        fields.cursor(),
        'The `cursor` of the page before, for the same other parameters.',
      ),
    }),
  ),
};

function parameter<Schema extends z.ZodMiniType>(schema: Schema, description: string) {
  return z.optional(described(schema, description));
}

function parentFilter() {
  const description = 'Only tokens that were derived from the one with this id, directly.';
  return z.optional(
    fields.parent().check(z.meta({ type: 'string', pattern: ID_PATTERN, description })),
  );
}

function days(name: string, description: string) {
  return parameter(numberText(name, MAX_REVIEWED_DAYS), description);
}

function flag(name: string) {
  const text = z.enum(['true', 'false'], { error: `${name} must be true or false` });
  return z.pipe(
    text,
    z.transform((given) => given === 'true'),
  );
}

/** A whole number as a text. */
function numberText(name: string, max: number) {
  const error = `${name} must be a whole number from 1 to ${max}`;
  const isNumber = (text: string) => /^[1-9]\d{0,3}$/.test(text) && Number(text) <= max;
  return z.pipe(z.string().check(z.refine(isNumber, { error })), z.transform(Number));
}

/** An empty `scope` or `name` filters nothing. */
export function withoutEmpty({ scope, name, ...filter }: Filter): Filter {
  const scopes = scope?.filter((text) => text !== '') ?? [];
  return { ...filter, ...(scopes.length > 0 && { scope: scopes }), ...(name && { name }) };
}

/**
 * Reads a query and uses it. An error about one of its parameters says so, even if `use` throws it.
 *
 * @throws {HttpError} `invalid_request`
 */
export async function withQuery<Shape extends z.core.$ZodShape, Result>(
  schema: z.ZodMiniObject<Shape>,
  query: URLSearchParams,
  use: (read: z.output<z.ZodMiniObject<Shape>>) => Promise<Result>,
): Promise<Result> {
  try {
    return await use(readQuery(schema, query));
  } catch (error) {
    throw toQueryError(error, schema);
  }
}

/** Says in the message of an error that it is about a parameter of the query. */
function toQueryError(error: unknown, { shape }: z.ZodMiniObject): unknown {
  const member = isTokenError(error) ? error.details?.['member'] : undefined;
  if (!isTokenError(error) || !Object.hasOwn(shape, String(member))) return error;
  const { code, message, details } = error;
  return new HttpError(code, `the query parameter ${message}`, { details });
}

/**
 * Parses a query. Unknown parameters, which clients and proxies add, are ignored, unless one looks like a
 * misspelled known one, or asks for another list or order than the client would get.
 */
function readQuery<Shape extends z.core.$ZodShape>(
  schema: z.ZodMiniObject<Shape>,
  query: URLSearchParams,
): z.output<z.ZodMiniObject<Shape>> {
  const known = Object.keys(schema.shape);
  const lists = known.includes(LISTED) ? listedIn(query) : {};
  const repeated = known.find((name) => name !== LISTED && query.getAll(name).length > 1);
  if (repeated !== undefined) {
    throw new HttpError('invalid_request', `the query parameter ${repeated} may be given once`, {
      details: { member: repeated },
    });
  }
  for (const name of query.keys()) refuseUnknown(name, known);
  return readInput(schema, { ...Object.fromEntries(query), ...lists });
}

/** The one parameter that may be repeated. */
const LISTED = 'scope';

/** Clients write a list as `scope=…&scope=…`, `scope[]=…` or `scope[0]=…`. */
const LISTED_NAME = /^scope(?:\[\d{0,9}\])?$/;

function listedIn(query: URLSearchParams): Readonly<Record<string, readonly string[]>> {
  const values = [...query].filter(([name]) => LISTED_NAME.test(name)).map(([, value]) => value);
  return values.length === 0 ? {} : { [LISTED]: values };
}

function refuseUnknown(name: string, known: readonly string[]): void {
  if (known.includes(name) || (known.includes(LISTED) && LISTED_NAME.test(name))) return;
  // In a name such as `limit[]` or `filter.name`, the part before is misspelled or not.
  const [stem = ''] = name.slice(0, 64).split(/[[.]/, 1);
  const meant = misspelledName(stem, known);
  if (meant !== undefined) {
    throw unknownParameter(name, `; did you mean ${meant}?`, { member: meant });
  }
  const folded = stem.replaceAll(/[^A-Za-z]/g, '').toLowerCase();
  if (ORDERING.has(folded)) {
    if (known.includes('sort'))
      throw unknownParameter(name, '; did you mean sort?', { member: 'sort' });
    throw unknownParameter(name, `; the order cannot be chosen (known: ${known.join(', ')})`);
  }
  if (!SHAPING.has(folded)) return;
  const close = meantName(stem, known);
  if (close !== undefined)
    throw unknownParameter(name, `; did you mean ${close}?`, { member: close });
  throw unknownParameter(name, ` (known: ${known.join(', ')})`);
}

/** Names by which other services sort lists, in lower case and without other characters. */
const ORDERING: ReadonlySet<string> = new Set(
  'sort sortby sortfield sortorder sortdir sortdirection order orderby ordering direction dir asc desc'.split(
    ' ',
  ),
);

/** Names by which they sort, filter, select or count pages: an answer that ignores them misleads. */
const SHAPING: ReadonlySet<string> = new Set([
  ...'filter filters filterby where search searchterm query q contains fields select include exclude expand'.split(
    ' ',
  ),
  ...'page pageno pagenumber pagesize perpage size skip top take count offset start after before'.split(
    ' ',
  ),
  ...'first last since until from to status active expired revoked createdafter createdbefore'.split(
    ' ',
  ),
]);

function unknownParameter(name: string, hint: string, details?: { readonly member: string }) {
  const message = `unknown query parameter ${shownName(name)}${hint}`;
  return new HttpError('invalid_request', message, details && { details });
}
