import { readHost } from '../scope/grammar.ts';
import { member } from './json.ts';
import { quote, quoteUrl } from './problems.ts';
import type { DocumentContext, Node, NodeKind, Nodes, References } from './references.ts';

/** URLs that the variables of one OpenAPI server stand for. @bound */
export const MAX_SERVER_URLS = 64;

const SERVERS: NodeKind = { name: 'servers' };
const SERVER: NodeKind = { name: 'a server', members: ['url', 'variables'] };

/** Where operations are served. The base path is `''`, or begins with a slash and ends without one. */
interface Server {
  readonly host: string;
  readonly base: string;
}

/** Reads the servers of one document, of its path items and of its operations. */
export class Servers {
  readonly #context: DocumentContext;
  readonly #references: References;
  #ofDocument: Promise<readonly Server[]> | undefined;

  constructor(context: DocumentContext, references: References) {
    this.#context = context;
    this.#references = references;
  }

  /** The servers of an operation: its own, else those of its path item, else of the document. */
  of(
    operation: Nodes,
    location: string,
    item: Nodes,
    itemLocation: string,
  ): Promise<readonly Server[]> {
    if (this.#context.version !== '2.0') {
      const own = operation.get('servers');
      if (isGiven(own)) return this.#readServers(location, own);
      const shared = item.get('servers');
      if (isGiven(shared)) return this.#readServers(itemLocation, shared);
    }
    this.#ofDocument ??= this.#documentServers();
    return this.#ofDocument;
  }

  async #documentServers(): Promise<readonly Server[]> {
    const { version, source, name } = this.#context;
    if (version === '2.0') return this.#swaggerServers();
    const servers = { value: member(source.root, 'servers'), source };
    if (isGiven(servers)) return this.#readServers(name, servers);
    return this.#withoutHost(`${name}, servers`, '');
  }

  #swaggerServers(): readonly Server[] {
    const { source, name, problems } = this.#context;
    const host = member(source.root, 'host');
    const base = member(source.root, 'basePath') ?? '';
    if (typeof base !== 'string' || !/^(?:\/[^{}]*)?$/.test(base)) {
      problems.add(
        `${name}, basePath`,
        'must be a text that begins with "/" and holds no template',
      );
      return [];
    }
    if (host === undefined) return this.#withoutHost(`${name}, host`, base);
    const authority = typeof host === 'string' ? host : '';
    return this.#withHost(`${name}, host ${quoteUrl(authority)}`, authority, base);
  }

  async #readServers(location: string, servers: Node): Promise<readonly Server[]> {
    const { problems, budget } = this.#context;
    const list = (await this.#references.chain(servers, `${location}, servers`, SERVERS)).at(-1);
    if (!Array.isArray(list?.value)) {
      problems.add(`${location}, servers`, 'must be an array of servers');
      return [];
    }
    // Before they are read: each operation may have many servers of its own, or refer to some.
    budget.spend('servers', location, list.value.length);
    const found: Server[] = [];
    for (const [index, value] of list.value.entries()) {
      const name = `${location}, servers[${index}]`;
      const server = await this.#references.members({ value, source: list.source }, name, SERVER);
      const url = server.get('url')?.value;
      if (typeof url === 'string') {
        const variables = server.get('variables')?.value;
        const urls = this.#expandUrl(name, url, variables);
        budget.spend('servers', location, Math.max(0, urls.length - 1));
        const isExample = hasOpenHost(url, variables);
        found.push(...urls.flatMap((one) => this.#readUrl(name, one, isExample)));
      } else {
        problems.add(name, 'must have a "url", as "https://shop.example/v1"');
      }
    }
    return found;
  }

  /** All URLs that a URL with variables stands for. A variable without a known value stays. */
  #expandUrl(location: string, url: string, variables: unknown): readonly string[] {
    const { problems } = this.#context;
    const values = new Map<string, readonly string[]>();
    for (const [, name = ''] of url.matchAll(/\{([^{}]*)\}/g)) {
      const known = valuesOf(member(variables, name));
      if (known !== undefined) values.set(name, known);
    }
    const count = [...values.values()].reduce((product, { length }) => product * length, 1);
    if (count > MAX_SERVER_URLS) {
      problems.add(
        location,
        `its variables stand for ${count} URLs; at most ${MAX_SERVER_URLS} are expanded`,
      );
      return [];
    }
    return [...values].reduce<readonly string[]>(
      (urls, [name, known]) =>
        urls.flatMap((one) => known.map((value) => one.replaceAll(`{${name}}`, () => value))),
      [url],
    );
  }

  // Not with the URL parser: it decodes the host, turns numbers into addresses and removes dot segments.
  #readUrl(location: string, url: string, isExample: boolean): readonly Server[] {
    const { problems } = this.#context;
    const named = `${location} ${quoteUrl(url)}`;
    const [, authority, base = ''] = URL_PARTS.exec(url) ?? [];
    if (/[?#\\]/.test(url) || /[{}]/.test(base.replaceAll(/\{[^{}/]*\}/g, ''))) {
      problems.add(
        location,
        `${quoteUrl(url)} must hold no query, no fragment, no backslash and no lone brace`,
      );
      return [];
    }
    if (authority !== undefined) return this.#withHost(named, authority, base, isExample);
    if (/^(?:\/|$)/.test(url)) return this.#withoutHost(named, url);
    problems.add(
      location,
      `${quoteUrl(url)} must be absolute, as "https://shop.example/v1", or begin with "/"`,
    );
    return [];
  }

  /** @param isExample whether the host is only an example of what may stand there */
  #withHost(
    location: string,
    authority: string,
    base: string,
    isExample = false,
  ): readonly Server[] {
    const { settings, problems } = this.#context;
    const name = authority.replace(/:(?:[0-9]*|\{[^{}]*\})$/, '');
    const host = readHost(name);
    const isReplaced = isExample && settings.hosts.length > 0;
    if (host !== undefined && !isReplaced) return serversOf([host], base);
    if (name.includes('@')) {
      problems.add(location, 'must hold no user info, as "https://shop.example"');
      return [];
    }
    if (settings.hosts.length === 0) problems.add(location, `${hostProblem(name)}, ${HOSTS_HINT}`);
    return serversOf(settings.hosts, base);
  }

  #withoutHost(location: string, base: string): readonly Server[] {
    const { settings, problems } = this.#context;
    if (settings.hosts.length === 0) {
      problems.add(location, `names no host; write an absolute URL, ${HOSTS_HINT}`);
    }
    return serversOf(settings.hosts, base);
  }
}

