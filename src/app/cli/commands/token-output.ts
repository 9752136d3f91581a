import type { WireAdvice, WireExplanation, WireToken, WireUsage } from '../../../http/wire.ts';
import type { RevocationPreview } from '../../../index.ts';
import { OTHER_SCOPES } from '../../../ports/usage-store.ts';
import { describeScopes, type ScopeDescription } from '../../../scope/describe.ts';
import { type ScopeDiff, ScopeError } from '../../../scope/index.ts';
import { count } from '../../../text/wording.ts';
import { systemClock } from '../../../time/clock.ts';
import { relativeFormats, relativeTime } from '../../../time/relative.ts';
import type { ValueFault } from '../../../token/record.ts';
import { columns, diffLines, labeled, printable, table, wrap } from '../../terminal/layout.ts';
import type { Listing, TokenClient, Verification, WrittenNeed } from '../account/client.ts';
import type { Outcome } from '../command.ts';
import { describeRequest, REQUEST_REASONS } from './request.ts';
import { limitLines } from './token-limits.ts';

export function missingOutcome({ name }: TokenClient): Outcome {
  return { text: '', json: null, notes: `no such token of ${name}`, isNegative: true };
}

export function madeOutcome(token: WireToken): Outcome {
  return { text: token.token, json: token, notes: columns(rowsOf(token)) };
}

/** Adds a note if a catalog has expanded wildcards that were asked for. */
export function notingExpansion(
  asked: readonly string[],
  describe: (token: WireToken) => Outcome,
): (token: WireToken) => Outcome {
  return (token) => {
    const outcome = describe(token);
    const isExpanded = asked.some((scope) => scope.includes('*') && !token.scopes.includes(scope));
    if (!isExpanded) return outcome;
    return { ...outcome, notes: outcome.notes ? `${outcome.notes}\n\n${EXPANDED}` : EXPANDED };
  };
}

const EXPANDED =
  'the wildcards were expanded: endpoints that are added to the catalog later are not included';

export function shownOutcome(token: WireToken, inWords: Describe = () => undefined): Outcome {
  return { text: columns(rowsOf(token, inWords(token.scopes))), json: token };
}

/** What scopes allow, in the permissions of a catalog; `undefined` if that is not known. */
export type Describe = (scopes: readonly string[]) => ScopeDescription | undefined;

/** Describes scopes to people. With `--json`, and without permissions, nothing is described. */
export async function describerOf(
  client: TokenClient,
  { json = false }: { readonly json?: boolean },
): Promise<Describe> {
  const known = json ? [] : await client.permissions();
  if (known.length === 0) return () => undefined;
  return (scopes) => {
    try {
      return describeScopes(scopes, { permissions: () => known });
    } catch (error) {
      // A service may send what is not a scope.
      if (error instanceof ScopeError) return undefined;
      throw error;
    }
  };
}

export function usageOutcome(usage: WireUsage): Outcome {
  const { uses, refusals, lastUsed, derived, scopes } = usage;
  const totals = columns([
    ['uses', String(uses)],
    ['refusals', String(refusals)],
    ['last used', lastUsedText(lastUsed)],
    ...(derived === undefined ? [] : [derivedRow(derived)]),
  ]);
  const rows = scopes.map(({ scope, uses, lastUsed }) => [
    String(uses),
    lastUsedText(lastUsed),
    scope === OTHER_SCOPES ? `${scope}: it is not known by which scope` : printable(scope),
  ]);
  return { text: `${totals}\n\n${table(['USES', 'LAST USED', 'SCOPE'], rows)}`, json: usage };
}

function derivedRow({
  uses,
  lastUsed,
}: NonNullable<WireUsage['derived']>): readonly [label: string, text: string] {
  return ['derived tokens', `${count(uses, 'use')}, the last ${lastUsedText(lastUsed)}`];
}

/** @param removed the scopes that were removed; absent if that was not asked for */
export function adviceOutcome(advice: WireAdvice, removed?: readonly string[]): Outcome {
  const { unused, kept, since } = advice;
  const list = (label: string, scopes: readonly string[]) =>
    labeled(label, scopes.length === 0 ? ['none'] : scopes.map(printable));
  return {
    text: columns([...list('unused', unused), ...list('kept', kept), ['since', isoTime(since)]]),
    json: { ...advice, ...(removed !== undefined && { removed }) },
    notes: removed?.length ? `removed ${count(removed.length, 'scope')}` : nextStep(advice),
  };
}

function nextStep({ unused, kept, since }: WireAdvice): string {
  if (unused.length === 0) return `nothing to remove, as far as is known since ${isoTime(since)}`;
  if (kept.length === 0) return 'no scope was used: revoke the token, or ask its bearer';
  return 'to remove the unused scopes, add --apply';
}

export function triedOutcome(token: WireToken & { readonly diff: ScopeDiff }): Outcome {
  const diff = diffLines(token.diff) || 'no difference: the token would allow the same';
  return {
    text: `${diff}\n\n${columns(rowsOf(token))}`,
    json: token,
    notes: 'dry run: nothing was changed',
  };
}

