import type { Scope } from './grammar.ts';

/** The value of a key, made when it is missing. */
export function getOrMake<Key, Value>(
  map: { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown },
  key: Key,
  make: () => Value,
): Value {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}

/** The index of the first scope that does not sort before a text, in canonical order. */
export function lowerBound(sorted: readonly Scope[], text: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (String(sorted[middle]) < text) low = middle + 1;
    else high = middle;
  }
  return low;
}
