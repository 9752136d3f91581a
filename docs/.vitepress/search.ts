// What the search of the site knows beyond the words of the pages, and the questions that it has to answer.
import { globSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import MiniSearch, { type Options, type SearchOptions } from 'minisearch';
import { SERVE_SETTINGS, settingFacts } from '../../src/app/server/settings.ts';

/** Other words for what is under a heading. Where several pages share a word, all of them are found. */
const KEYWORDS: Readonly<Record<string, string>> = {
  '/quick-start': 'install installation getting started tutorial',
  '/guides/deploy': 'docker container image compose kubernetes k8s systemd deploy production',
  '/guides/transactions': 'transaction transactions prisma drizzle kysely orm query builder',
  '/guides/deploy#docker': 'docker container image',
  '/guides/deploy#kubernetes': 'kubernetes k8s',
  '/guides/keep-it-running#a-new-version': 'upgrade update new version migration',
  '/guides/keep-it-running#backups': 'backup restore dump',
  '/guides/run-the-service#health-checks': 'health check healthz liveness readiness probe',
  '/guides/monitor': 'monitoring observability operate metrics prometheus grafana logs',
  '/guides/monitor#health-checks': 'health check healthz readyz liveness readiness probe',
  // Twice, to come before the setting of that name.
  '/guides/monitor#metrics': 'metrics metrics prometheus openmetrics',
  '/guides/monitor#alerts': 'alert alerts alertmanager rules',
  '/guides/monitor#dashboard': 'dashboard grafana',
  '/guides/monitor#logs': 'logs json access log pino request id traceparent',
  '/guides/express': 'express middleware',
  '/guides/logging': 'metrics opentelemetry prometheus traces',
  '/service/settings': 'settings environment variables configuration options flags',
  '/service/commands': 'cli command line reference commands terminal',
  '/service/http': 'http reference rest api calls endpoints',
  '/reference/': 'library reference api exports',
  '/reference/http-guard#bearerGuard': 'bearerguard guard function',
  '/faq#how-do-i-rename-a-token': 'rename name label',
  '/faq#how-do-i-suspend-a-token-and-turn-it-on-again': 'suspend pause disable enable',
  '/faq#how-do-i-see-when-a-token-was-last-used': 'last used usage',
  '/faq#are-there-metrics': 'metrics prometheus counters',
  '/faq#are-there-webhooks': 'webhook webhooks notify',
  '/faq#how-do-i-list-all-tokens-of-all-accounts': 'list all tokens',
  '/faq#does-it-run-on-cloudflare-workers': 'cloudflare workers edge workerd',
  '/faq#does-it-run-in-docker-and-kubernetes': 'docker kubernetes k8s helm',
  '/faq#can-i-use-it-with-prisma-drizzle-or-kysely': 'prisma drizzle kysely orm',
  '/faq#can-i-issue-a-token-in-my-own-database-transaction':
    'transactions transaction commit rollback',
  '/faq#is-there-a-health-check': 'health check probe',
  '/faq#can-a-token-never-expire': 'never expire forever unlimited',
  '/faq#how-do-i-upgrade': 'upgrade update',
};

/** Questions of newcomers, each with the pages of which one has to come first. */
export const QUESTIONS: readonly (readonly [question: string, pages: RegExp])[] = [
  ['install', /^\/quick-start/],
  ['docker', /^\/(?:guides\/deploy|faq#does-it-run-in-docker)/],
  ['k8s', /^\/(?:guides\/deploy|faq#does-it-run-in-docker)/],
  ['kubernetes', /^\/(?:guides\/deploy|faq#does-it-run-in-docker)/],
  ['rename', /^\/faq#how-do-i-rename/],
  ['suspend', /^\/faq#how-do-i-suspend/],
  ['prisma', /^\/(?:guides\/transactions|faq#can-i-use-it-with-prisma)/],
  ['drizzle', /^\/(?:guides\/transactions|faq#can-i-use-it-with-prisma)/],
  ['webhook', /^\/faq#are-there-webhooks/],
  ['cloudflare', /^\/faq#does-it-run-on-cloudflare/],
  ['transactions', /^\/(?:guides\/transactions|faq#can-i-issue-a-token-in-my-own)/],
  [
    'health check',
    /^\/(?:guides\/monitor#health|guides\/run-the-service#health|faq#is-there-a-health)/,
  ],
  ['upgrade', /^\/(?:guides\/keep-it-running#a-new-version|faq#how-do-i-upgrade)/],
  ['settings', /^\/service\/settings/],
  ['TOKENWRIGHT_STORE', /^\/service\/settings#store$/],
  ['--reveal', /^\/service\/settings#reveal$/],
  ['CLI', /^\/service\/commands/],
  ['HTTP reference', /^\/service\/http/],
  ['metrics', /^\/(?:guides\/monitor|faq#are-there-metrics)/],
  ['prometheus', /^\/(?:guides\/monitor|faq#are-there-metrics)/],
  ['grafana', /^\/guides\/monitor/],
  ['last used', /^\/(?:guides\/usage|faq#how-do-i-see-when)/],
  ['middleware', /^\/(?:guides\/express|faq#is-there-middleware|reference\/http-middleware)/],
  ['express', /^\/guides\/express/],
  ['expressGuard', /^\/reference\/http-middleware#expressGuard/i],
  ['list all tokens', /^\/faq#how-do-i-list-all/],
  ['bearerGuard', /^\/reference\/http-guard#bearerGuard/],
  ['glossary', /^\/glossary/],
];

/** By the variables and the flags, since texts name many of them. */
const SETTINGS = new Map(
  SERVE_SETTINGS.map((name) => {
    const { flag, variable } = settingFacts(name);
    const [word = ''] = flag.split(' ');
    return [`/service/settings#${word.slice(2)}`, `${variable} ${word}`];
  }),
);

/** Words about a whole page are those of its first heading. */
function keywordsOf({ id, titles }: Readonly<Record<string, unknown>>): string {
  const place = String(id);
  const isFirst = Array.isArray(titles) && titles.length === 0;
  const page = isFirst ? KEYWORDS[place.replace(/#.*/, '')] : undefined;
  return page ?? KEYWORDS[place] ?? SETTINGS.get(place) ?? '';
}

/** For the index. It goes into the page as text, so its functions use nothing outside of them. */
const options: Options = {
  fields: ['title', 'titles', 'text', 'keywords'],
  storeFields: ['title', 'titles'],
  // Names such as TOKENWRIGHT_STORE and --reveal are found whole, too.
  tokenize: (text) => [
    ...text.split(/[\s\p{P}]+/u),
    ...(text.match(/[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|--[a-z]+(?:-[a-z]+)*/g) ?? []),
  ],
};

const searchOptions: SearchOptions = {
  fuzzy: 0.2,
  prefix: true,
  boost: { title: 4, keywords: 6, text: 2, titles: 1 },
};

/** The options of the local search. */
export const SEARCH = {
  miniSearch: {
    options: {
      ...options,
      /** Called where the index is made, never in the page. */
      extractField: (document: Readonly<Record<string, unknown>>, field: string) =>
        field === 'keywords' ? keywordsOf(document) : document[field],
    },
    searchOptions,
  },
};

/** The questions that the index of a built site answers with another page first. */
export async function wrongAnswers(dist: string): Promise<string[]> {
  const [file] = globSync('assets/chunks/@localSearchIndex*.js', { cwd: dist });
  if (file === undefined) throw new Error('the site has no index for its search');
  const { default: json } = await import(pathToFileURL(`${dist}/${file}`).href);
  const index = MiniSearch.loadJSON(json, options);
  return QUESTIONS.flatMap(([question, pages]) => {
    const [first] = index.search(question, searchOptions);
    return first !== undefined && pages.test(String(first.id))
      ? []
      : [`${question}: ${first?.id ?? 'nothing'}`];
  });
}
