import { MAX_WORDS_LENGTH } from './bounds.ts';
import { getOrMake } from './collections.ts';
import { type Scope, toScope } from './grammar.ts';

/**
 * What people call an endpoint. Words explain and never decide. They become plain text: control characters
 * and marks that change the direction of text are removed, and text is cut after 200 characters.
 */
export interface EndpointWords {
  /** What it does, in one line, such as `List repository issues`. */
  readonly summary?: string | undefined;
  /** The resource that it belongs to, such as `issues`. */
  readonly tag?: string | undefined;
  /** A name for each `{}` of its path, from the left, such as `['owner', 'repo']`. */
  readonly segments?: readonly string[] | undefined;
  /** Whether new programs should avoid it. */
  readonly deprecated?: boolean | undefined;
  /** What programs call it, such as `issues/list-for-repo`. */
  readonly operationId?: string | undefined;
}

/** The words of an entry: those of its first operation, and of all. */
export interface ScopeWords extends EndpointWords {
  /** The words of each operation that the entry stands for; mostly one. */
  readonly operations: readonly EndpointWords[];
}

/** An entry of a catalog with its words. If it stands for several operations, list it once for each. */
export interface WordedScope extends EndpointWords {
  /** The entry. */
  readonly scope: Scope | string;
}

/** The words of entries: those of an operation, or a list if an entry stands for several. */
export type WordsByScope = ReadonlyMap<string, EndpointWords | readonly EndpointWords[]>;

/** The levels of access that a catalog offers to a resource. */
export interface PermissionOption {
  /** What people see, such as `Issues`. */
  readonly name: string;
  /** What the resource is; plain text, cut after 200 characters. */
  readonly description?: string | undefined;
  /** The host, if it tells apart resources of the same name. */
  readonly domain?: string | undefined;
  /**
   * The scopes of each level, which may have wildcards. `write` includes `read`. Scopes that overlap no entry
   * of the catalog are left out, so that catalogs of several accounts can share one list.
   */
  readonly levels: {
    readonly read?: readonly (Scope | string)[] | undefined;
    readonly write?: readonly (Scope | string)[] | undefined;
  };
}

/** A resource, and the scopes of each level of access to it. */
export interface Permission {
  /** The name of the resource. */
  readonly tag: string;
  /** What the resource is. */
  readonly description?: string | undefined;
  /** The host; absent for a permission that you defined without one. */
  readonly domain?: string | undefined;
  /** The scopes that only read. In canonical order; may be empty. */
  readonly read: readonly string[];
  /** All scopes of the resource, also those of `read`. In canonical order; never empty. */
  readonly write: readonly string[];
}

/** Control characters, line ends and marks of direction. */
const UNSHOWN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_C}]+/gu;

/** Makes one line of plain text. `undefined` for other values, and if nothing is left. */
export function plainText(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  return value.slice(0, MAX_WORDS_LENGTH).replace(UNSHOWN, ' ').trim() || undefined;
}

/** Reads an entry with words, each member once. Anything else is an entry as it is. */
export function readEntry(member: unknown): {
  readonly scope: unknown;
  readonly words?: EndpointWords;
} {
  try {
    const { scope, summary, tag, segments, deprecated, operationId } = member as WordedScope;
    if (scope === undefined) return { scope: member };
    const words = {
      summary: plainText(summary),
      tag: plainText(tag),
      segments: segments && Array.from(segments, (name) => plainText(name) ?? ''),
      deprecated: deprecated === true || undefined,
      operationId: plainText(operationId),
    };
    return { scope, words };
  } catch {
    return { scope: member };
  }
}

/** A permission, before it is matched against the entries. */
export interface Resource extends Pick<Permission, 'tag' | 'domain' | 'description'> {
  readonly read: readonly Scope[];
  readonly write: readonly Scope[];
}

export function readPermission({
  name,
  description,
  domain,
  levels: { read = [], write = [] },
}: PermissionOption): Resource {
  return {
    tag: plainText(name) ?? '',
    description: plainText(description),
    domain,
    read: read.map(toScope),
    write: write.map(toScope),
  };
}

/** Whether a scope, as a text, belongs to what only reads. */
export function isForReading(scope: string): boolean {
  return /^(?:GET|HEAD):/.test(scope);
}

/** Groups operations by host and tag, in their order. One without a tag is under the first literal of its path. */
export function resourcesOf(
  operations: Iterable<{
    readonly scope: Scope;
    readonly tag?: string | undefined;
    readonly description?: string | undefined;
  }>,
): Resource[] {
  const groups = new Map<string, Resource & { readonly read: Scope[]; readonly write: Scope[] }>();
  for (const { scope, tag = firstLiteral(scope), description } of operations) {
    const { domain } = scope;
    const make = () => ({ tag, domain, description, read: [], write: [] });
    const { read, write } = getOrMake(groups, `${domain}/${tag}`, make);
    (isForReading(scope.toString()) ? read : write).push(scope);
  }
  return [...groups.values()];
}

function firstLiteral({ path }: Scope): string {
  return (
    path
      .replace(/\$$/, '')
      .split('/')
      .find((segment) => segment !== '{}') || '/'
  );
}
