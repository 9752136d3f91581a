import { readFileSync, writeFileSync } from 'node:fs';
import { type DefaultTheme, defineConfig, type MarkdownRenderer } from 'vitepress';
import { aboutOf, plain } from './about.ts';
import { deadLinks } from './anchors.ts';
import { llmsText } from './llms.ts';
import { ownRanking, SEARCH, wrongAnswers } from './search.ts';
import { item, sidebar } from './sidebar.ts';

const root = new URL('../../', import.meta.url);
const { description, version, bugs } = JSON.parse(
  readFileSync(new URL('package.json', root), 'utf8'),
);
const repository = bugs.replace(/\/issues$/, '');

/** Pages that are made of the sources: nobody edits them. */
const MADE = /^(?:reference|service)\//;

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

/** Lets a table that is wider than the window scroll, also by keys, rather than break its words. */
function withScrollingTables(markdown: MarkdownRenderer): void {
  markdown.renderer.rules['table_open'] = () => '<div class="table" tabindex="0"><table>\n';
  markdown.renderer.rules['table_close'] = () => '</table></div>\n';
}

export default defineConfig({
  title: 'tokenwright',
  description,
  lang: 'en-US',
  cleanUrls: true,
  // For maintainers, in the repository.
  srcExclude: ['evidence/mutants.md'],
  transformPageData(page) {
    const text = readFileSync(new URL(`docs/${page.filePath}`, root), 'utf8');
    if (MADE.test(page.filePath)) page.frontmatter['editLink'] = false;
    return { description: plain(aboutOf(text)) };
  },
  async buildEnd({ outDir }) {
    writeFileSync(`${outDir}/llms.txt`, llmsText(''));
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
      withScrollingTables(markdown);
    },
  },
  vite: {
    plugins: [ownRanking],
    build: { chunkSizeWarningLimit: 700 }, // the index of the search, in kB
  },
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: '/mark.svg' }]],
  themeConfig: {
    logo: '/mark.svg',
    search: { provider: 'local', options: SEARCH },
    nav: [
      item('Quick start', '/quick-start'),
      item('Concepts', '/concepts/scope'),
      item('Guides', '/guides/express'),
      item('Reference', '/reference/'),
      item(`v${version}`, `${repository}/blob/main/CHANGELOG.md`),
    ] as DefaultTheme.NavItem[],
    sidebar,
    editLink: { pattern: `${repository}/edit/main/docs/:path`, text: 'Edit this page' },
    outline: { level: [2, 3] },
    notFound: {
      title: 'No such page',
      quote: 'Nothing is at this address. The search above knows every page.',
      linkText: 'To the start',
      linkLabel: 'to the start',
    },
  },
});
