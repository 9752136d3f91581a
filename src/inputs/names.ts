import { nearestName } from '../scope/nearest.ts';
import { shownName } from '../text/wording.ts';

/** Unknown members of an argument for which an error looks for a similar known one. @bound */
export const MAX_COMPARED_NAMES = 20;

/**
 * Names that other libraries use for our members, in lower case and without hyphens and underscores. If there
 * are several of our names, the first that the argument takes is suggested.
 */
const OTHER_NAMES: readonly (readonly [others: string, ours: string])[] = [
  [
    'ttl ttlseconds lifetime maxage validfor duration',
    'ttlSeconds ttl expiresIn lifetime maxStaleMs',
  ],
  ['expiresin', 'expiresIn lifetime expiresAt'],
  ['expire expires expiry exp expiration expirationdate validuntil until', 'expiresAt expire'],
  [
    'userid user accountid owner ownerid subject sub tenant tenantid customer customerid',
    'username account',
  ],
  ['permissions permission abilities rights grants roles', 'scopes'],
  ['path url uri pathname route', 'target basePath'],
  ['host hostname', 'domain'],
  ['login email', 'username'],
  ['label title description displayname', 'name'],
  ['data info tags attributes', 'metadata'],
  ['graceperiod gracems overlap', 'graceSeconds'],
  ['ip ips cidr cidrs addresslist allowlist whitelist', 'addresses address'],
  ['per window interval period', 'seconds everyMs'],
  ['max count requests points times', 'uses'],
  ['enabled disabled active revoked suspendedat state status', 'state suspended'],
  ['page offset after nextcursor pagetoken', 'cursor'],
  ['pagesize perpage take first size', 'limit'],
  ['search query q contains', 'name'],
  ['etag ifmatch revision', 'ifVersion'],
  ['cascade recursive children derived', 'descendants endDerived'],
  ['preview simulate', 'dryRun'],
  ['days age olderthan retention', 'unusedForDays purgeAfterDays before'],
  ['hash sha256', 'digest'],
  ['type kind', 'format'],
  ['auth login checkpassword verifyuser users', 'authenticate'],
  ['prefix mount mountpath', 'basePath prefix'],
  ['service tokenservice', 'tokens'],
  ['secret secrets signingkey signingkeys', 'keys secret'],
  ['id keyid', 'kid'],
  ['pool db database client connection storage adapter', 'store'],
  ['scopes endpoints', 'catalog'],
  ['timeout timeoutms', 'deadlineMs'],
  ['logger log onerror', 'onEvent onError'],
  ['pass pwd', 'password'],
];

/** What an error says of an unknown member: the name that it has, if it can be shown, and the one meant. */
export interface UnknownMember {
  readonly message: string;
  readonly details: { readonly unknown?: string; readonly suggestion?: string };
}

/** Describes unknown members of an argument. @param place the member that holds them, or '' */
export function describeUnknown(
  unknown: readonly string[],
  known: readonly string[],
  place: string,
): UnknownMember {
  const names = unknown.slice(0, MAX_COMPARED_NAMES);
  const meant = names.map((name) => meantName(name, known));
  // A name that looks misspelled comes first, because its hint helps.
  const index = Math.max(
    0,
    meant.findIndex((name) => name !== undefined),
  );
  const name = shownName(names[index] as string);
  const suggestion = meant[index];
  const of = place === '' ? '' : ` of ${place}`;
  const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`;
  const isShown = name.startsWith('"');
  return {
    message: `unknown member ${name}${of}${hint} (known: ${known.join(', ')})`,
    details: {
      ...(isShown && { unknown: names[index] as string }),
      ...(suggestion !== undefined && { suggestion }),
    },
  };
}

/** The known name that somebody meant by another one, or misspelled. */
export function meantName(name: string, known: readonly string[]): string | undefined {
  const folded = name.replaceAll(/[_-]/g, '').toLowerCase();
  for (const [others, ours] of OTHER_NAMES) {
    if (!others.split(' ').includes(folded)) continue;
    const meant = ours.split(' ').find((our) => known.includes(our));
    if (meant !== undefined) return meant;
  }
  return nearestName(name, known);
}
