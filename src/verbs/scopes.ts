import { askCatalog } from '../access/catalogs.ts';
import { readAccount } from '../inputs/schemas.ts';
import { isScopeError } from '../inputs/scope-refusals.ts';
import type { Preset, ScopeDetails } from '../inputs/types.ts';
import { getOrMake } from '../scope/collections.ts';
import { ScopeCatalog } from '../scope/index.ts';
import { isForReading } from '../scope/words.ts';
import type { ServiceParts } from './parts.ts';

/** The name of the preset that each catalog has. */
const READ_ONLY = 'Read only';

/** Returns the scopes that an account may ask for. */
export async function scopesOf(
  { catalogs }: Pick<ServiceParts, 'catalogs'>,
  account: string,
): Promise<readonly string[]> {
  const catalog = await catalogs.of(readAccount(account));
  return catalog === undefined ? ['*:*/*'] : askCatalog(() => catalog.toArray());
}

/** Returns them with their words, their permissions and the presets. */
export async function scopeDetailsOf(
  { catalogs, rules }: Pick<ServiceParts, 'catalogs' | 'rules'>,
  account: string,
): Promise<ScopeDetails> {
  const catalog = await catalogs.of(readAccount(account));
  const { presets } = rules;
  if (catalog === undefined) return { scopes: [{ scope: '*:*/*' }], permissions: [], presets };
  return askCatalog(() => {
    // One of our own never changes, so that its details are the same for every call.
    if (!(catalog instanceof ScopeCatalog)) return detailsOf(catalog, presets);
    const ofService = getOrMake(known, presets, () => new WeakMap());
    return getOrMake(ofService, catalog, () => detailsOf(catalog, presets));
  });
}

/** By the presets of a service, and by its catalogs. */
const known = new WeakMap<readonly Preset[], WeakMap<ScopeCatalog, ScopeDetails>>();

function detailsOf(catalog: ScopeCatalog, presets: readonly Preset[]): ScopeDetails {
  const texts = catalog.toArray();
  // A catalog that a host implements, or that another version of this package made, may have no words.
  const { words, permissions }: Partial<ScopeCatalog> = catalog;
  const reading = texts.filter(isForReading);
  const all = presets.some(({ name }) => name.toLowerCase() === READ_ONLY.toLowerCase())
    ? presets
    : [...presets, { name: READ_ONLY, scopes: reading }];
  return {
    scopes: texts.map((scope) => ({ scope, ...words?.call(catalog, scope) })),
    permissions: permissions?.call(catalog) ?? [],
    presets: all.flatMap((preset) => {
      const scopes = expandKnown(catalog, preset.scopes);
      return scopes.length === 0 ? [] : { ...preset, scopes };
    }),
  };
}

/** Nothing, if a token could not hold that many. */
function expandKnown(catalog: ScopeCatalog, scopes: readonly string[]): readonly string[] {
  const found = scopes.filter((scope) => catalog.knows(scope));
  try {
    return found.length === 0 ? [] : catalog.expand(found).granted;
  } catch (error) {
    if (isScopeError(error)) return [];
    throw error;
  }
}
