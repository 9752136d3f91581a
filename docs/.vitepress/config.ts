import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { type DefaultTheme, defineConfig, type MarkdownRenderer } from 'vitepress';
import { aboutOf, plain } from './about.ts';
import { deadLinks } from './anchors.ts';
import { SEARCH, wrongAnswers } from './search.ts';

const root = new URL('../../', import.meta.url);
const { description, homepage } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));

type Items = DefaultTheme.SidebarItem[];

/** The pages of a folder by their heading, but for its index; none where it is not made yet. */
function pagesIn(folder: string): Items {
  const place = new URL(`docs/${folder}/`, root);
  if (!existsSync(place)) return [];
  return readdirSync(place)
    .filter((name) => name.endsWith('.md') && name !== 'index.md')
    .map((name) => {
      const heading = /^# (.*)$/m.exec(readFileSync(new URL(name, place), 'utf8'))?.[1] ?? name;
      return item(heading.replace(/[`\\]/g, ''), `/${folder}/${name.slice(0, -'.md'.length)}`);
    })
    .sort((a, b) => ((a.text ?? '') < (b.text ?? '') ? -1 : 1));
}

function item(text: string, link: string): DefaultTheme.SidebarItem {
  return { text, link };
}

const sidebar: Items = [
  item('Quick start', '/quick-start'),
  item('Comparison with the alternatives', '/comparison'),
  {
    text: 'Concepts',
    items: [
      item('Scope', '/concepts/scope'),
      item('Catalog', '/concepts/catalog'),
      item('Token', '/concepts/token'),
      item('Account', '/concepts/account'),
      item('Lifetime', '/concepts/lifetime'),
    ],
  },
  {
    text: 'Guides: add it to',
    items: [
      item('Express', '/guides/express'),
      item('Fastify', '/guides/fastify'),
      item('Hono', '/guides/hono'),
      item('Nest', '/guides/nest'),
      item('Koa, Next.js, node:http', '/guides/others'),
      item('From your OpenAPI document to tokens', '/guides/from-openapi'),
      item('The console', '/guides/console'),
      item('Behind a gateway', '/guides/gateway'),
    ],
  },
  {
    text: 'Guides: run it',
    items: [
      item('Run the service', '/guides/run-the-service'),
      item('Deploy the service', '/guides/deploy'),
      item('Keep the service running', '/guides/keep-it-running'),
      item('Monitor the service', '/guides/monitor'),
      item('Choose a store', '/guides/choose-a-store'),
      item('Transactions, and your ORM', '/guides/transactions'),
      item('Many nodes', '/guides/many-nodes'),
      item('Many tenants', '/guides/multi-tenant'),
      item('Keep and rotate keys', '/guides/rotate-keys'),
      item('Rotate a value without a lock-out', '/guides/rotate-values'),
      item('Derive narrower tokens', '/guides/derive-tokens'),
      item('Limit where from and how often', '/guides/limits'),
      item('See how tokens are used', '/guides/usage'),
      item('When a value has leaked', '/guides/leaks'),
      item('Keep values out of logs', '/guides/logging'),
      item('Test your rules', '/guides/testing'),
    ],
  },
  {
    text: 'Guides: move to it',
    items: [
      item('Bring your tokens', '/guides/import-tokens'),
      item('From better-auth API keys', '/guides/from-better-auth'),
      item('From Laravel Sanctum', '/guides/from-sanctum'),
      item('From Unkey', '/guides/from-unkey'),
      item('From prefixed-api-key', '/guides/from-prefixed-api-key'),
      item('From keypal', '/guides/from-keypal'),
      item('From hand-rolled tokens', '/guides/from-hand-rolled'),
      item('From scopes without {} and $', '/guides/templates-and-ends'),
    ],
  },
  {
    text: 'Service reference',
    items: [
      item('Settings', '/service/settings'),
      item('Commands', '/service/commands'),
      item('HTTP API', '/service/http'),
    ],
  },
  { text: 'Reference', link: '/reference/', collapsed: true, items: pagesIn('reference') },
  { text: 'Errors', link: '/errors', items: [{ text: 'Refusals', link: '/refusals' }] },
  { text: 'Security', link: '/security/', collapsed: true, items: pagesIn('security') },
  {
    text: 'More',
    items: [
      item('Questions and answers', '/faq'),
      item('Glossary', '/glossary'),
      item('What it runs on', '/support'),
      item('How costs grow', '/growth'),
      item('Changelog', '/releases'),
    ],
  },
  { text: 'For contributors', collapsed: true, items: [item('Mutants that survive', '/mutants')] },
];

/**
 * Puts pictures of `pictures/` into the page itself, where they take its colors, light or dark. What
 * they show is told by their own `title` and `desc`.
 */
function withPictures(markdown: MarkdownRenderer): void {
  const { image } = markdown.renderer.rules;
  markdown.renderer.rules.image = (tokens, index, ...rest) => {
    const [, name] = /pictures\/([\w-]+)\.svg$/.exec(tokens[index]?.attrGet('src') ?? '') ?? [];
    if (name === undefined) return image?.(tokens, index, ...rest) ?? '';
    const svg = readFileSync(new URL(`docs/pictures/${name}.svg`, root), 'utf8');
    // Vue takes no `style` in a page, but as a component.
    const style = svg
      .replace('<style>', '<component is="style">')
      .replace('</style>', '</component>');
    return `<span class="picture">${style}</span>`;
  };
}

/** Says beside a program which file of the repository it is, in the place of its language. */
function withFileNames(markdown: MarkdownRenderer): void {
  const { fence } = markdown.renderer.rules;
  markdown.renderer.rules.fence = (tokens, index, ...rest) => {
    const [, name] = /\[(examples\/.+)\]/.exec(tokens[index]?.info ?? '') ?? [];
    const html = fence?.(tokens, index, ...rest) ?? '';
    return name === undefined
      ? html
      : html.replace(/(<span class="lang">)\w+/, (_, opening: string) => `${opening}${name}`);
  };
}

export default defineConfig({
  title: 'tokenwright',
  description,
  lang: 'en-US',
  cleanUrls: true,
  // Without a published address there is no map of it.
  ...(homepage !== undefined && { sitemap: { hostname: homepage } }),
  transformPageData(page) {
    const text = readFileSync(new URL(`docs/${page.filePath}`, root), 'utf8');
    return { description: plain(aboutOf(text)) };
  },
  async buildEnd({ outDir }) {
    const dead = deadLinks(outDir);
    if (dead.length > 0) throw new Error(`these links lead nowhere:\n${dead.join('\n')}`);
    const wrong = await wrongAnswers(outDir);
    if (wrong.length > 0) throw new Error(`the search answers wrongly:\n${wrong.join('\n')}`);
  },
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config(markdown) {
      withPictures(markdown);
      withFileNames(markdown);
    },
  },
  vite: { build: { chunkSizeWarningLimit: 1500 } }, // the index of the search, in kB
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: '/mark.svg' }]],
  themeConfig: {
    logo: '/mark.svg',
    search: { provider: 'local', options: SEARCH },
    nav: [
      item('Quick start', '/quick-start'),
      item('Concepts', '/concepts/scope'),
      item('Guides', '/guides/express'),
      item('Reference', '/reference/'),
    ] as DefaultTheme.NavItem[],
    sidebar,
    outline: { level: [2, 3] },
    notFound: {
      title: 'No such page',
      quote: 'Nothing is at this address. The search above knows every page.',
      linkText: 'To the start',
      linkLabel: 'to the start',
    },
  },
});
