import { getOrMake } from '../scope/collections.ts';
import { member } from './json.ts';
import type { Node, NodeKind, Nodes, References } from './references.ts';

const PARAMETER: NodeKind = {
  name: 'a parameter',
  members: ['name', 'in', 'pattern', 'schema'],
  isOptional: true,
};

/** Reads the patterns of path parameters. Reads each list once, however many operations share it. */
export class Parameters {
  readonly #references: References;
  readonly #byList = new Map<unknown, Promise<ReadonlyMap<string, string>>>();

  constructor(references: References) {
    this.#references = references;
  }

  /** Finds the pattern of a parameter by its name; the operation's own come before the path item's. */
  async patternsOf(operation: Nodes, item: Nodes): Promise<(name: string) => string | undefined> {
    const own = await this.#read(operation.get('parameters'));
    const shared = await this.#read(item.get('parameters'));
    return (name) => own.get(name) ?? shared.get(name);
  }

  #read(list: Node | undefined): Promise<ReadonlyMap<string, string>> {
    return getOrMake(this.#byList, list?.value, async () => {
      const patterns = new Map<string, string>();
      if (list === undefined || !Array.isArray(list.value)) return patterns;
      for (const value of list.value) {
        const start = { value, source: list.source };
        const parameter = await this.#references.members(start, '', PARAMETER);
        const name = parameter.get('name')?.value;
        // Swagger 2.0 has the pattern on the parameter, later versions in its schema.
        const pattern =
          parameter.get('pattern')?.value ?? member(parameter.get('schema')?.value, 'pattern');
        if (parameter.get('in')?.value !== 'path') continue;
        if (typeof name === 'string' && typeof pattern === 'string') patterns.set(name, pattern);
      }
      return patterns;
    });
  }
}
