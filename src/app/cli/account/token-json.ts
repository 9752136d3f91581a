import * as z from 'zod/mini';
import { toWireRotated, toWireWithUse } from '../../../http/wire.ts';
import { isId } from '../../../token/id.ts';
import { readMetadata } from '../../../token/metadata.ts';
import type { Token } from '../../../token/record.ts';

// What a service sends is checked as far as printing it depends on it. The bounds are far beyond
// those of a service: a server that answers in its place must not fill a terminal or the memory.

const LAST_SECOND = 8_640_000_000_000;
/** UNIX seconds that are a date. */
export const time = z.int().check(z.minimum(0), z.maximum(LAST_SECOND));
const scopeText = z.string().check(z.maxLength(4096));
const scopeList = z.readonly(z.array(scopeText).check(z.maxLength(65_536)));
const id = z.string().check(z.refine((text): boolean => isId(text)));
/** Such as a state, or the code of a finding. */
const code = z.string().check(z.regex(/^[a-z_]{1,40}$/));
/** Visible ASCII alone: what a hostile service sends goes to the terminal. */
const VALUE = /^[a-z0-9_]{1,40}_[0-9A-Za-z]{58}$/;

/** A token as the service sends it. */
export const tokenJson = z.object({
  scopes: scopeList,
  expire: time,
  token: z.string(),
  masked: z.string(),
  id,
  state: code,
  createdAt: time,
  version: z.int(),
  pending: z.optional(z.literal(true)),
  parent: z.optional(id),
  /** Only of a token that was rotated. */
  descendants: z.optional(z.int().check(z.minimum(0))),
  /** Only a store knows it; a service does not send it. */
  requested: z.optional(scopeList),
  name: z.optional(z.string()),
  metadata: z.optional(
    z
      .record(z.string(), z.unknown())
      .check(z.refine((metadata) => typeof readMetadata(metadata) === 'object')),
  ),
  limits: z.optional(
    z.object({
      addresses: z.exactOptional(z.readonly(z.array(z.string()))),
      uses: z.exactOptional(z.int()),
      rate: z.exactOptional(z.object({ uses: z.int(), seconds: z.int() })),
    }),
  ),
  /** Only of tokens that were read, if their uses are recorded. `null` if there were none. */
  lastUsed: z.optional(z.nullable(time)),
  uses: z.optional(z.int()),
});

/** A token as commands print it. `token` is the value if it was just made, else the id. */
export type TokenJson = z.infer<typeof tokenJson>;

/** A token that was just made, with its value: the one text of an answer that is printed as it is. */
export const madeTokenJson = z.extend(tokenJson, { token: z.string().check(z.regex(VALUE)) });

export function toTokenJson(token: Token): TokenJson {
  return { ...toWireRotated(token), requested: token.requested };
}

/** A token that was read, with its use. */
export function toUsedTokenJson(token: Token): TokenJson {
  return { ...toWireWithUse(token), requested: token.requested };
}

const use = { uses: z.int(), lastUsed: z.nullable(time) };

/** The use of a token, as the service sends it. */
export const usageJson = z.object({
  ...use,
  refusals: z.int(),
  derived: z.optional(z.object(use)),
  scopes: z.readonly(z.array(z.object({ scope: scopeText, ...use })).check(z.maxLength(65_536))),
});

export type UsageJson = z.infer<typeof usageJson>;

/** Which scopes a token does not need, as the service sends it. */
export const adviceJson = z.object({
  unused: scopeList,
  kept: scopeList,
  since: time,
});

export type AdviceJson = z.infer<typeof adviceJson>;

/** Whether a token would be allowed something, as the service sends it. */
export const explanationJson = z.object({
  allowed: z.boolean(),
  reason: z.optional(z.string()),
  grantedBy: z.optional(z.string()),
  needed: z.string(),
  nearest: z.optional(z.object({ scope: z.string(), failed: z.string() })),
  smallest: z.optional(z.string()),
  known: z.boolean(),
  suggestions: scopeList,
});

export type ExplanationJson = z.infer<typeof explanationJson>;

/** A finding of a review, as the service sends it; what else it has are facts of its code. */
export const findingJson = z
  .looseObject({ code, token: tokenJson, scopes: scopeList, message: z.string() })
  .check(z.refine(({ token: _, ...facts }) => Object.values(facts).flat().every(isFact)));

function isFact(value: unknown): boolean {
  return typeof value !== 'object' || value === null;
}

export type FindingJson = z.infer<typeof findingJson>;

/** Replaces a value that was revealed again by the id: commands print only new values. */
export function withoutValue(token: TokenJson): TokenJson {
  return { ...token, token: token.id };
}
