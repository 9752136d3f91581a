import { getUnixTime } from 'date-fns/getUnixTime';
import { isTokenError } from '../../../errors.ts';
import { toWire, toWireWithUse } from '../../../http/wire.ts';
import { toWireAdvice, toWireFinding, toWireUsage } from '../../../http/wire-reports.ts';
import type { ScopeCatalog } from '../../../scope/index.ts';
import { TokenService } from '../../../service.ts';
import type { Token, Verdict } from '../../../token/record.ts';
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
import { type CliError, inputError } from '../../terminal/errors.ts';
import { InvalidValue, listAll, NotFound, type TokenClient, type Verification } from './index.ts';
import { type TokenJson, toTokenJson, toUsedTokenJson, withoutValue } from './token-json.ts';

const PAGE_TOKENS = 1000;

interface LocalSettings
  extends StoreSettings,
    ServiceSettings,
    Pick<ServeSettings, 'keys' | 'usage'> {
  readonly account: string;
  readonly catalog: ScopeCatalog | undefined;
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
    const { account, catalog } = settings;
    const isShown = settings.showsUse && settings.usage === 'on';
    const usage = isShown && (await usageToRead(opened, warn)) !== undefined;
    const store = sharedStore(opened.store);
    const options = { ...serviceOptions(settings), store, usage, limits: true, keys, catalog };
    const tokens = new TokenService(options);
    try {
      return await use(localClient(tokens, account, target.name));
    } finally {
      // Closing writes the first use of a new value.
      await tokens.close();
    }
  });
}

function localClient(tokens: TokenService, account: string, storeName: string): TokenClient {
  return {
    name: `${account} in ${storeName}`,
    issue: async (token) => toTokenJson(await tokens.issue({ ...token, account })),
    derive: async (value, token) =>
      toTokenJson(await unlessValueIsInvalid(tokens.derive(value, token))),
    ...readsOf(tokens, account, storeName),
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
    cancelRotation: async (id, options) =>
      toShown(await orNotFound(tokens.rotate(account, id, { ...options, cancel: true }))),
    verify: async (value, need, address) =>
      toVerification(await tokens.verify(value, need, { address })),
  };
}

/** The methods that only read. */
function readsOf(
  tokens: TokenService,
  account: string,
  storeName: string,
): Pick<TokenClient, 'list' | 'get' | 'usage' | 'advise' | 'review' | 'explain'> {
  const toRead = (token: Token) =>
    tokens.recordsUsage ? withoutValue(toUsedTokenJson(token)) : toShown(token);
  return {
    list: ({ limit, ...filter }) =>
      listAll(limit, PAGE_TOKENS, async (size, cursor) => {
        const page = await tokens.list({ account, ...filter, limit: size, cursor });
        return { tokens: page.tokens.map(toRead), cursor: page.cursor };
      }),
    async get(id, options) {
      const found = await tokens.get(account, id, options);
      if (found === undefined) throw new NotFound();
      return toRead(found);
    },
    async usage(id) {
      if (!tokens.recordsUsage) throw notRecorded(storeName);
      const usage = await tokens.usage(account, id);
      if (usage === undefined) throw new NotFound();
      return toWireUsage(usage);
    },
    async advise(id, options) {
      if (!tokens.recordsUsage) throw notRecorded(storeName);
      const advice = await tokens.advise(account, id, options);
      if (advice === undefined) throw new NotFound();
      return toWireAdvice(advice);
    },
    async *review(days) {
      const shown = tokens.recordsUsage ? toWireWithUse : toWire;
      for await (const finding of tokens.review({ account, ...days })) {
        yield { ...toWireFinding(finding, shown) };
      }
    },
    async explain(id, need) {
      const explanation = await tokens.explain(account, id, need);
      if (explanation.reason === 'unknown') throw new NotFound();
      return explanation;
    },
  };
}

function notRecorded(storeName: string): CliError {
  return inputError(
    `no uses are recorded beside ${storeName}: serve records them, unless it runs with --usage off (TOKENWRIGHT_USAGE)`,
  );
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

async function unlessValueIsInvalid<Result>(call: Promise<Result>): Promise<Result> {
  try {
    return await call;
  } catch (error) {
    throw isTokenError(error) && error.code === 'invalid_token' ? new InvalidValue() : error;
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
