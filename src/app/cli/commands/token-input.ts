import { type JsonObject, type PatchInput, systemClock } from '../../../index.ts';
import type { Scope } from '../../../scope/index.ts';
import { describeRounded, parseJsonText, roundedNumberIn } from '../../../text/json.ts';
import { readVariable } from '../../server/settings.ts';
import { inputError, usageError } from '../../terminal/errors.ts';
import { readScopes, standardInput } from '../../terminal/inputs.ts';
import { readFlag, SECONDS, TIME } from '../../terminal/kinds.ts';
import type { NewToken, WrittenNeed } from '../account/client.ts';
import { checkWildcards } from '../account/connect.ts';
import type { AccountFlags } from '../account/flags.ts';
import type { Given } from '../command.ts';
import { readRequest } from './request.ts';
import { changesLimits, LIMIT_FLAGS, readLimits } from './token-limits.ts';

/** The durations that {@link SECONDS} reads, in words. */
export const TTL = 'seconds, or 30m, 12h, 90d';

export const SCOPE_FLAG = { type: 'string', multiple: true, value: 'LIST' } as const;
export const NAME_FLAG = { type: 'string', value: 'TEXT' } as const;

/** The instants that {@link TIME} reads, in words. */
const DATE = '2027-01-31, 2027-01-31T12:00:00Z or UNIX seconds';

const EXPIRE_FLAG = {
  type: 'string',
  value: 'DATE',
  help: `when the token expires, instead of --ttl: ${DATE}`,
} as const;

/** For {@link readValueOperand}. */
export const VALUE_FLAG = {
  type: 'string',
  value: 'VALUE',
  help: 'the value, or - for standard input. Prefer standard input or the variable: flags are visible in process lists',
} as const;

/** The flags of a new token, for {@link newTokenOf}. */
export const NEW_TOKEN_FLAGS = {
  scope: {
    ...SCOPE_FLAG,
    help: 'what the token may do: scopes separated by commas, a JSON file, or - for standard input; repeatable',
  },
  ttl: { type: 'string', value: 'TIME', help: `how long the token is valid: ${TTL}` },
  expire: EXPIRE_FLAG,
  name: { ...NAME_FLAG, help: 'a name for people' },
  purpose: { ...NAME_FLAG, help: 'what it is for, which never changes' },
  metadata: {
    type: 'string',
    value: 'JSON',
    help: 'your own data about the token: a JSON object',
  },
  ...LIMIT_FLAGS,
} as const;

export function newTokenOf(
  scopes: readonly Scope[],
  flags: Given<typeof NEW_TOKEN_FLAGS>,
): NewToken {
  refuseTwoExpiries(flags);
  return {
    scopes: scopes.map(String),
    ttlSeconds: readFlag(SECONDS, 'ttl', flags.ttl),
    expiresAt: readFlag(TIME, 'expire', flags.expire),
    name: flags.name,
    purpose: flags.purpose,
    metadata: readMetadataFlag(flags.metadata) ?? undefined,
    limits: readLimits(flags),
  };
}

/**
 * The flags of a change, for {@link readChange}, and for `withLimits`. An empty limit removes it.
 */
export const CHANGE_FLAGS = {
  scope: { ...SCOPE_FLAG, help: 'replace all scopes with these; repeatable' },
  'add-scope': { ...SCOPE_FLAG, help: 'add these scopes; repeatable' },
  'remove-scope': {
    ...SCOPE_FLAG,
    help: 'remove every scope that one of these covers; repeatable',
  },
  ttl: { type: 'string', value: 'TIME', help: `a new lifetime, from now: ${TTL}` },
  expire: { ...EXPIRE_FLAG, help: `a new expiry: ${DATE}` },
  name: { ...NAME_FLAG, help: "a new name; '' removes it" },
  metadata: {
    type: 'string',
    value: 'JSON',
    help: 'your own data about the token: a JSON object; null removes it',
  },
  ...LIMIT_FLAGS,
} as const;

