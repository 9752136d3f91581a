import { getUnixTime } from 'date-fns/getUnixTime';
import { isTokenError } from '../../errors.ts';
import type { ScopeCatalog } from '../../scope/index.ts';
import { TokenService } from '../../service.ts';
import type { Token, Verdict } from '../../token.ts';
import { keyFile, readKeys, usableKeys } from '../key-file.ts';
import {
  type ServeSettings,
  type ServiceSettings,
  type StoreSettings,
  serviceOptions,
} from '../settings.ts';
import { storeTarget, withStore } from '../stores/open.ts';
import { listAll, NotFound, type TokenClient, type Verification } from './index.ts';
import { type TokenJson, toTokenJson, withoutValue } from './token-json.ts';

const PAGE_TOKENS = 1000;

interface LocalSettings extends StoreSettings, ServiceSettings, Pick<ServeSettings, 'keys'> {
  readonly account: string;
  readonly catalog: ScopeCatalog | undefined;
}

/** Uses the tokens of an account in an existing store. */
export async function withLocalClient<Result>(
  settings: LocalSettings,
  use: (client: TokenClient) => Promise<Result>,
): Promise<Result> {
  const target = storeTarget(settings);
  const path = settings.keys ?? keyFile(settings.data);
  const keys = usableKeys(readKeys(path), path);
  return withStore(target, ({ store }) => {
    const { account, catalog } = settings;
    const tokens = new TokenService({ ...serviceOptions(settings), store, keys, catalog });
    return use(localClient(tokens, account, target.name));
  });
}

function localClient(tokens: TokenService, account: string, storeName: string): TokenClient {
  return {
    name: `${account} in ${storeName}`,
    issue: async (token) => toTokenJson(await tokens.issue({ ...token, account })),
    list: ({ limit, ...filter }) =>
      listAll(limit, PAGE_TOKENS, async (size, cursor) => {
        const page = await tokens.list({ account, ...filter, limit: size, cursor });
        return { tokens: page.tokens.map(toShown), cursor: page.cursor };
      }),
    async get(id) {
      const found = await tokens.get(account, id);
      if (found === undefined) throw new NotFound();
      return toShown(found);
    },
    patch: async (id, change, options) =>
      toShown(await orNotFound(tokens.patch(account, id, change, options))),
    async tryPatch(id, change, options) {
      const conditions = { ...options, dryRun: true };
      const changed = await orNotFound(tokens.patch(account, id, change, conditions));
      return { ...toShown(changed), diff: changed.diff ?? { added: [], removed: [] } };
    },
    async revoke(id, options) {
      if (!(await tokens.revoke(account, id, options))) throw new NotFound();
    },
    revokeAll: () => tokens.revokeAll(account),
    rotate: async (id, options) =>
      toTokenJson(await orNotFound(tokens.rotate(account, id, options))),
    verify: async (value, need) => toVerification(await tokens.verify(value, need)),
  };
}

function toShown(token: Token): TokenJson {
  return withoutValue(toTokenJson(token));
}

async function orNotFound<Result>(call: Promise<Result>): Promise<Result> {
  try {
    return await call;
  } catch (error) {
    throw isTokenError(error) && error.code === 'not_found' ? new NotFound() : error;
  }
}

function toVerification(verdict: Verdict): Verification {
  if (!verdict.ok) {
    const { reason, detail, needed } = verdict;
    return { ok: false, reason: detail ?? reason, ...(needed !== undefined && { needed }) };
  }
  const { id, account, expiresAt } = verdict.token;
  return {
    ok: true,
    grantedBy: verdict.grantedBy,
    token: { id, account, expire: getUnixTime(expiresAt) },
  };
}
