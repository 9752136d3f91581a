import * as z from 'zod/mini';
import { MAX_LIFETIME_SECONDS } from '../../../bounds.ts';
import {
  generateKey,
  isTokenError,
  MemoryTokenStore,
  type Preset,
  TokenService,
} from '../../../index.ts';
import { once } from '../../../inputs/once.ts';
import { strict } from '../../../inputs/schemas.ts';
import type { ScopeCatalog, ScopeRequest } from '../../../scope/index.ts';
import { count } from '../../../text/wording.ts';
import { readCatalog } from '../../server/files/catalog-files.ts';
import { readPresets } from '../../server/files/preset-file.ts';
import { CliError, inputError, usageError } from '../../terminal/errors.ts';
import { parseMembers, readJson, readPart } from '../../terminal/inputs.ts';
import { columns, labeled, printable, wrap } from '../../terminal/layout.ts';
import { command, type Outcome } from '../command.ts';
import { findPreset } from '../permissions.ts';
import { GRANULARITY_FLAG } from './catalog.ts';
import { describeRequest, ROOT_NAME_FLAG, readRequest } from './request.ts';
import { reasonInWords } from './token-output.ts';

/** What a file says of one request. */
interface Rule {
  readonly scopes: readonly string[];
  /** As it is written. */
  readonly request: string;
  readonly need: ScopeRequest;
  readonly allowed: boolean;
}

/** A rule that does not hold. */
interface Difference {
  /** The number of the rule in its file, from 1. */
  readonly rule: number;
  readonly request: string;
  readonly expected: boolean;
  readonly allowed: boolean;
  readonly grantedBy?: string | undefined;
  readonly reason?: string | undefined;
  readonly smallest?: string | undefined;
  readonly summary?: string | undefined;
  readonly message: string;
}

const EXAMPLE =
  '{"scopes": ["GET:shop.example/*"], "request": "GET https://shop.example/orders", "allowed": true}';

/** Checks what scopes and presets allow. */
export const CATALOG_TEST = command({
  name: 'catalog test',
  operands: ['RULES'],
  summary: 'tests in CI what scopes and presets allow',
  about: `RULES is a JSON array of { preset | scopes, request, allowed }, such as
${EXAMPLE}.
For each rule, it issues a token in memory, and asks the service whether the token allows the request.
You see each rule that does not hold: by which scope the request is allowed, or why not, and the smallest
scope that would be enough.

A preset is one of --presets, or Read only, which every catalog has.`,
  flags: {
    catalog: {
      type: 'string',
      multiple: true,
      value: 'FILE',
      isRequired: true,
      help: 'the catalog, as for serve; repeatable',
    },
    granularity: GRANULARITY_FLAG,
    presets: { type: 'string', value: 'FILE', help: 'the presets, as for serve' },
    'root-name': ROOT_NAME_FLAG,
  },
  json: '[{ rule, request, expected, allowed, grantedBy?, reason?, smallest?, summary?, message }], the rules that do not hold; rule is the number in the file, from 1',
  exits: {
    0: 'all rules hold',
    1: 'a rule does not hold',
    2: 'the command line is wrong, or a file cannot be read or is wrong',
  },
  example: {
    call: 'catalog test rules.json --catalog shop.json',
    output: `rule 2  POST shop.example /orders
        expected allowed, but insufficient_scope: no scope of the token covers
        it; enough is POST:shop.example/orders$ (Create an order)`,
  },
  async run([path = ''], flags) {
    const { catalog, presets } = await asUnreadable(() => readFiles(flags));
    const tokens = new TokenService({
      store: new MemoryTokenStore(),
      keys: [generateKey()],
      prefix: 'tw',
      catalog,
      presets,
    });
    try {
      const all = (await tokens.scopeDetails('rules')).presets;
      const rules = await asUnreadable(() => readRules(path, all, flags['root-name']));
      return outcomeOf(rules, await differencesIn(rules, tokens));
    } finally {
      await tokens.close();
    }
  },
});

async function readFiles(flags: {
  readonly catalog?: readonly string[];
  readonly presets?: string;
}): Promise<{ readonly catalog: ScopeCatalog; readonly presets: readonly Preset[] }> {
  const catalog = await readCatalog(flags.catalog ?? [], flags);
  const rules = { maxTtl: MAX_LIFETIME_SECONDS, catalog };
  return { catalog, presets: readPresets(flags.presets, rules) };
}