export function revokedOutcome(revoked: number, { name }: TokenClient): Outcome {
  return { text: `revoked ${count(revoked, 'token')} of ${name}`, json: { revoked } };
}

/** What a revocation would end, and which of it. */
export function previewOutcome(
  { count: revoked, ending, tokens }: RevocationPreview,
  { name }: TokenClient,
): Outcome {
  const others =
    ending === 0
      ? ''
      : `, and ${count(ending, 'other token')} that were derived from them would end`;
  const shown = tokens.map(({ id, name: called = '' }) => `${id}  ${printable(called)}`.trimEnd());
  return {
    text: [`would revoke ${count(revoked, 'token')} of ${name}${others}`, ...shown].join('\n'),
    json: { count: revoked, ending, tokens: tokens.map(({ id }) => id) },
  };
}

export function listedOutcome(
  { tokens, isWhole }: Listing,
  { name }: TokenClient,
  inWords: Describe = () => undefined,
): Outcome {
  const counted = `${count(tokens.length, 'token')} of ${name}`;
  return {
    text: drawList(tokens, inWords),
    json: { tokens, isWhole },
    notes: isWhole ? counted : `${counted}; there are more: --all lists them`,
  };
}

function rowsOf(
  token: WireToken,
  may?: ScopeDescription,
): (readonly [label: string, text: string])[] {
  const { id, masked, name, state, pending, parent, descendants, scopes, metadata, limits } = token;
  const { createdBy, purpose, actor } = token;
  const list = (label: string, lines: readonly string[]) => labeled(label, lines.map(printable));
  return [
    ['id', printable(id)],
    ['value', printable(masked)],
    ...(name === undefined ? [] : [['name', printable(name)] as const]),
    ...(purpose === undefined ? [] : [['purpose', printable(purpose)] as const]),
    ...(createdBy === undefined ? [] : [['made by', printable(createdBy)] as const]),
    ...(actor === undefined
      ? []
      : [['actor', `${printable(actor.sub)}, with ${printable(actor.token)}`] as const]),
    ['state', printable(state)],
    ...(pending === true ? [['pending', 'a new value waits for its first use'] as const] : []),
    ...(parent === undefined ? [] : [['parent', printable(parent)] as const]),
    ...(descendants === undefined || descendants === 0
      ? []
      : [
          [
            'derived',
            `${descendants} live, which outlive the rotation (--end-derived ends them)`,
          ] as const,
        ]),
    ...(may === undefined ? [] : [['may', printable(may.text)] as const]),
    ...list('scopes', scopes),
    ...(metadata === undefined ? [] : list('metadata', wrap(JSON.stringify(metadata)))),
    ...(limits === undefined ? [] : list('limits', limitLines(limits))),
    ['created', isoTime(token.createdAt)],
    ['expires', isoTime(token.expire)],
    ...useRows(token),
    ['version', String(token.version)],
  ];
}

function useRows({ uses, lastUsed }: WireToken): (readonly [label: string, text: string])[] {
  if (uses === undefined || lastUsed === undefined) return [];
  const text = lastUsed === null ? 'never' : `${count(uses, 'time')}, last ${isoTime(lastUsed)}`;
  return [['used', text]];
}

/** Draws a list of tokens, with the column that may be long at the end. */
function drawList(tokens: readonly WireToken[], inWords: Describe): string {
  if (tokens.length === 0) return '';
  const hasStates = tokens.some(({ state }) => state !== 'active');
  const hasNames = tokens.some(({ name }) => name !== undefined);
  const hasUses = tokens.some(({ lastUsed }) => lastUsed !== undefined);
  const rows = tokens.map(({ id, state, expire, lastUsed, name = '', scopes }) => {
    const more = scopes.length > 1 ? ` and ${scopes.length - 1} more` : '';
    const may = inWords(scopes);
    const isNamed = may !== undefined && may.permissions.length > 0;
    return [
      printable(id),
      ...(hasStates ? [printable(state)] : []),
      listedTime(expire),
      ...(hasUses ? [listedUse(lastUsed)] : []),
      ...(hasNames ? [shorten(printable(name))] : []),
      printable(isNamed ? may.text : `${scopes[0]}${more}`),
    ];
  });
  const titles = [
    'ID',
    ...(hasStates ? ['STATE'] : []),
    'EXPIRES',
    ...(hasUses ? ['LAST USED'] : []),
    ...(hasNames ? ['NAME'] : []),
    'SCOPES',
  ];
  return table(titles, rows);
}

function lastUsedText(lastUsed: number | null | undefined): string {
  if (lastUsed === undefined) return 'unknown';
  return lastUsed === null ? 'never' : isoTime(lastUsed);
}

/** For people, how far away a time is; for programs, the time. */
function listedTime(unixSeconds: number): string {
  if (!process.stdout.isTTY) return isoTime(unixSeconds);
  return relativeTime(unixSeconds - systemClock.now().getTime() / 1000, relativeFormats('en'));
}

function listedUse(lastUsed: number | null | undefined): string {
  if (typeof lastUsed !== 'number') return lastUsedText(lastUsed);
  return listedTime(lastUsed).replace(/T.*/, '');
}

