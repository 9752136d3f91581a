/** Scopes up to which a change does all its steps in one turn of the event loop. @bound */
export const MAX_SCOPES_A_TURN = 512;

/** Whether a list takes milliseconds to work through, so that others should get a turn after it. */
export function isLong(list: readonly unknown[]): boolean {
  return list.length > MAX_SCOPES_A_TURN;
}

/** Up to this many members, measuring a list again takes no longer than looking up its size. */
const MAX_MEASURED_AGAIN = 32;

/** The sizes of longer frozen lists. Records of a store share such lists, so each is measured once. */
const sizes = new WeakMap<readonly unknown[], number>();

/** The length of a list of texts as JSON if nothing in it is escaped; `NaN` for any other list. */
export function listBytes(list: readonly unknown[]): number {
  const isKept = list.length > MAX_MEASURED_AGAIN && Object.isFrozen(list);
  const known = isKept ? sizes.get(list) : undefined;
  if (known !== undefined) return known;
  const bytes = measure(list);
  if (isKept) sizes.set(list, bytes);
  return bytes;
}

/** Measures a list and freezes it, in this order: reading a frozen one takes five times as long. */
export function freezeMeasured(list: readonly unknown[]): number {
  const bytes = measure(list);
  Object.freeze(list);
  if (list.length > MAX_MEASURED_AGAIN) sizes.set(list, bytes);
  return bytes;
}

function measure(list: readonly unknown[]): number {
  let bytes = 2;
  // By index, which takes less time than an iterator: each read of a record does this.
  for (let index = 0; index < list.length; index += 1) {
    const item = list[index];
    if (typeof item !== 'string') return Number.NaN;
    bytes += item.length + 3;
  }
  return bytes;
}

/** The bytes of both lists of a record, as {@link listBytes} counts them. Often they are one list. */
export function bytesOfLists({
  scopes,
  requested,
}: Readonly<Record<'scopes' | 'requested', readonly unknown[]>>): number {
  const bytes = listBytes(scopes);
  return bytes + (requested === scopes ? bytes : listBytes(requested));
}

/**
 * The objects around a scope that is in use. Its text is in memory twice, in the list and in the parts
 * of the parsed scope. Measured in total: 310 bytes for 31 characters, 440 for 121.
 */
const SCOPE_BYTES = 280;
/** Measured: an empty set with its lookup table, and the references to it. */
const LIST_BYTES = 1500;

/** About how many bytes a list of scopes takes in memory, with the set that is compiled from it. */
export function listWeight(list: readonly string[]): number {
  return LIST_BYTES + 2 * listBytes(list) + SCOPE_BYTES * list.length;
}
