import { invalidOptions, TokenError } from '../errors.ts';
import { makeScope, readHost, safeToScope } from '../scope/grammar.ts';
import { parseScope, type Scope, ScopeSet, safeParseScope } from '../scope/index.ts';
import { OverlapIndex, patternsOf } from '../scope/overlap.ts';
import { kindOf } from '../text/wording.ts';
import { type JsonRpcMessage, MessageFault } from './message.ts';

/** Characters of the scopes in one challenge. With more, it names only the scope that is needed. @bound */
export const MAX_CHALLENGE_LENGTH = 1024;

/** Characters of the name of a tool that needs no entry in `tools`, as in MCP. @bound */
export const MAX_TOOL_NAME_LENGTH = 128;

const CALL = 'tools/call';

/** What a live token for the server may always send. */
const OPEN_METHODS: ReadonlySet<string> = new Set([
  'initialize',
  'server/discover',
  'ping',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'subscriptions/listen',
]);

/**
 * The scope that a call of a tool needs: `POST:<domain>/tools/<tool>$`. For catalogs, and for the scopes of
 * tokens.
 *
 * @param tool 1 to 128 of `A-Z`, `a-z`, `0-9`, `_`, `.` and `-`, not only dots
 * @throws {TokenError} `invalid_request` for another name, or a domain that is not one host
 * @example
 * console.log(toolScope('shop.example', 'refund')); // 'POST:shop.example/tools/refund$'
 */
export function toolScope(domain: string, tool: string): string {
  const host = typeof domain === 'string' ? readHost(domain) : undefined;
  if (host === undefined) {
    throw new TokenError('invalid_request', 'domain must be one host, such as "shop.example"');
  }
  if (isToolName(tool)) return scopeOfTool(host, tool).toString();
  throw new TokenError(
    'invalid_request',
    `tool must be 1 to ${MAX_TOOL_NAME_LENGTH} of A-Z, a-z, 0-9, "_", "." and "-", not only dots${typeof tool === 'string' ? '' : `; got ${kindOf(tool)}`}`,
  );
}

function isToolName(name: unknown): name is string {
  if (typeof name !== 'string' || name.length > MAX_TOOL_NAME_LENGTH) return false;
  return /^(?!\.+$)[\w.-]+$/.test(name);
}

function scopeOfTool(host: string, tool: string): Scope {
  return makeScope('POST', host, `tools/${tool}$`);
}

/** The entries of `tools` or `methods`, as the host wrote them. */
type Entries = Readonly<Record<string, unknown>>;

/** What the messages to one server need, and which tokens are for it. */
export class Needs {
  readonly #host: string;
  readonly #tools: ReadonlyMap<string, Scope | true>;
  readonly #methods: ReadonlyMap<string, Scope | true>;
  /** All scopes by which a token is for this server. */
  readonly #own: OverlapIndex;
  /** The scopes that a client without a token should ask for first, with spaces between them. */
  readonly entrance: string;

  /** @throws {TokenError} `invalid_options` */
  constructor(domain: string, tools: Entries, methods: Entries) {
    const all = parseScope(`POST:${domain}/tools`);
    this.#host = all.domain;
    this.#tools = this.#entriesOf('tools', tools);
    this.#methods = this.#entriesOf('methods', methods);
    if (this.#methods.has(CALL)) {
      throw invalidOptions(`methods must not hold ${CALL}: give the scopes of its tools in tools`);
    }
    const named = [...this.#tools.values(), ...this.#methods.values()].filter(isScope);
    this.#own = new OverlapIndex([all, ...named]);
    const asked = ScopeSet.from(named).minimize().toArray().join(' ');
    const isShort = asked !== '' && asked.length <= MAX_CHALLENGE_LENGTH;
    this.entrance = isShort ? asked : all.toString();
  }

  #entriesOf(option: 'tools' | 'methods', entries: Entries): ReadonlyMap<string, Scope | true> {
    const read = (name: string, value: unknown): Scope | true => {
      if (value === true && option === 'methods') return true;
      const reading = safeToScope(value, safeParseScope);
      if (reading.ok && reading.scope.domain === this.#host) return reading.scope;
      const or = option === 'methods' ? ', or true' : '';
      throw invalidOptions(
        `${option}[${JSON.stringify(name)}] must be a scope on ${this.#host}${or}`,
      );
    };
    return new Map(Object.entries(entries).map(([name, value]) => [name, read(name, value)]));
  }

  /**
   * The scope that a message needs; `undefined` if any live token for this server may send it.
   *
   * @throws {MessageFault}
   */
  of(message: JsonRpcMessage): Scope | undefined {
    const { method } = message;
    if (method === undefined) return undefined;
    if (method === CALL) return this.#ofCall(message);
    const entry = this.#methods.get(method);
    if (entry !== undefined) return isScope(entry) ? entry : undefined;
    if (OPEN_METHODS.has(method) || method.startsWith('notifications/')) return undefined;
    throw new MessageFault('unknown_method', 'this server does not take the method', message);
  }

  #ofCall(message: JsonRpcMessage): Scope {
    const { name } = Object(message.params) as { readonly name?: unknown };
    const scope = this.ofTool(name);
    if (scope !== undefined) return scope;
    throw new MessageFault('invalid_message', 'params.name must be the name of a tool', message);
  }

  /** The scope that a call of a tool needs; `undefined` if no tool can have this name. */
  ofTool(name: unknown): Scope | undefined {
    const own = this.#tools.get(name as string);
    if (own !== undefined) return own as Scope;
    return isToolName(name) ? scopeOfTool(this.#host, name) : undefined;
  }

  /** The part of the scopes of a token that is on the domain of this server. */
  heldOf(scopes: readonly string[]): ScopeSet {
    return ScopeSet.from(scopes).intersection([`*:${this.#host}/*`]);
  }

  /** Whether a token with these scopes is for this server. */
  isMet(held: ScopeSet): boolean {
    for (const scope of held) {
      if (this.#own.find('overlapping', patternsOf(scope), 1).length > 0) return true;
    }
    return false;
  }
}

function isScope(entry: Scope | true): entry is Scope {
  return entry !== true;
}
