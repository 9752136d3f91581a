import { permissionName } from '../../scope/describe.ts';
import type { Permission } from '../../scope/index.ts';
import { nearestName } from '../../scope/nearest.ts';
import { type CliError, usageError } from '../terminal/errors.ts';
import { quote } from '../terminal/inputs.ts';
import { printable } from '../terminal/layout.ts';

type Named = Pick<Permission, 'tag' | 'domain'>;

/** How many names a message lists if none is similar. */
const MAX_LISTED = 8;

/**
 * Finds a permission by its tag or by its name for people, in upper or lower case, with `@` and its host if
 * several hosts have the tag.
 *
 * @param flag names the origin of the text in messages
 * @throws {CliError} if there is none or more than one, naming those that there are
 */
export function findPermission<One extends Named>(
  text: string,
  permissions: readonly One[],
  flag: string,
): One {
  const [, tag = '', domain = ''] = /^(.+)@([^@]+)$/s.exec(text) ?? [];
  const onHost = permissions.filter((one) => one.domain === domain.toLowerCase());
  const found = [...matches(text, permissions), ...matches(tag, onHost)];
  const [first, second] = found;
  if (first === undefined) throw usageError(`${flag}: ${unknown(text, permissions)}`);
  if (second === undefined) return first;
  const names = found.map((one) => addressOf(one)).join(' or ');
  throw usageError(`${flag}: ${quote(printable(text))} can be several permissions; write ${names}`);
}

/**
 * Finds a preset by its name, in upper or lower case.
 *
 * @param place names the origin of the name in messages
 * @throws {CliError} made by `toError`, if there is none, naming those that there are
 */
export function findPreset<One extends { readonly name: string }>(
  name: string,
  presets: readonly One[],
  place: string,
  toError: (message: string) => CliError,
): One {
  const folded = name.toLowerCase();
  const found = presets.find((preset) => preset.name.toLowerCase() === folded);
  if (found !== undefined) return found;
  const names = presets.map((preset) => quote(printable(preset.name)));
  const there = names.length === 1 ? 'there is' : 'there are';
  const missing = `there is no preset ${quote(printable(name))}`;
  throw toError(`${place}: ${missing}; ${there} ${names.join(', ') || 'none'}`);
}

/** Those of a tag. Only if there are none, those that differ in case or have such a name. */
function matches<One extends Named>(text: string, permissions: readonly One[]): readonly One[] {
  const exact = permissions.filter(({ tag }) => tag === text);
  if (exact.length > 0) return exact;
  const folded = text.toLowerCase();
  const isMeant = (one: One) =>
    one.tag.toLowerCase() === folded || permissionName(one, [one]).toLowerCase() === folded;
  return permissions.filter(isMeant);
}

function addressOf({ tag, domain }: Named): string {
  return printable(domain === undefined ? tag : `${tag}@${domain}`);
}

function unknown(text: string, permissions: readonly Named[]): string {
  const there = `there is no permission ${quote(printable(text))}`;
  const tags = [...new Set(permissions.map(({ tag }) => tag))];
  const meant = nearestName(text, tags);
  if (meant !== undefined) return `${there}; did you mean ${printable(meant)}?`;
  if (tags.length > MAX_LISTED) {
    return `${there}; tokenwright catalog list --words shows the ${tags.length} tags of a catalog`;
  }
  return `${there}; there ${tags.length === 1 ? 'is' : 'are'} ${tags.map(printable).join(', ') || 'none'}`;
}