const NAME_WIDTH = 20;

function shorten(name: string): string {
  return name.length > NAME_WIDTH ? `${name.slice(0, NAME_WIDTH - 1)}…` : name;
}

function isoTime(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString().replace('.000', '');
}

const VERDICT_REASONS: Readonly<Record<string, string>> = {
  malformed: 'not a value of this service',
  unknown: 'no token has this value; it may have been rotated, or purged',
  revoked: 'the token was revoked',
  expired: 'the token has expired',
  suspended: 'the token is suspended, until somebody resumes it',
  inactive:
    'the value is unknown, revoked, expired or suspended, or its limits do not allow a use now',
  ancestor_revoked: 'a token that it was derived from was revoked',
  ancestor_expired: 'a token that it was derived from has expired',
  ancestor_changed: 'the token that it elevates, or one above it, was changed, which ended it',
  ancestor_suspended: 'a token that it was derived from is suspended, until somebody resumes it',
  insufficient_scope: 'no scope of the token covers it',
  ancestor_insufficient: 'a token that it was derived from no longer covers it',
  address_unknown: 'the token is restricted to certain addresses: give --address',
  address_denied: 'the token may not be used from this address',
  limit_exceeded: 'the token has no use left, in total or in this window',
};

/** Explains why a text is not a value. A command always has one, and never an empty one. */
const VALUE_FAULTS: Readonly<Record<string, string>> = {
  begins_with_bearer: 'this is the whole header: give only what follows "Bearer "',
  is_id:
    'this is the id of a token, which opens nothing: give the value that issue or rotate printed',
  other_prefix:
    'the value has another prefix than --prefix (TOKENWRIGHT_PREFIX), so it belongs elsewhere',
  unknown_key:
    'the value was made with a key that is not in the key file: check --keys (TOKENWRIGHT_KEYS)',
  bad_tag:
    'the value was mistyped or forged, or a key in the key file has the name of another one: check --keys (TOKENWRIGHT_KEYS)',
  other_form: 'it does not look like a value: check that it is complete, without line breaks',
} satisfies Record<Exclude<ValueFault, 'not_a_string' | 'empty'>, string>;

export function explanationOutcome(explanation: WireExplanation, need: WrittenNeed): Outcome {
  const { allowed, reason, grantedBy, nearest, needed, smallest, known, suggestions } = explanation;
  const { summary } = explanation;
  const rows = [
    [allowed ? 'allowed' : 'refused', describeNeed(need)],
    ...(reason === undefined ? [] : [['reason', `${reason}: ${reasonInWords(reason)}`] as const]),
    ...(grantedBy === undefined ? [] : [['by', grantedBy] as const]),
    ...(nearest === undefined
      ? []
      : [['nearest', `${nearest.scope}, but its ${nearest.failed} does not match`] as const]),
    ...(smallest === undefined ? [] : [['enough', smallest] as const]),
    ...(summary === undefined ? [] : [['endpoint', `${needed} (${summary})`] as const]),
    // What an ambiguous request needs cannot be told, nor whether a catalog knows it.
    ...(known || suggestions.length > 0 || reason === undefined || needed === ''
      ? []
      : [['catalog', 'does not know it'] as const]),
    ...(suggestions.length === 0
      ? []
      : labeled('catalog', [
          'does not know it; did you mean',
          ...suggestions.map((scope) => `  ${scope}`),
        ])),
  ] as const;
  return {
    text: columns(rows.map(([label, text]) => [label, printable(text)])),
    json: explanation,
    isNegative: !allowed,
  };
}

/** Explains why a token does not allow something. */
export function reasonInWords(reason: string): string {
  const ambiguous: Readonly<Record<string, string>> = REQUEST_REASONS;
  return VERDICT_REASONS[reason] ?? ambiguous[reason] ?? 'the request is ambiguous';
}

function describeNeed(need: WrittenNeed): string {
  return 'scope' in need ? printable(need.scope) : describeRequest(need);
}

export function verificationOutcome(verification: Verification, need: WrittenNeed): Outcome {
  const asked = describeNeed(need);
  if (verification.ok) {
    const { id, account, expire } = verification.token;
    const rows = [
      ['allowed', asked],
      ['by', verification.grantedBy],
      ['token', id],
      ['account', account],
      ['expires', expire === undefined ? undefined : isoTime(expire)],
    ] as const;
    return {
      text: columns(
        rows.flatMap(([name, text]) => (text ? [[name, printable(text)] as const] : [])),
      ),
      json: verification,
    };
  }
  const { reason, detail, needed } = verification;
  const fault = detail === undefined ? undefined : VALUE_FAULTS[detail];
  return {
    text: columns([
      ['refused', asked],
      ['reason', `${reason}: ${reasonInWords(reason)}`],
      ...(fault === undefined ? [] : labeled('detail', wrap(`${detail}: ${fault}`))),
      ...(needed === undefined ? [] : [['enough', needed] as const]),
    ]),
    json: verification,
    isNegative: true,
  };
}
