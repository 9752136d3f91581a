/** The headers by which common servers replace the method of a request, as they compare their names. */
const HEADERS: readonly string[] = ['x-http-method-override', 'x-http-method', 'x-method-override'];

/** Iterates over headers. Those of Node may hold a list under one name. */
type SentHeaders = Iterable<[string, string]> | Readonly<Record<string, unknown>>;

/**
 * Whether a server behind this one may act on another method than that of the request: a header or a
 * parameter of the query names one. Frameworks read these names in several spellings, so all of them count.
 * A body is not read.
 */
export function isMethodOverridden(method: string, headers: SentHeaders, target: string): boolean {
  const isSame = (named: string) => named.trim().toUpperCase() === method.toUpperCase();
  return !headerMethods(headers).every(isSame) || !queryMethods(target).every(isSame);
}

function headerMethods(headers: SentHeaders): readonly string[] {
  let methods: readonly string[] = [];
  if (Symbol.iterator in headers) {
    for (const [name, value] of headers as Iterable<[string, string]>) {
      if (isOverride(name)) methods = [...methods, ...value.split(',')];
    }
    return methods;
  }
  for (const name in headers) {
    // A list becomes a text with commas.
    if (isOverride(name)) methods = [...methods, ...String(headers[name]).split(',')];
  }
  return methods;
}

/** Servers of the CGI family, such as those of PHP and Python, take an underscore for a hyphen. */
function isOverride(header: string): boolean {
  const { length } = header;
  // Nearly all headers end here.
  if (length < 13 || (header[0] !== 'x' && header[0] !== 'X')) return false;
  return HEADERS.includes(header.toLowerCase().replaceAll('_', '-'));
}

function queryMethods(target: string): readonly string[] {
  const start = target.indexOf('?');
  // Nearly all queries end here.
  if (start === -1 || !/method|%/i.test(target.slice(start))) return [];
  const methods: string[] = [];
  // Some servers also separate parameters by a semicolon.
  for (const parameter of target.slice(start + 1).split(/[&;]/)) {
    const [[name = '', value = ''] = []] = new URLSearchParams(parameter);
    if (isMethodParameter(name)) methods.push(value);
  }
  return methods;
}

/** PHP drops spaces before a name, and takes a space or a dot in it for an underscore. */
function isMethodParameter(name: string): boolean {
  const plain = name.replace(/^ +/, '').replace(/\[.*$/s, '').toLowerCase();
  return /^[_ .]method$/.test(plain) || HEADERS.includes(plain);
}
