import { describeScopes, type HeldPermission } from '../../../../scope/describe.ts';
import { ScopeCatalog, ScopeSet } from '../../../../scope/index.ts';
import type { Choices } from '../api.ts';
import { isReading } from './tree.ts';

/** Made once for the choices of an account: a catalog of thousands takes time. */
const catalogs = new WeakMap<Choices, { readonly catalog: ScopeCatalog | undefined }>();

/** The catalog of choices; `undefined` without one: such a service lists scopes with wildcards. */
export function catalogOf(choices: Choices): ScopeCatalog | undefined {
  const known = catalogs.get(choices);
  if (known !== undefined) return known.catalog;
  const catalog = readCatalog(choices);
  catalogs.set(choices, { catalog });
  return catalog;
}

function readCatalog({ scopes }: Choices): ScopeCatalog | undefined {
  try {
    return ScopeCatalog.from(scopes.map(({ scope }) => scope));
  } catch {
    return undefined;
  }
}

/** The scopes that the service would grant; none while these cannot be granted. */
export function grantedOf(choices: Choices, scopes: readonly string[]): readonly string[] {
  try {
    const catalog = catalogOf(choices);
    // A service without a catalog keeps scopes as they are.
    if (catalog === undefined) return ScopeSet.from(scopes).toArray();
    return catalog.expand(scopes).granted;
  } catch {
    return [];
  }
}

/** What scopes would allow, in numbers. */
export interface Rights {
  readonly permissions: readonly HeldPermission[];
  /** How many endpoints, or scopes of a service without a catalog. */
  readonly endpoints: number;
  readonly isReadOnly: boolean;
}

export function rightsOf(choices: Choices, scopes: readonly string[]): Rights {
  const granted = ScopeSet.from(grantedOf(choices, scopes));
  const { permissions } = describeScopes(granted, { permissions: () => choices.permissions });
  return {
    permissions,
    endpoints: granted.size,
    isReadOnly: [...granted].every((scope) => isReading({ scope })),
  };
}
