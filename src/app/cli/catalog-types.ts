import type { ScopeCatalog } from '../../scope/index.ts';
import { usageError } from '../terminal/errors.ts';

/**
 * Writes a declaration file for a catalog: the types `Scope`, `Pattern` and `Catalog`, or
 * `ShopScope` and so on for the name `Shop`. The same catalog gives the same text.
 *
 * @throws {CliError} when the name cannot begin the name of a type
 * @example
 * writeFileSync('catalog.d.ts', catalogTypes(catalog));
 * // then: import type { Catalog } from './catalog.d.ts';
 * const typed = ScopeCatalog.from(entries) as Catalog;
 */
export function catalogTypes(catalog: ScopeCatalog, name = ''): string {
  if (!/^(?:[A-Za-z_$][\w$]*)?$/.test(name)) {
    throw usageError(`the name of the types must be an identifier, as "Shop", not "${name}"`);
  }
  const entries = catalog.toArray().map((entry) => `\n  | ${quoted(entry)}`);
  return `// Written by \`tokenwright catalog types\`; changes here are lost.
import type { CatalogPattern, TypedCatalog } from 'tokenwright/scope';

/** The scopes that exist. */
export type ${name}Scope =${entries.join('') || ' never'};

/** The catalog of these scopes. */
export type ${name}Catalog = TypedCatalog<${name}Scope>;

/** What may be asked for. */
export type ${name}Pattern = CatalogPattern<${name}Catalog>;
`;
}

function quoted(text: string): string {
  return `'${text.replace(/['\\]/g, '\\$&')}'`;
}
