import { getOrMake } from '../scope/collections.ts';
import type { Files, Source } from './files.ts';
import { isObject, member, valueAt } from './json.ts';
import type { Settings } from './options.ts';
import { failed, type Problems, quoteUrl, type Result, type WorkBudget } from './problems.ts';

/** `$ref`s in an OpenAPI document that lead from one to the next. @bound */
export const MAX_REFERENCES = 32;

export type Version = '2.0' | '3.0' | '3.1' | '3.2';

/** A document, and what its readers share. */
export interface DocumentContext {
  readonly source: Source;
  readonly version: Version | undefined;
  /** The name of the document in messages. */
  readonly name: string;
  readonly settings: Settings;
  readonly problems: Problems;
  readonly files: Files;
  readonly budget: WorkBudget;
}

/** A value, and the source that its relative references start from. */
export interface Node {
  readonly value: unknown;
  readonly source: Source;
}

export type Nodes = ReadonlyMap<string, Node>;

export interface NodeKind {
  /** Its name in messages. */
  readonly name: string;
  /** The members that are read; by default all. */
  readonly members?: readonly string[] | ((value: object) => readonly string[]);
  /** Whether it is left out without a word if it cannot be read. */
  readonly isOptional?: boolean;
  /** Where a whole document keeps such nodes; by default anywhere. */
  readonly home?: { readonly pointer: RegExp; readonly examples: string };
}

/** The OpenAPI version of a document; `undefined` when it is not one that can be read. */
export function openApiVersionOf(document: unknown): Version | undefined {
  if (member(document, 'swagger') === '2.0') return '2.0';
  const version = member(document, 'openapi');
  if (typeof version !== 'string') return undefined;
  return (['3.0', '3.1', '3.2'] as const).find((known) => `${version}.`.startsWith(`${known}.`));
}

/** Follows the references of one document. */
export class References {
  readonly #context: DocumentContext;
  readonly #names = new Map<object, readonly string[]>();

  constructor(context: DocumentContext) {
    this.#context = context;
  }

  /** The members of a node and of the nodes that it refers to; nearer ones win. */
  async members(start: Node, location: string, kind: NodeKind): Promise<Nodes> {
    const members = new Map<string, Node>();
    for (const { value, source } of await this.chain(start, location, kind)) {
      if (!isObject(value)) {
        this.#report(kind, location, `${kind.name} must be an object`);
        continue;
      }
      for (const name of this.#namesOf(value, kind)) {
        if (Object.hasOwn(value, name) && !members.has(name)) {
          members.set(name, { value: value[name], source });
        }
      }
      if (Object.hasOwn(value, '<<')) {
        this.#report(kind, location, 'merge keys ("<<") are not read; write the members out');
      }
    }
    return members;
  }

  /** The members that are looked for: only known ones, since a large node may be referred to very often. */
  #namesOf(value: object, { members }: NodeKind): readonly string[] {
    if (members === undefined) return Object.keys(value);
    return typeof members === 'function'
      ? getOrMake(this.#names, value, () => members(value))
      : members;
  }

  #report({ isOptional = false }: NodeKind, location: string, problem: string): void {
    const { problems, name } = this.#context;
    if (isOptional) return;
    if (location === name) problems.addForDocument(name, problem);
    else problems.add(location, problem);
  }

  /** A node, the node that its `$ref` points at, and so on. */
  async chain(start: Node, location: string, kind: NodeKind): Promise<readonly Node[]> {
    const chain = [start];
    for (let node = start; ; chain.push(node)) {
      const ref = member(node.value, '$ref');
      if (ref === undefined) return chain;
      const target = await this.#follow(ref, node.source, kind);
      if (!target.ok) {
        this.#report(kind, location, target.problem);
        return chain;
      }
      node = target.value;
      if (chain.some(({ value }) => value === node.value)) {
        this.#report(kind, location, 'its $ref leads back to itself');
        return chain;
      }
      if (chain.length > MAX_REFERENCES) {
        const bound = `at most ${MAX_REFERENCES} are followed`;
        this.#report(kind, location, `its $ref leads on and on; ${bound}`);
        return chain;
      }
    }
  }

  async #follow(ref: unknown, from: Source, kind: NodeKind): Promise<Result<Node>> {
    if (typeof ref !== 'string') return failed(`its $ref must point at ${inDocument(kind)}`);
    const hash = ref.indexOf('#');
    const [file, pointer] = hash === -1 ? [ref, ''] : [ref.slice(0, hash), ref.slice(hash + 1)];
    const read = file === '' ? undefined : await this.#load(file, from, kind);
    if (read?.ok === false) return failed(`its $ref ${quoteUrl(ref)} ${read.problem}`);
    const source = read?.value ?? from;
    // A file that is not a whole document may keep its nodes anywhere.
    const isMisplaced =
      kind.home !== undefined &&
      openApiVersionOf(source.root) !== undefined &&
      !kind.home.pointer.test(pointer);
    const value = isMisplaced ? undefined : valueAt(source.root, pointer);
    if (value !== undefined) return { ok: true, value: { value, source } };
    const expected = file === '' ? inDocument(kind) : `${kind.name} that is in that file`;
    return failed(`its $ref ${quoteUrl(ref)} must point at ${expected}`);
  }

  async #load(file: string, from: Source, kind: NodeKind): Promise<Result<Source>> {
    if (from.url === undefined) {
      return failed(
        `must point at ${inDocument(kind)}; a document that is given as a file may refer to others beside it`,
      );
    }
    const { files, source } = this.#context;
    const read = await files.readReference(file, from.url, source.url);
    return read.ok ? read : failed(`leads to what ${read.problem}`);
  }
}

function inDocument({ name, home }: NodeKind): string {
  return `${name} of the same document, as ${home?.examples ?? '"#/components/x-shared/orders"'}`;
}
