import * as z from 'zod';
import { toWireRotated, toWireWithUse } from '../../../http/wire.ts';
import { isId } from '../../../token/id.ts';
import { readMetadata } from '../../../token/metadata.ts';
import type { Token } from '../../../token/record.ts';

// What a service sends is checked as far as printing it depends on it. The bounds are far beyond
// those of a service: a server that answers in its place must not fill a terminal or the memory.

const LAST_SECOND = 8_640_000_000_000;
/** UNIX seconds that are a date. */
export const time = z.int().min(0).max(LAST_SECOND);
const scopeText = z.string().max(4096);
const scopeList = z.array(scopeText).max(65_536).readonly();
const id = z.string().refine((text): boolean => isId(text));
/** Such as a state, or the code of a finding. */
const code = z.string().regex(/^[a-z_]{1,40}$/);
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
  pending: z.literal(true).optional(),
  parent: id.optional(),
  /** Only of a token that was rotated. */
  descendants: z.int().min(0).optional(),
  /** Only a store knows it; a service does not send it. */
  requested: scopeList.optional(),
  name: z.string().optional(),
  metadata: z
    .record(z.string(), z.unknown())
    .refine((metadata) => typeof readMetadata(metadata) === 'object')
    .optional(),
  limits: z
    .object({
      addresses: z.array(z.string()).readonly().exactOptional(),
      uses: z.int().exactOptional(),
      rate: z.object({ uses: z.int(), seconds: z.int() }).exactOptional(),
    })
    .optional(),
  /** Only of tokens that were read, if their uses are recorded. `null` if there were none. */
  lastUsed: time.nullable().optional(),
  uses: z.int().optional(),
});

/** A token as commands print it. `token` is the value if it was just made, else the id. */
export type TokenJson = z.infer<typeof tokenJson>;

/** A token that was just made, with its value: the one text of an answer that is printed as it is. */
export const madeTokenJson = tokenJson.extend({ token: z.string().regex(VALUE) });

export function toTokenJson(token: Token): TokenJson {
  return { ...toWireRotated(token), requested: token.requested };
}

/** A token that was read, with its use. */
export function toUsedTokenJson(token: Token): TokenJson {
  return { ...toWireWithUse(token), requested: token.requested };
}

const use = { uses: z.int(), lastUsed: time.nullable() };

/** The use of a token, as the service sends it. */
export const usageJson = z.object({
  ...use,
  refusals: z.int(),
  derived: z.object(use).optional(),
  scopes: z
    .array(z.object({ scope: scopeText, ...use }))
    .max(65_536)
    .readonly(),
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
  reason: z.string().optional(),
  grantedBy: z.string().optional(),
  needed: z.string(),
  nearest: z.object({ scope: z.string(), failed: z.string() }).optional(),
  smallest: z.string().optional(),
  known: z.boolean(),
  suggestions: scopeList,
});

export type ExplanationJson = z.infer<typeof explanationJson>;

/** A finding of a review, as the service sends it; what else it has are facts of its code. */
export const findingJson = z
  .looseObject({ code, token: tokenJson, scopes: scopeList, message: z.string() })
  .refine(({ token: _, ...facts }) => Object.values(facts).flat().every(isFact));

function isFact(value: unknown): boolean {
  return typeof value !== 'object' || value === null;
}

export type FindingJson = z.infer<typeof findingJson>;

/** Replaces a value that was revealed again by the id: commands print only new values. */
export function withoutValue(token: TokenJson): TokenJson {
  return { ...token, token: token.id };
}
