// What the search of the site knows beyond the words of the pages, and the questions that it has to answer.
import { globSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import type { Plugin } from 'vite';
import type { MarkdownEnv, MarkdownRenderer } from 'vitepress';
import { SERVE_SETTINGS, settingFacts } from '../../src/app/server/settings.ts';
import ranking, { OPTIONS } from './ranking.ts';

/** Other words for what is under a heading. Where several pages share a word, all of them are found. */
const KEYWORDS: Readonly<Record<string, string>> = {
  '/quick-start': 'install installation getting started tutorial',
  '/concepts/scope': 'wildcard pattern regex glob permission read only',
  '/concepts/token': 'token access opaque look format',
  '/concepts/token#methods': 'verify issue list methods functions',
  '/concepts/token#lifetime': 'how long valid live duration ttl',
  '/guides/usage': 'count counts requests often statistics',
  '/guides/many-nodes#checklist': 'resource server verify only keys',
  '/guides/from-openapi#issue-a-token-for-one-resource': 'only one repository project',
  '/guides/limits':
    'rate limit quota throttle too many requests 429 one-time single use ip allowlist whitelist',
  '/guides/token-exchange':
    'oauth rfc 8693 rfc 8414 authorization server on behalf of actor act audience',
  '/guides/agents':
    'agent ai llm approve approval request elevate elevation step up device flow rfc 8628 consent human in the loop',
  '/security/agents': 'prompt injection confused deputy phishing agent ai',
  '/guides/derive-tokens': 'delegate delegation agent ai llm mcp child',
  '/guides/rotate-values#change-your-mind': 'undo cancel rotation',
  '/guides/many-nodes': 'cluster replicas servers instances share scale',
  '/guides/choose-a-store#your-own': 'custom store adapter',
  '/guides/multi-tenant': 'tenant organization team workspace',
  '/guides/deploy#rolling-restart': 'load balancer zero downtime rolling update',
  '/comparison': 'alternative versus vs oauth keycloak auth0 passport',
  '/comparison#what-a-check-costs': 'performance benchmark speed latency',
  '/guides/console#security': 'csrf xsrf clickjacking csp',
  '/errors#cross_site': 'csrf xsrf',
  '/faq#can-i-use-it-from-python-go-java-php-or-another-language':
    'golang rust ruby dotnet csharp client sdk',
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
  '/guides/express': 'express middleware protect route',
  '/guides/logging#opentelemetry': 'metrics opentelemetry prometheus traces tracing',
  '/service/settings': 'settings environment variables configuration options flags',
  '/service/commands': 'cli command line reference commands terminal',
  '/service/commands#help': 'completion bash zsh fish shell',
  '/service/http': 'http reference rest api calls endpoints',
  '/reference/': 'library reference api exports',
  '/reference/http-guard#bearerGuard': 'bearerguard guard function',
  '/faq#how-do-i-rename-a-token': 'rename name label',
  '/faq#why-do-i-get-401-or-403': 'unauthorized forbidden rejected denied invalid stopped working',
  '/faq#how-do-i-suspend-a-token-and-turn-it-on-again':
    'suspend pause disable enable block temporarily',
  '/faq#how-do-i-see-when-a-token-was-last-used': 'last used usage',
  '/faq#are-there-metrics': 'metrics prometheus counters',
  '/faq#are-there-webhooks': 'webhook webhooks notify notified revoked expired',
  '/security/limits#of-a-token': 'maximum number most tokens account quota',
  '/security/threat-model#passwords-are-guessed': 'brute force attack prevent',
  '/faq#does-it-run-on-cloudflare-workers': 'cloudflare workers edge workerd',
  '/faq#does-it-run-in-docker-and-kubernetes': 'docker kubernetes k8s helm',
  '/faq#can-i-use-it-with-prisma-drizzle-or-kysely': 'prisma drizzle kysely orm',
  '/faq#can-i-issue-a-token-in-my-own-database-transaction':
    'transactions transaction commit rollback',
  '/faq#is-there-a-health-check': 'health check probe',
  '/faq#can-a-token-never-expire': 'never expire forever unlimited',
  '/faq#how-do-i-upgrade': 'upgrade update',
};

/** Questions as people type them, each with the pages of which one has to come first. */
export const QUESTIONS: readonly (readonly [question: string, pages: RegExp])[] = [
  ['how do I rotate a token', /^\/(?:guides\/rotate-values|concepts\/token#rotate)/],
  ['how to delete a token', /^\/faq#how-do-i-revoke/],
  ['webhook when token expires', /^\/faq#(?:are-there-webhooks|how-do-i-get-mail)/],
  ['nextjs middleware', /^\/(?:guides\/others#next|faq#is-there-middleware)/],
  ['cli password', /^\/faq#which-password/],
  ['github actions', /^\/faq#.*github-actions/],
  ['two factor', /^\/faq#.*two-factor/],
  ['terraform', /^\/faq#.*terraform/],
  ['python', /^\/faq#.*python/],
  ['golang', /^\/faq#.*python-go/],
  ['load balancer rolling restart', /^\/guides\/deploy#rolling-restart/],
  ['rate limit', /^\/guides\/limits/],
  ['single use token', /^\/guides\/limits/],
  ['limit token to ip address', /^\/guides\/limits/],
  ['cors', /^\/faq#.*cors/],
  ['admin list accounts', /^\/faq#how-do-i-list-all/],
  ['revoke all tokens of a user', /^\/faq#how-do-i-revoke/],
  ['restore backup', /^\/guides\/keep-it-running#back/],
  ['nginx', /^\/guides\/(?:gateway|deploy)/],
  ['token leaked on github', /^\/guides\/leaks/],
  ['what happens when the database is down', /^\/guides\/many-nodes#when-the-store-is-down/],
  ['why do I get 403', /^\/faq#why-do-i-get-401-or-403/],
  ['change the expiry of a token', /^\/(?:faq#how-do-i-change-when|concepts\/token#lifetime)/],
  ['how long does a token live', /^\/concepts\/token#lifetime/],
  ['wildcard subdomain', /^\/concepts\/scope/],
  ['unit tests without a database', /^\/guides\/testing/],
  ['logo and colors of the console', /^\/guides\/console#name-and-look/],
  ['translate the console to german', /^\/guides\/console#in-your-language/],
  ['tokens for ai agents', /^\/guides\/agents/],
  ['I lost the admin password', /^\/faq#i-lost-the-password/],
  ['store extra data on a token', /^\/faq#how-do-i-store-my-own-data/],
  ['move from sqlite to postgres', /^\/guides\/keep-it-running#move/],
  ['api key for each customer', /^\/(?:faq#how-do-i-give-each|guides\/multi-tenant)/],
  ['count requests per token', /^\/(?:guides\/usage|faq#how-do-i-see-when)/],
  ['add a scope to an existing token', /^\/faq#how-do-i-change-the-scopes/],
  ['delete expired tokens', /^\/faq#how-do-i-delete-expired/],
  ['use it with next.js', /^\/(?:guides\/others#next|faq#is-there-middleware)/],
  ['how do I protect a route', /^\/guides\/express/],
  ['prevent brute force', /^\/security\/threat-model#passwords/],
  ['get notified when a token is revoked', /^\/faq#are-there-webhooks/],
  ['maximum number of tokens per account', /^\/(?:security\/limits|service\/settings#max-tokens)/],
  ['shell completion', /^\/service\/commands#help/],
  ['what does a token look like', /^\/concepts\/token/],
  ['token for only one repository', /^\/guides\/from-openapi#issue/],

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

/**
 * Pages with many small headings, of which each second heading and what is below it are one answer. Each
 * setting is an answer of its own.
 */
const LISTS = /^(?:reference\/|service\/(?!settings)|errors)/;

/** The options of the local search, for the index. The page itself uses `ranking.ts` alone. */
export const SEARCH = {
  miniSearch: {
    options: {
      ...OPTIONS,
      extractField: (document: Readonly<Record<string, unknown>>, field: string) =>
        field === 'keywords' ? keywordsOf(document) : document[field],
    },
  },
  /** Leaves out programs and pictures, which repeat what the sentences say. */
  _render(source: string, env: MarkdownEnv, markdown: Pick<MarkdownRenderer, 'render'>): string {
    const prose = markdown
      .render(source, env)
      .replace(/<span class="lang">[^<]*<\/span>|<(pre|svg)[\s>].*?<\/\1>/gs, '');
    return LISTS.test(env.relativePath) ? prose.replace(/<(\/?)h[3-6]/g, '<$1p') : prose;
  },
};

/** The page asks `ranking.ts` in place of MiniSearch. */
export const ownRanking: Plugin = {
  name: 'own-ranking',
  enforce: 'pre',
  resolveId: (source, importer) =>
    source === 'minisearch' && importer?.includes('VPLocalSearchBox')
      ? new URL('ranking.ts', import.meta.url).pathname
      : undefined,
};

/** The questions that the index of a built site answers with another page first. */
export async function wrongAnswers(dist: string): Promise<string[]> {
  const [file] = globSync('assets/chunks/@localSearchIndex*.js', { cwd: dist });
  if (file === undefined) throw new Error('the site has no index for its search');
  const { default: json } = await import(pathToFileURL(`${dist}/${file}`).href);
  const index = ranking.loadJSON(json);
  return QUESTIONS.flatMap(([question, pages]) => {
    const [first] = index.search(question);
    return first !== undefined && pages.test(String(first.id))
      ? []
      : [`${question}: ${first?.id ?? 'nothing'}`];
  });
}
