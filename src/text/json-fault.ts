/** What may come next in a JSON text. */
type State = 'value' | 'first item' | 'first name' | 'name' | 'colon' | 'end of item';

const SPACE = /[ \t\n\r]*/y;
const PLAIN = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;

/**
 * Finds where a text stops being JSON. The messages of parsers cannot say it: they quote the text, which may
 * hold a secret, and not all of them have a position.
 *
 * @returns the line and the column, both from 1; the place after the text if it ends too early; undefined
 * if the text is JSON
 */
export function jsonFault(
  text: string,
): { readonly line: number; readonly column: number } | undefined {
  const at = faultAt(text);
  if (at === undefined) return undefined;
  const lines = text.slice(0, at).split('\n');
  return { line: lines.length, column: (lines.at(-1) ?? '').length + 1 };
}

function faultAt(text: string): number | undefined {
  const open: string[] = [];
  let state: State = 'value';
  for (let at = 0; ; ) {
    at = endOf(SPACE, text, at) ?? at;
    if (state === 'end of item' && open.length === 0) return at === text.length ? undefined : at;
    const next = stepAt(text, at, state, open);
    if (next.end === undefined) return next.fault ?? at;
    at = next.end;
    state = next.state;
  }
}

interface Step {
  /** Undefined if the text is wrong here. */
  readonly end: number | undefined;
  readonly state: State;
  /** Where exactly, within a string. */
  readonly fault?: number | undefined;
}

/** Reads one part of the text, and notes the objects and lists that are open. */
function stepAt(text: string, at: number, state: State, open: string[]): Step {
  const sign = text.charAt(at);
  const isClosed = sign === (open.at(-1) === '{' ? '}' : ']');
  if (isClosed && (state === 'end of item' || state === firstIn(open))) {
    open.pop();
    return { end: at + 1, state: 'end of item' };
  }
  if (state === 'end of item') {
    const end = sign === ',' ? at + 1 : undefined;
    return { end, state: open.at(-1) === '{' ? 'name' : 'value' };
  }
  if (state === 'colon') return { end: sign === ':' ? at + 1 : undefined, state: 'value' };
  const isName = state === 'name' || state === 'first name';
  if (sign === '"') return { ...stringAt(text, at), state: isName ? 'colon' : 'end of item' };
  if (isName) return { end: undefined, state };
  if (sign === '{' || sign === '[') {
    open.push(sign);
    return { end: at + 1, state: sign === '{' ? 'first name' : 'first item' };
  }
  return { end: endOf(PLAIN, text, at), state: 'end of item' };
}

function firstIn(open: readonly string[]): State | undefined {
  if (open.length === 0) return undefined;
  return open.at(-1) === '{' ? 'first name' : 'first item';
}

/** Not by one regular expression: V8 needs memory for each character that one repeats over. */
function stringAt(text: string, start: number): Pick<Step, 'end' | 'fault'> {
  for (let at = start + 1; ; ) {
    const sign = text.charAt(at);
    if (sign === '"') return { end: at + 1 };
    const end = sign === '\\' ? endOf(ESCAPE, text, at) : at + 1;
    // Also at the end of the text. A line break within a string mostly means that a quote is missing.
    if (sign < ' ' || end === undefined) return { end: undefined, fault: at };
    at = end;
  }
}

function endOf(pattern: RegExp, text: string, start: number): number | undefined {
  pattern.lastIndex = start;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}
