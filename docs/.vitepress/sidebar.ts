// The pages of the documentation in their order.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { DefaultTheme } from 'vitepress';

const root = new URL('../../', import.meta.url);

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

export function item(text: string, link: string): DefaultTheme.SidebarItem {
  return { text, link };
}

export const sidebar: Items = [
  item('Quick start', '/quick-start'),
  item('Comparison with the alternatives', '/comparison'),
  {
    text: 'Concepts',
    items: [
      item('Scope', '/concepts/scope'),
      item('Catalog', '/concepts/catalog'),
      item('Token', '/concepts/token'),
    ],
  },
  {
    text: 'Guides: add it to your server',
    items: [
      item('Express', '/guides/express'),
      item('Fastify', '/guides/fastify'),
      item('Hono', '/guides/hono'),
      item('Nest', '/guides/nest'),
      item('Koa, Next.js, node:http', '/guides/others'),
      item('Serverless and edge', '/guides/serverless'),
      item('From your OpenAPI document to tokens', '/guides/from-openapi'),
      item('Permissions for your users', '/guides/permissions'),
      item('The console', '/guides/console'),
      item('Choose a store', '/guides/choose-a-store'),
      item('Transactions, and your ORM', '/guides/transactions'),
      item('Many nodes', '/guides/many-nodes'),
      item('Many tenants', '/guides/multi-tenant'),
      item('Test your rules', '/guides/testing'),
    ],
  },
  {
    text: 'Guides: work with tokens',
    items: [
      item('Rotate a value without a lock-out', '/guides/rotate-values'),
      item('Derive narrower tokens', '/guides/derive-tokens'),
      item('Tokens for agents', '/guides/agents'),
      item('Exchange tokens over OAuth', '/guides/token-exchange'),
      item('Guard an MCP server', '/guides/mcp'),
      item('Limit where from and how often', '/guides/limits'),
      item('See how tokens are used', '/guides/usage'),
      item('When a value has leaked', '/guides/leaks'),
      item('Keep values out of logs', '/guides/logging'),
      item('Import your tokens', '/guides/bring-your-tokens'),
    ],
  },
  {
    text: 'Guides: run the service',
    items: [
      item('Run the service', '/guides/run-the-service'),
      item('Deploy the service', '/guides/deploy'),
      item('Behind a gateway', '/guides/gateway'),
      item('Monitor the service', '/guides/monitor'),
      item('Keep the service running', '/guides/keep-it-running'),
      item('Keep and rotate keys', '/guides/rotate-keys'),
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
      item('How costs grow', '/evidence/growth'),
    ],
  },
];
