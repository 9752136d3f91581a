import { ApiError } from '../../../http/client.ts';
import { tokenHandler } from '../../../http/index.ts';
import { type Preset, TokenService } from '../../../index.ts';
import { readAccount } from '../../../inputs/schemas.ts';
import type { ScopeCatalog } from '../../../scope/index.ts';
import { isId } from '../../../token/id.ts';
import type { Verdict } from '../../../token/record.ts';
import { keyFileOf, readUsableKeys } from '../../server/files/key-file.ts';
import { warn } from '../../server/logs/log.ts';
import { sharedStore } from '../../server/reload.ts';
import {
  type ServeSettings,
  type ServiceSettings,
  type StoreSettings,
  serviceOptions,
} from '../../server/settings.ts';
import { usageToRead } from '../../server/stores/counts.ts';
import { storeTarget, withStore } from '../../server/stores/open.ts';
import { inputError, withFlag } from '../../terminal/errors.ts';
import { type Connection, TokenClient, type Verification } from './client.ts';

interface LocalSettings
  extends StoreSettings,
    ServiceSettings,
    Pick<ServeSettings, 'keys' | 'usage'> {
  /** Absent if the value of a token is all the credentials. */
  readonly account: string | undefined;
  readonly catalog: ScopeCatalog | undefined;
  readonly presets: readonly Preset[];
  readonly showsUse: boolean;
}

/** Uses the tokens of an account in an existing store. */
export async function withLocalClient<Result>(
  settings: LocalSettings,
  use: (client: TokenClient) => Promise<Result>,
): Promise<Result> {
  const target = storeTarget(settings);
  const keys = readUsableKeys(keyFileOf(settings));
  return withStore(target, async (opened) => {
    const { account, catalog, presets } = settings;
    const isShown = settings.showsUse && settings.usage === 'on';
    const usage = isShown && (await usageToRead(opened, warn)) !== undefined;
    const store = sharedStore(opened.store);
    const parts = { store, usage, limits: true, keys, catalog, presets };
    const tokens = new TokenService({ ...serviceOptions(settings), ...parts });
    try {
      return await use(new TokenClient(connect(tokens, account, target.name)));
    } finally {
      // Closing writes the first use of a new value.
      await tokens.close();
    }
  });
}

/** The handler of a service in this process. Whoever can open the store needs no password. */
function connect(tokens: TokenService, given: string | undefined, storeName: string): Connection {
  const account = given === undefined ? '' : readAccount(given);
  let fault: unknown;
  const handler = tokenHandler({
    tokens,
    session: () => account,
    derivation: true,
    maxBodyBytes: Number.MAX_SAFE_INTEGER,
    onError: (error) => {
      fault = error;
    },
  });
  return {
    name: `${account} in ${storeName}`,
    send: (path, init) => {
      const headers = { ...init.headers, 'x-tokenwright': 'command' };
      return handler(new Request(`http://localhost${path}`, { ...init, headers }));
    },
    async idOf(operand) {
      if (isId(operand)) return operand;
      const found = await tokens.get(account, operand, { state: 'all' });
      if (found === undefined) throw new ApiError('not_found', '');
      return found.id;
    },
    toError: ({ code, message, details }) => {
      if (code === 'internal' || code === 'store_unavailable') return fault as Error;
      if (code === 'usage_not_recorded') return inputError(notRecorded(storeName));
      if (code === 'address_denied' || code === 'limit_exceeded') {
        return new ApiError('invalid_token', message);
      }
      // The person who runs the command has no query.
      return inputError(withFlag(message.replace(/^the query parameter /, ''), details.member));
    },
    verify: async (value, need, address) =>
      toVerification(await tokens.verify(value, need, { address })),
    bulk: {
      revoke: (createdBy) => tokens.revokeAll(account, { createdBy }),
      preview: (createdBy) => tokens.revokeAll(account, { createdBy, dryRun: true }),
    },
  };
}

function notRecorded(storeName: string): string {
  return `no uses are recorded beside ${storeName}: serve records them, unless it runs with --usage off (TOKENWRIGHT_USAGE)`;
}

function toVerification(verdict: Verdict): Verification {
  if (!verdict.ok) {
    const { reason, detail, needed } = verdict;
    // As with --url, where the command itself reads the request.
    if (reason === 'ambiguous_request') return { ok: false, reason: detail ?? reason };
    return {
      ok: false,
      reason,
      ...(detail !== undefined && { detail }),
      ...(needed !== undefined && { needed }),
    };
  }
  const { id, account, expiresAt } = verdict.token;
  const expire = Math.floor(expiresAt.getTime() / 1000);
  return { ok: true, grantedBy: verdict.grantedBy, token: { id, account, expire } };
}
