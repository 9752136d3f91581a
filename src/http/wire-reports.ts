import { OTHER_SCOPES } from '../ports/usage-store.ts';
import type { Explanation } from '../token/record.ts';
import type { TokenAdvice } from '../usage/advice.ts';
import type { TokenUsage } from '../usage/counts.ts';
import type { BroadReason, TokenFinding } from '../usage/findings.ts';
import {
  arrayOf,
  COUNT,
  type Json,
  LAST_USED,
  objectSchema,
  SECONDS,
  toUnixSeconds,
  type toWire,
  toWireUse,
  type WireToken,
  type WireUse,
} from './wire.ts';

// Reports about tokens, in the JSON of responses.

/** How a token is used, in the JSON of a response. */
export interface WireUsage extends WireUse {
  readonly refusals: number;
  readonly derived?: WireUse;
  readonly scopes: readonly (WireUse & { readonly scope: string })[];
}

export function toWireUsage(usage: TokenUsage): WireUsage {
  const { refusals, derived, scopes } = usage;
  return {
    ...toWireUse(usage),
    refusals,
    ...(derived !== undefined && { derived: toWireUse(derived) }),
    scopes: scopes.map((used) => ({ scope: used.scope, ...toWireUse(used) })),
  };
}

/** Which scopes a token does not need, in the JSON of a response. */
export interface WireAdvice {
  readonly unused: readonly string[];
  readonly kept: readonly string[];
  readonly since: number;
}

export function toWireAdvice({ unused, kept, since }: TokenAdvice): WireAdvice {
  return { unused, kept, since: toUnixSeconds(since) };
}

/** Whether a token would be allowed something, as the library returns it. */
export type WireExplanation = Explanation;

/** Something about a token that somebody should look at, in the JSON of a response. */
export interface WireFinding {
  readonly code: TokenFinding['code'];
  /** Without its value. */
  readonly token: WireToken;
  readonly scopes: readonly string[];
  readonly message: string;
  readonly lastUsed?: number;
  readonly since?: number;
  readonly secretSince?: number;
  readonly suspendedAt?: number;
  readonly reasons?: readonly BroadReason[];
  readonly covered?: number;
  readonly entries?: number;
}

/** @param toToken makes the JSON of a token in answers to reads */
export function toWireFinding(finding: TokenFinding, toToken: typeof toWire): WireFinding {
  const { code, token, scopes, message } = finding;
  return { code, token: toToken(token), scopes, message, ...factsOf(finding) };
}

/** The members that only some findings have. */
function factsOf(finding: TokenFinding): Partial<WireFinding> {
  switch (finding.code) {
    case 'unused':
    case 'expiring':
      return { lastUsed: toUnixSeconds(finding.lastUsedAt) };
    case 'never_used':
    case 'excess':
      return { since: toUnixSeconds(finding.since) };
    case 'stale_secret':
      return { secretSince: toUnixSeconds(finding.secretSince) };
    case 'suspended':
      return { suspendedAt: toUnixSeconds(finding.suspendedAt) };
    case 'broad': {
      const { reasons, covered, entries } = finding;
      return { reasons, ...(covered !== undefined && { covered, entries }) };
    }
    case 'orphaned_scope':
      return {};
  }
}

/** The schema of {@link toWireUsage}. */
export const USAGE_SCHEMA: Json = objectSchema(
  {
    uses: { ...COUNT, description: 'How often a check accepted it.' },
    refusals: { ...COUNT, description: 'How often a check refused it.' },
    lastUsed: LAST_USED,
    scopes: {
      type: 'array',
      description: `All scopes that the token holds. An entry \`${OTHER_SCOPES}\` has the uses of those that are not counted apart.`,
      items: objectSchema({
        scope: { anyOf: [{ $ref: '#/components/schemas/Scope' }, { const: OTHER_SCOPES }] },
        uses: COUNT,
        lastUsed: LAST_USED,
      } satisfies Record<keyof WireUsage['scopes'][number], Json>),
    },
  } satisfies Record<Exclude<keyof WireUsage, 'derived'>, Json>,
  {
    derived: {
      ...objectSchema({ uses: COUNT, lastUsed: LAST_USED } satisfies Record<keyof WireUse, Json>),
      description:
        'The uses of all tokens that were derived from it, which do not count as its own. Absent if there were none.',
    },
  } satisfies Record<'derived', Json>,
);

/** The schema of {@link toWireAdvice}. */
export const ADVICE_SCHEMA: Json = objectSchema({
  unused: { ...arrayOf('Scope'), description: 'What the token can do without.' },
  kept: { ...arrayOf('Scope'), description: 'Its other scopes.' },
  since: {
    ...SECONDS,
    description: 'UNIX seconds. From when the counts say something about these scopes.',
  },
} satisfies Record<keyof WireAdvice, Json>);

/** The schema of an explanation. */
export const EXPLANATION_SCHEMA: Json = objectSchema(
  {
    allowed: { type: 'boolean', description: 'Whether the token would be accepted for this now.' },
    needed: {
      type: 'string',
      description:
        'The scope in question: that of the catalog for this request, otherwise its own. Empty for a request that servers could read differently.',
    },
    known: { type: 'boolean', description: 'Whether the catalog knows what was asked.' },
    suggestions: {
      ...arrayOf('Scope'),
      description: 'If it is not known: the most similar known scopes.',
    },
  },
  {
    reason: {
      type: 'string',
      description:
        'Why not: `insufficient_scope`, the state of the token, or what is wrong with the request, such as `path_dot_segment`.',
    },
    grantedBy: { $ref: '#/components/schemas/Scope' },
    nearest: {
      ...objectSchema({
        scope: { $ref: '#/components/schemas/Scope' },
        failed: { enum: ['method', 'domain', 'path'] },
      }),
      description: 'The nearest scope of the token, and the part of it that does not match.',
    },
    smallest: { type: 'string', description: 'The narrowest scope that would be enough.' },
  },
);

const FINDING_CODES: readonly TokenFinding['code'][] = [
  'unused',
  'never_used',
  'broad',
  'excess',
  'expiring',
  'stale_secret',
  'orphaned_scope',
  'suspended',
];

/** The schema of {@link toWireFinding}. */
export const FINDING_SCHEMA: Json = objectSchema(
  {
    code: { enum: FINDING_CODES },
    token: { $ref: '#/components/schemas/Token' },
    scopes: {
      ...arrayOf('Scope'),
      description: 'The scopes in question: all that the token holds, unless it is about some.',
    },
    message: { type: 'string', description: 'What was found and what to do. May change.' },
  },
  {
    lastUsed: { ...SECONDS, description: 'Of `unused` and `expiring`.' },
    since: {
      ...SECONDS,
      description: 'Of `never_used` and `excess`: from when uses are counted.',
    },
    secretSince: { ...SECONDS, description: 'Of `stale_secret`: when the value was made.' },
    suspendedAt: { ...SECONDS, description: 'Of `suspended`: since when.' },
    reasons: {
      type: 'array',
      items: { enum: ['every_method', 'whole_host', 'most_of_catalog'] },
      description: 'Of `broad`.',
    },
    covered: {
      ...COUNT,
      description: 'Of `broad`: how many entries of the catalog the token covers.',
    },
    entries: { ...COUNT, description: 'Of `broad`: how many entries the catalog has.' },
  } satisfies Partial<Record<keyof WireFinding, Json>>,
);
