import { decode } from '../scope/request.ts';

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** An object's own member, so that `__proto__` and the like find nothing; else `undefined`. */
export function member(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** Resolves a JSON pointer in its URL fragment form; `undefined` when it points at nothing. */
export function valueAt(root: unknown, pointer: string): unknown {
  if (pointer === '') return root;
  const [start, ...keys] = pointer.split('/');
  if (start !== '') return undefined;
  return keys.reduce<unknown>((value, key) => {
    const name = decode(key)?.replaceAll('~1', '/').replaceAll('~0', '~');
    if (name === undefined) return undefined;
    if (Array.isArray(value)) return /^[0-9]+$/.test(name) ? value[Number(name)] : undefined;
    return member(value, name);
  }, root);
}
