import { describe, expect, it } from 'vitest';
import { manual } from '../docs/.vitepress/manual/index.ts';
import { COMMANDS } from '../src/app/cli/commands/index.ts';
import { Sessions } from '../src/app/server/sessions.ts';
import {
  SERVE_SETTINGS,
  SETTING_GROUPS,
  settingFacts,
  settingsIn,
  VARIABLES,
} from '../src/app/server/settings.ts';
import { generateKey, MemoryTokenStore } from '../src/index.ts';
import { setUp } from './http/support.ts';

const PAGES = await manual();
const page = (name: string) => PAGES.get(`docs/service/${name}.md`) as string;

describe('the generated pages', () => {
  it('link to each of their headings, and to nothing else', () => {
    for (const [name, text] of PAGES) {
      const anchors = [...text.matchAll(/^###? .* \{#([\w-]+)\}$/gm)].map(([, anchor]) => anchor);
      const links = [...text.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor]) => anchor);

      expect(new Set(anchors).size, name).toBe(anchors.length);
      expect(links.sort(), name).toEqual(anchors.sort());
    }
  });
});

describe('the page about settings', () => {
  it.each(SETTING_GROUPS)('has the settings of the group %s below its title', (group) => {
    const [, section = ''] = page('settings').split(` {#${group}}\n`);
    const own = section.split('\n## ')[0] as string;
    const titles = own.match(/^### --[\w-]+/gm)?.map((title) => title.slice(4));

    expect(titles).toEqual(settingsIn(group).map((name) => settingFacts(name).flag.split(' ')[0]));
  });

  it.each(SERVE_SETTINGS)('has a section for %s, with its variable', (name) => {
    const { flag, variable, standard } = settingFacts(name);

    expect(page('settings')).toContain(`\n\`${flag}\`, or the variable \`${variable}\``);
    if (standard !== undefined) expect(page('settings')).toContain(`| \`${standard}\` |`);
  });

  it('names every variable that a command reads', () => {
    expect(VARIABLES.length).toBeGreaterThan(20);
    for (const name of VARIABLES) expect(page('settings')).toContain(`\`${name}\``);
  });

  it('contains no placeholder, and no default twice', () => {
    expect(page('settings')).not.toMatch(/\{(?:values|default)\}|undefined/);
    expect(page('settings')).not.toContain('; default 8787');
  });
});

describe('the page about commands', () => {
  it.each(COMMANDS)('has a line about $name', ({ name, summary }) => {
    expect(page('commands')).toContain(`\n| \`${name}\` | ${summary} |\n`);
  });

  it('names only flags that some command has', () => {
    const known = new Set(COMMANDS.flatMap(({ flags }) => Object.keys(flags)));
    const [, shared = ''] = page('commands').split('{#flags}');
    const named = [...shared.matchAll(/`--([a-z-]+)`/g)].map(([, flag]) => flag as string);

    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((flag) => !known.has(flag))).toEqual([]);
  });
});

describe('the page about HTTP', async () => {
  const store = new MemoryTokenStore();
  const { handler } = setUp({
    session: new Sessions({ leases: store.leases }).of([generateKey()], []),
    introspection: { authenticate: () => null },
    revocation: true,
    derivation: true,
    oauth: { issuer: 'https://auth.example', exchange: true },
  });
  const response = await handler(new Request('http://localhost/openapi.json'));
  const { paths } = (await response.json()) as { paths: Record<string, Record<string, unknown>> };
  const calls = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item)
      .filter((key) => key !== 'parameters')
      .map((method): [string, unknown] => [`${method.toUpperCase()} ${path}`, item[method]]),
  );

  it.each(calls)('describes %s with all its error codes', (call, operation) => {
    const heading = `\n## ${call.replace(/[{}]/g, '\\$&')} {#`;
    const [, section = ''] = page('http').split(heading);
    const [own = ''] = section.split('\n## ');
    const codes = [...JSON.stringify(operation).matchAll(/`(\w+)`: /g)].map(([, code]) => code);

    expect(page('http')).toContain(heading);
    expect(own).toContain('### Errors');
    // The others are values of the parameter `match`.
    for (const code of codes.filter((each) => each !== 'covers')) {
      expect(own).toContain(`\`${code}\``);
    }
    expect(own).toContain('### Answer');
  });

  it('describes every operation of the OpenAPI document', () => {
    expect(calls.length).toBeGreaterThan(10);
    expect(page('http').match(/^### Answer$/gm)).toHaveLength(calls.length);
  });
});