/** In CI, a rule that does not hold must not look like a file that is missing. */
async function asUnreadable<Result>(read: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof CliError) throw usageError(error.message);
    if (error instanceof Error && 'code' in error && 'path' in error) {
      throw usageError(error.message);
    }
    throw error;
  }
}

const REQUEST_RULE =
  'request must be a method and a full URL, such as "GET https://shop.example/orders"';

/** A rule of the file. {@link readRules} reads its scopes and its request. */
const ruleSchema = once(() =>
  strict({
    preset: z.optional(z.string({ error: 'preset must be the name of a preset' })),
    scopes: z.optional(z.unknown()),
    request: z.string({ error: REQUEST_RULE }),
    allowed: z.boolean({ error: 'allowed must be true or false' }),
  }),
);

function readRules(
  path: string,
  presets: readonly Preset[],
  rootName: string | undefined,
): readonly Rule[] {
  const content = readJson(path);
  if (!Array.isArray(content) || content.length === 0) {
    throw inputError(`${path} must be a JSON array of rules, such as [${EXAMPLE}]`);
  }
  return content.map((given: unknown, index) => {
    const place = `${path}: rule ${index + 1}`;
    const { preset, scopes, request, allowed } = readPart(ruleSchema(), given, place, EXAMPLE);
    if ((preset === undefined) === (scopes === undefined)) {
      throw inputError(`${place} must have either preset or scopes`);
    }
    const listed =
      preset === undefined
        ? parseMembers(scopes, `${place}: scopes`).map(String)
        : findPreset(preset, presets, place, inputError).scopes;
    return { scopes: listed, request, need: needOf(request), allowed };

    function needOf(text: string): ScopeRequest {
      const [, method = '', url = ''] = /^(\S+) +(https?:\/\/\S+)$/.exec(text) ?? [];
      if (url !== '') return readRequest(method, url, rootName);
      throw inputError(`${place}: ${REQUEST_RULE}`);
    }
  });
}

async function differencesIn(
  rules: readonly Rule[],
  tokens: TokenService,
): Promise<readonly Difference[]> {
  const differences: Difference[] = [];
  for (const [index, rule] of rules.entries()) {
    const found = await differenceIn(rule, index + 1, tokens);
    if (found !== undefined) differences.push(found);
  }
  return differences;
}

async function differenceIn(
  { scopes, request, need, allowed: expected }: Rule,
  rule: number,
  tokens: TokenService,
): Promise<Difference | undefined> {
  const account = `rule ${rule}`;
  const about = { rule, request, expected };
  try {
    const { id } = await tokens.issue({ account, scopes });
    const explained = await tokens.explain(account, id, need);
    const { allowed, grantedBy, reason, smallest, summary } = explained;
    if (allowed === expected) return undefined;
    const named = summary === undefined ? '' : ` (${summary})`;
    const enough = smallest === undefined ? '' : `; enough is ${smallest}${named}`;
    const message = allowed
      ? `expected refused, but ${grantedBy} allows it${named}`
      : `expected allowed, but ${reason}: ${reasonInWords(reason ?? '')}${enough}`;
    return { ...about, allowed, grantedBy, reason, smallest, summary, message };
  } catch (error) {
    if (!isTokenError(error)) throw error;
    // A rule about scopes that nobody can have proves nothing, whatever it expects.
    const message = `the scopes cannot be granted: ${error.message}`;
    return { ...about, allowed: false, reason: error.code, message };
  }
}

const WIDTH = 70;

function outcomeOf(rules: readonly Rule[], differences: readonly Difference[]): Outcome {
  const rows = differences.flatMap(({ rule, message }) => {
    const { need } = rules[rule - 1] as Rule;
    return labeled(`rule ${rule}`, [describeRequest(need), ...wrap(printable(message), WIDTH)]);
  });
  const { length } = differences;
  const all = count(rules.length, 'rule');
  return {
    text: columns(rows),
    json: differences,
    notes:
      length === 0
        ? `${all}, all hold`
        : `${length} of ${all} ${length === 1 ? 'does' : 'do'} not hold`,
    isFailed: length > 0,
  };
}
