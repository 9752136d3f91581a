import * as z from 'zod/mini';
import type { Preset } from '../../../index.ts';
import { once } from '../../../inputs/once.ts';
import { fields, strict } from '../../../inputs/schemas.ts';
import type { ScopeCatalog } from '../../../scope/index.ts';
import { isObject } from '../../../token/record.ts';
import { inputError } from '../../terminal/errors.ts';
import { asPart, parseMembers, quote, readJson, readPart } from '../../terminal/inputs.ts';
import { LIFETIME } from '../../terminal/kinds.ts';
import { printable } from '../../terminal/layout.ts';

/** What the presets of a file must fit. */
interface PresetRules {
  /** The longest lifetime of a token. */
  readonly maxTtl: number;
  /** Absent if all scopes may be asked for. */
  readonly catalog: ScopeCatalog | undefined;
}

const EXAMPLE = '{"name": "CI", "scopes": ["GET:shop.example/*"], "ttl": "30d"}';

/** An entry of the file. {@link readPreset} reads its scopes and its lifetime. */
const entry = once(() =>
  strict({
    name: fields.name(),
    scopes: z.unknown(),
    ttl: z.optional(z.unknown()),
    limits: z.optional(fields.limits()),
  }),
);

/**
 * Reads the presets of a file, a JSON array.
 *
 * @param path none without presets
 * @throws {CliError} naming the file, the entry, and what is wrong with it
 */
export function readPresets(path: string | undefined, rules: PresetRules): readonly Preset[] {
  if (path === undefined) return [];
  const content = readJson(path);
  if (!Array.isArray(content)) {
    throw inputError(`${path} must be a JSON array of presets, such as [${EXAMPLE}]`);
  }
  const presets: Preset[] = [];
  for (const [index, given] of content.entries()) {
    const place = placeOf(path, given, index);
    const preset = readPreset(given, place, rules);
    const name = preset.name.toLowerCase();
    const same = presets.findIndex((other) => other.name.toLowerCase() === name);
    if (same !== -1) throw inputError(`${place}: preset ${same + 1} has the same name`);
    presets.push(preset);
  }
  return presets;
}

function placeOf(path: string, given: unknown, index: number): string {
  const name = isObject(given) ? given['name'] : undefined;
  const named = typeof name === 'string' && name !== '' ? ` (${quote(printable(name))})` : '';
  return `${path}: preset ${index + 1}${named}`;
}

function readPreset(given: unknown, place: string, { maxTtl, catalog }: PresetRules): Preset {
  const { name, scopes: texts, ttl, limits } = readPart(entry(), given, place, EXAMPLE);
  const scopes = parseMembers(texts, `${place}: scopes`).map(String);
  if (scopes.length === 0) throw inputError(`${place}: scopes must not be empty`);
  // A misspelled scope would be left out without a word.
  asPart(place, () => catalog?.expand(scopes));
  const ttlSeconds = ttl === undefined ? undefined : LIFETIME.read(ttl, `${place}: ttl`);
  if (ttlSeconds !== undefined && ttlSeconds > maxTtl) {
    throw inputError(`${place}: ttl must not be more than --max-ttl (TOKENWRIGHT_MAX_TTL)`);
  }
  return {
    name,
    scopes,
    ...(ttlSeconds !== undefined && { ttlSeconds }),
    ...(limits !== undefined && { limits }),
  };
}
