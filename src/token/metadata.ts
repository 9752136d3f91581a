import { MAX_METADATA_BYTES, MAX_METADATA_DEPTH } from '../bounds.ts';
import { placeOf } from '../text/json.ts';
import { shown } from '../text/wording.ts';
import { isObject, type JsonObject } from './record.ts';

/**
 * A frozen copy of metadata, or what is wrong with it: it must be a JSON object of at most 4096 bytes
 * that comes back from JSON as it is.
 */
export function readMetadata(value: unknown): JsonObject | string {
  try {
    if (!isObject(value)) {
      const hint = typeof value === 'string' ? ': give JSON.parse(text)' : '';
      return `metadata must be a JSON object; got ${shown(value)}${hint}`;
    }
    const fault = jsonFault(value);
    if (fault !== undefined) return `${metadataPath(fault.names)} must be JSON; got ${fault.what}`;
    const text = JSON.stringify(value);
    const { length } = new TextEncoder().encode(text);
    if (length > MAX_METADATA_BYTES) {
      return `metadata may take at most ${MAX_METADATA_BYTES} bytes as JSON; got ${length}`;
    }
    const metadata = frozenJson(text);
    if (isObject(metadata)) return metadata;
  } catch {
    // A getter or a proxy of the caller may throw.
  }
  return 'metadata must be a JSON object; this one cannot be read';
}

/** A copy of metadata that nobody can change; an own `__proto__` stays an own member. */
export function copyMetadata(metadata: JsonObject): JsonObject {
  return frozenJson(JSON.stringify(metadata));
}

function frozenJson(text: string): JsonObject {
  return JSON.parse(text, (_, value) => Object.freeze(value));
}

/** What JSON cannot hold in a value, and the names that lead to it; `undefined` for JSON. */
interface JsonFault {
  readonly names: string[];
  readonly what: string;
}

function jsonFault(value: unknown, depth = 0): JsonFault | undefined {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return undefined;
  if (typeof value === 'number' && Number.isFinite(value)) {
    // Its last digits may be gone already, such as those of an id that was read from JSON.
    const isKept = !Number.isInteger(value) || Number.isSafeInteger(value);
    return isKept ? undefined : { names: [], what: `${value}, which was rounded: give a text` };
  }
  // Deeper than anything that fits. JSON.stringify takes quadratic time in the depth.
  const isDeep = depth > MAX_METADATA_DEPTH;
  if (isDeep || (!Array.isArray(value) && !isPlainObject(value))) {
    return { names: [], what: isDeep ? 'too many levels' : shown(value) + hintFor(value) };
  }
  const members = Array.isArray(value) ? value.entries() : Object.entries(value);
  for (const [name, member] of members) {
    const fault = jsonFault(member, depth + 1);
    if (fault === undefined) continue;
    fault.names.unshift(String(name));
    return fault;
  }
  return undefined;
}

/** What JSON has in the place of a value. */
function hintFor(value: unknown): string {
  if (value === undefined) return ': leave it out, or give null';
  if (typeof value === 'number') return ': give null or a text';
  if (typeof value === 'bigint') return ': give String(value)';
  if (value instanceof Date && Number.isFinite(value.getTime())) return ': give its toISOString()';
  if (value instanceof Map) return ': give Object.fromEntries(map)';
  return value instanceof Set ? ': give [...set]' : '';
}

/** Such as `metadata.a.b`; a name that is long, or may be a secret, is left out. */
function metadataPath(names: readonly string[]): string {
  return placeOf(['metadata', ...names]) ?? 'metadata: a member';
}

function isPlainObject(value: unknown): value is object {
  if (!isObject(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
