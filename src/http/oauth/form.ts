import { HttpError } from '../errors.ts';

export const FORM_TYPE = 'application/x-www-form-urlencoded';

/** The parameters that may be given more than once (RFC 8693 section 2.1, RFC 8707 section 2). */
const REPEATABLE = ['resource', 'audience'];

/** The parameters of a form. Those that no call asks for have no effect. */
export class Form {
  readonly #values = new Map<string, string[]>();

  /**
   * Reads a form strictly: UTF-8, and no parameter twice (RFC 6749 section 3.2).
   *
   * @param repeatable the parameters that may be given more than once
   * @throws {HttpError} `invalid_request`; its message names no parameter, since a value may be one by mistake
   */
  constructor(bytes: Uint8Array, repeatable: readonly string[] = []) {
    for (const [name, value] of new URLSearchParams(utf8(bytes))) {
      const values = this.#values.get(name);
      if (values === undefined) this.#values.set(name, [value]);
      else if (repeatable.includes(name)) values.push(value);
      else throw new HttpError('invalid_request', 'a parameter may be given once');
    }
  }

  /** Whether the parameter was sent, with a value or without. */
  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** A parameter; one without a value counts as absent (RFC 6749 section 3.2). */
  get(name: string): string | undefined {
    return this.#values.get(name)?.[0] || undefined;
  }

  /** @throws {HttpError} `invalid_request` without it */
  require(name: string): string {
    const value = this.get(name);
    if (value !== undefined) return value;
    throw new HttpError('invalid_request', `the parameter ${name} is required`);
  }

  /** All values of a parameter. */
  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  /** Whether a parameter was sent without a value. */
  get hasEmpty(): boolean {
    return [...this.#values.values()].some((values) => values.includes(''));
  }
}

/**
 * Reads a form of the token endpoint. Strict: a parameter without a value is refused, too.
 *
 * @throws {HttpError} `invalid_request`
 */
export function readGrantForm(bytes: Uint8Array): Form {
  const form = new Form(bytes, REPEATABLE);
  if (!form.hasEmpty) return form;
  throw new HttpError('invalid_request', 'a parameter has no value; leave it out');
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new HttpError('invalid_request', 'the body must be a form in UTF-8');
  }
}
