import type { TokenLimits } from '../../../index.ts';
import { usageError } from '../../terminal/errors.ts';
import { quote } from '../../terminal/inputs.ts';
import { printable } from '../../terminal/layout.ts';
import type { NewToken, TokenClient } from '../account/client.ts';
import { catalogPaths, checkWildcards, serviceUrl } from '../account/connect.ts';
import type { AccountFlags } from '../account/flags.ts';
import type { Given } from '../command.ts';
import { findPermission, findPreset } from '../permissions.ts';
import { type LIMIT_FLAGS, readLimits } from './token-limits.ts';

/** The flags that stand for scopes, for {@link grantOf}. */
export const GRANT_FLAGS = {
  permission: {
    type: 'string',
    multiple: true,
    value: 'TAG:LEVEL',
    help: 'what the token may do, as a permission of the catalog: issues:read or issues:write, which includes read; with @HOST if several hosts have the tag, as issues@api.github.com:read; repeatable',
  },
  preset: {
    type: 'string',
    value: 'NAME',
    help: 'a named grant of the service, or of --presets: its scopes, lifetime and limits. Your own flags replace its members; --scope and --permission replace its scopes',
  },
} as const;

type GrantFlags = AccountFlags & Given<typeof GRANT_FLAGS> & Given<typeof LIMIT_FLAGS>;

interface Asked {
  readonly permission: string;
  readonly level: 'read' | 'write';
}

/**
 * Reads the permissions that a command asks for.
 *
 * @throws {CliError} also if nothing says what the token may do, or a store has no catalog to look into
 */
export function readGrant(
  flags: GrantFlags & { readonly scope?: readonly string[] },
): readonly Asked[] {
  const asked = (flags.permission ?? []).map(readPermission);
  if (asked.length > 0 && serviceUrl(flags) === undefined && catalogPaths(flags).length === 0) {
    throw usageError('--permission needs --catalog, since a store has no catalog of its own');
  }
  if (asked.length > 0 || flags.preset !== undefined || flags.scope !== undefined) return asked;
  throw usageError(
    '--scope, --permission or --preset is required; see tokenwright token issue --help',
  );
}

function readPermission(text: string): Asked {
  const [, permission, level] = /^(.+):(read|write)$/is.exec(text) ?? [];
  if (permission === undefined) {
    throw usageError(
      `--permission must be a tag and a level, such as issues:read or issues:write; got ${quote(printable(text))}`,
    );
  }
  return { permission, level: level?.toLowerCase() === 'read' ? 'read' : 'write' };
}

/**
 * Completes a token by the permissions and the preset that a command asks for. They become the same scopes
 * that a person could have written.
 */
export async function grantOf(
  client: TokenClient,
  token: NewToken,
  { asked, flags }: { readonly asked: readonly Asked[]; readonly flags: GrantFlags },
): Promise<NewToken> {
  if (asked.length === 0 && flags.preset === undefined) return token;
  const { permissions = [], presets = [] } = await client.choices();
  const scopes = asked.flatMap(({ permission, level }) => {
    const found = findPermission(permission, permissions, '--permission');
    if (found[level].length > 0) return found[level];
    throw usageError(
      `--permission: nothing of ${quote(printable(permission))} only reads; write ${printable(permission)}:write`,
    );
  });
  const own = [...new Set([...token.scopes, ...scopes])];
  if (flags.preset === undefined) return { ...token, scopes: own };
  const preset = findPreset(flags.preset, presets, '--preset', usageError);
  checkWildcards(preset.scopes, flags);
  const { ttlSeconds = token.expiresAt === undefined ? preset.ttl : undefined } = token;
  const limits: TokenLimits | undefined = readLimits(flags, preset.limits);
  return { ...token, scopes: own.length > 0 ? own : preset.scopes, ttlSeconds, limits };
}
