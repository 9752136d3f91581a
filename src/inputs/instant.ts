import * as z from 'zod/mini';
import { once } from './once.ts';

const dateTime = once(() => z.iso.datetime({ offset: true }));

/**
 * The instant of an ISO 8601 date-time with its zone, such as `2027-01-31T12:00:00Z`; `undefined` for any
 * other text. Without a zone, the text would be another instant on each machine.
 */
export function parseInstant(text: string): Date | undefined {
  return dateTime().safeParse(text).success ? new Date(text) : undefined;
}

/** The JSON Schema of the texts that {@link parseInstant} reads. */
export const INSTANT_SCHEMA = {
  type: 'string',
  format: 'date-time',
  pattern: String(dateTime().def.pattern?.source),
} as const;