export async function readScopeFlags(lists: readonly string[], flag: string): Promise<Scope[]> {
  const scopes: Scope[] = [];
  for (const list of lists) scopes.push(...(await readScopes(list, `--${flag}`)));
  return scopes;
}

type ChangeFlags = AccountFlags & Given<typeof CHANGE_FLAGS>;

export async function readChange(flags: ChangeFlags): Promise<PatchInput> {
  const { ttl, expire, name } = flags;
  refuseTwoExpiries(flags);
  const read = async (flag: 'scope' | 'add-scope' | 'remove-scope') =>
    flags[flag] && (await readScopeFlags(flags[flag], flag));
  const scopes = await read('scope');
  const added = await read('add-scope');
  checkWildcards([...(scopes ?? []), ...(added ?? [])], flags);
  const change: PatchInput = {
    scopes: scopes?.map(String),
    addScopes: added?.map(String),
    removeScopes: (await read('remove-scope'))?.map(String),
    expiresAt: expiryOf(ttl, expire),
    name: name === '' ? null : name,
    metadata: readMetadataFlag(flags.metadata),
  };
  const isChange = Object.values(change).some((member) => member !== undefined);
  if (isChange || changesLimits(flags)) return change;
  throw usageError(
    'nothing to change: give at least one field; see tokenwright token modify --help',
  );
}

function refuseTwoExpiries({ ttl, expire }: { readonly ttl?: string; readonly expire?: string }) {
  if (ttl === undefined || expire === undefined) return;
  throw usageError('--ttl and --expire both set the expiry: give only one of them');
}

function expiryOf(ttl: string | undefined, expire: string | undefined): Date | undefined {
  const seconds = readFlag(SECONDS, 'ttl', ttl);
  if (seconds === undefined) return readFlag(TIME, 'expire', expire);
  return new Date(systemClock.now().getTime() + seconds * 1000);
}

function readMetadataFlag(text: string | undefined): JsonObject | null | undefined {
  if (text === undefined) return undefined;
  const toError = () => usageError('--metadata must be a JSON object, such as {"team":"web"}');
  let value: unknown;
  try {
    value = parseJsonText(text);
  } catch {
    throw toError();
  }
  if (typeof value !== 'object' || Array.isArray(value)) throw toError();
  const rounded = roundedNumberIn(text);
  if (rounded !== undefined) throw usageError(`--metadata: ${describeRounded(rounded)}`);
  return value as JsonObject | null;
}

export async function readIdOperand(operand: string): Promise<string> {
  if (operand !== '-') return operand;
  const id = (await standardInput()).trim();
  if (id !== '') return id;
  throw inputError('standard input is empty: it must contain the id of a token');
}

export async function readValueOperand(flag: string | undefined): Promise<string> {
  const given = flag === '-' ? undefined : (flag ?? readVariable('TOKENWRIGHT_TOKEN'));
  if (given === '') throw usageError('--token is empty: it must contain the value of a token');
  if (given !== undefined) return given;
  if (process.stdin.isTTY) {
    throw usageError('a value is required: on standard input, or in TOKENWRIGHT_TOKEN');
  }
  const value = (await standardInput()).trim();
  if (value !== '') return value;
  throw inputError('standard input is empty: it must contain the value of a token');
}

export function readWrittenNeed(
  method: string | undefined,
  url: string | undefined,
  flags: { readonly scope?: string; readonly 'root-name'?: string },
): WrittenNeed {
  const { scope } = flags;
  if (
    (scope === undefined) !== (url !== undefined) ||
    (scope !== undefined) === (method !== undefined)
  ) {
    throw usageError(
      'either <METHOD> and <URL> or --scope is required; see the --help of this command',
    );
  }
  if (scope !== undefined) return { scope };
  return readRequest(method ?? '', url ?? '', flags['root-name']);
}
