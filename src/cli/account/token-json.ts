import * as z from 'zod';
import { toWire, toWireWithUse } from '../../http/wire.ts';
import type { Token } from '../../token.ts';

/** A token as the service sends it. */
export const tokenJson = z.object({
  scopes: z.array(z.string()).readonly(),
  expire: z.int(),
  token: z.string(),
  masked: z.string(),
  id: z.string(),
  state: z.string(),
  createdAt: z.int(),
  version: z.int(),
  pending: z.literal(true).optional(),
  parent: z.string().optional(),
  /** Only a store knows it; a service does not send it. */
  requested: z.array(z.string()).readonly().optional(),
  name: z.string().optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  limits: z
    .object({
      addresses: z.array(z.string()).readonly().exactOptional(),
      uses: z.int().exactOptional(),
      rate: z.object({ uses: z.int(), seconds: z.int() }).exactOptional(),
    })
    .optional(),
  /** Only of tokens that were read, if their uses are recorded. `null` if there were none. */
  lastUsed: z.int().nullable().optional(),
  uses: z.int().optional(),
});

/** A token as commands print it. `token` is the value if it was just made, else the id. */
export type TokenJson = z.infer<typeof tokenJson>;

export function toTokenJson(token: Token): TokenJson {
  return { ...toWire(token), requested: token.requested };
}

/** A token that was read, with its use. */
export function toUsedTokenJson(token: Token): TokenJson {
  return { ...toWireWithUse(token), requested: token.requested };
}

const use = { uses: z.int(), lastUsed: z.int().nullable() };

/** The use of a token, as the service sends it. */
export const usageJson = z.object({
  ...use,
  refusals: z.int(),
  derived: z.object(use).optional(),
  scopes: z.array(z.object({ scope: z.string(), ...use })).readonly(),
});

export type UsageJson = z.infer<typeof usageJson>;

/** Which scopes a token does not need, as the service sends it. */
export const adviceJson = z.object({
  unused: z.array(z.string()).readonly(),
  kept: z.array(z.string()).readonly(),
  since: z.int(),
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
  suggestions: z.array(z.string()).readonly(),
});

export type ExplanationJson = z.infer<typeof explanationJson>;

/** A finding of a review, as the service sends it. */
export const findingJson = z.looseObject({
  code: z.string(),
  token: tokenJson,
  scopes: z.array(z.string()).readonly(),
  message: z.string(),
});

export type FindingJson = z.infer<typeof findingJson>;

/** Replaces a value that was revealed again by the id: commands print only new values. */
export function withoutValue(token: TokenJson): TokenJson {
  return { ...token, token: token.id };
}
