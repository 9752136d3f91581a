import { MAX_SERVER_URLS } from '../bounds.ts';
import { readHost } from '../scope/grammar.ts';
import { member } from './json.ts';
import { quote, quoteUrl } from './problems.ts';
import type { DocumentContext, Node, NodeKind, Nodes, References } from './references.ts';

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
        const urls = this.#expandUrl(name, url, server.get('variables')?.value);
        budget.spend('servers', location, Math.max(0, urls.length - 1));
        found.push(...urls.flatMap((one) => this.#readUrl(name, one)));
      } else {
        problems.add(name, 'must have a "url", as "https://shop.example/v1"');
      }
    }
    return found;
  }

  /** All URLs that a URL with variables stands for. */
  #expandUrl(location: string, url: string, variables: unknown): readonly string[] {
    const { problems } = this.#context;
    const values = new Map<string, readonly string[]>();
    for (const [, name = ''] of url.matchAll(/\{([^{}]*)\}/g)) {
      const known = valuesOf(member(variables, name));
      if (known === undefined) {
        problems.add(
          location,
          `the variable ${quote(name)} must have a "default" or an "enum" of texts without braces`,
        );
        return [];
      }
      values.set(name, known);
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
  #readUrl(location: string, url: string): readonly Server[] {
    const { problems } = this.#context;
    if (/[?#{}\\]/.test(url)) {
      problems.add(
        location,
        `${quoteUrl(url)} must hold no query, no fragment, no backslash and no lone brace`,
      );
      return [];
    }
    const absolute = /^(?:[a-z][a-z0-9+.-]*:)?\/\/([^/]*)(.*)$/is.exec(url);
    if (absolute !== null) {
      const [, authority = '', base = ''] = absolute;
      return this.#withHost(`${location} ${quoteUrl(url)}`, authority, base);
    }
    if (/^(?:\/|$)/.test(url)) return this.#withoutHost(`${location} ${quoteUrl(url)}`, url);
    problems.add(
      location,
      `${quoteUrl(url)} must be absolute, as "https://shop.example/v1", or begin with "/"`,
    );
    return [];
  }

  #withHost(location: string, authority: string, base: string): readonly Server[] {
    const name = authority.replace(/:[0-9]*$/, '');
    const host = readHost(name);
    if (host !== undefined) return [{ host, base: base.replace(/\/$/, '') }];
    this.#context.problems.add(location, hostProblem(name));
    return [];
  }

  #withoutHost(location: string, base: string): readonly Server[] {
    const { settings, problems } = this.#context;
    if (settings.hosts.length === 0) {
      problems.add(
        location,
        'names no host; write an absolute URL, or give the option hosts, as hosts: ["shop.example"]',
      );
    }
    return settings.hosts.map((host) => ({ host, base: base.replace(/\/$/, '') }));
  }
}

/** Whether servers are given; an empty array defers to the level above. */
function isGiven(servers: Node | undefined): servers is Node {
  if (servers?.value === undefined) return false;
  return !(Array.isArray(servers.value) && servers.value.length === 0);
}

/** The values of a server variable; `undefined` when it has none that can be used. */
function valuesOf(variable: unknown): readonly string[] | undefined {
  const choices = member(variable, 'enum');
  const hasChoices = Array.isArray(choices) && choices.length > 0;
  const values: readonly unknown[] = hasChoices ? choices : [member(variable, 'default')];
  const isUsable = (value: unknown): value is string =>
    typeof value === 'string' && !/[{}]/.test(value);
  return values.every(isUsable) ? [...new Set(values)] : undefined;
}

function hostProblem(host: string): string {
  if (host.includes('@')) return 'must hold no user info, as "https://shop.example"';
  if (host.startsWith('[') || /(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$/i.test(host)) {
    return 'must not be at an IP address; a scope needs a host name, as shop.example';
  }
  return 'must have a host name, as shop.example, and write another script in its xn-- form';
}