const HOSTS_HINT = 'or give the option hosts, as hosts: ["shop.example"]';

/**
 * The authority and the base path of an absolute URL. Without a scheme, the first segment is the
 * authority if it is a placeholder: `{host}/v1` or `<your host>/v1`.
 */
const URL_PARTS = /^(?:(?:[^/:]*:)?\/\/|(?=[^/]*[{<$]))([^/]*)(.*)$/s;

function serversOf(hosts: readonly string[], base: string): readonly Server[] {
  return hosts.map((host) => ({ host, base: base.replace(/\/$/, '') }));
}

/** Whether servers are given; an empty array defers to the level above. */
function isGiven(servers: Node | undefined): servers is Node {
  if (servers?.value === undefined) return false;
  return !(Array.isArray(servers.value) && servers.value.length === 0);
}

/** Whether the host of a URL has a variable that may stand for any text. Its default is an example. */
function hasOpenHost(url: string, variables: unknown): boolean {
  const [, host = ''] = /^(?:[^/]*\/\/)?([^/:]*)/.exec(url) ?? [];
  return [...host.matchAll(/\{([^{}]*)\}/g)].some(
    ([, name = '']) => choicesOf(member(variables, name)) === undefined,
  );
}

/** The values of a server variable; `undefined` when it has none that can be used. */
function valuesOf(variable: unknown): readonly string[] | undefined {
  const values = choicesOf(variable) ?? [member(variable, 'default')];
  const isUsable = (value: unknown): value is string =>
    typeof value === 'string' && !/[{}]/.test(value);
  return values.every(isUsable) ? [...new Set(values)] : undefined;
}

function choicesOf(variable: unknown): readonly unknown[] | undefined {
  const choices = member(variable, 'enum');
  return Array.isArray(choices) && choices.length > 0 ? choices : undefined;
}

function hostProblem(host: string): string {
  const [, variable] = /\{([^{}]*)\}/.exec(host) ?? [];
  if (variable !== undefined) {
    return `the variable ${quote(variable)} must have a "default" or an "enum" of texts without braces`;
  }
  if (host.startsWith('[') || /(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$/i.test(host)) {
    return 'must not be at an IP address; a scope needs a host name, as shop.example';
  }
  return 'must have a host name, as shop.example, and write another script in its xn-- form';
}
