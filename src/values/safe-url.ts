import { redact } from './redact.ts';

/** The argument of {@link safeUrl}: an address, or a request of Fetch or of Node. */
export type Addressed =
  | string
  | URL
  | {
      /** The address; for a request of Node, just the target. */
      readonly url?: string | undefined;
      /** The target before a router removed the path it is mounted under. */
      readonly originalUrl?: string | undefined;
    };

/**
 * Makes the address of a request safe for a log line.
 *
 * Masks token values anywhere in it, also percent-encoded ones. Removes user name and password. Removes
 * the values of parameters that are known to carry a credential, such as `access_token`, `code` or
 * `password`, in the query and in the fragment. Other addresses stay unchanged. Credentials of other
 * systems in the path, or in parameters with other names, are not recognized.
 *
 * Accepts the raw target of a Node request, also behind a router. Never throws; takes linear time.
 * Returns the empty text if there is no address.
 *
 * @example
 * safeUrl(request); // '/token/acme_1k1V3xQpL…?access_token=…'
 */
export function safeUrl(requestOrUrl: Addressed): string {
  const [, address = '', query = '', fragment = ''] = URL_PARTS.exec(textOf(requestOrUrl)) ?? [];
  return withoutValues(
    withoutUser(address) + withoutCredentials(query) + withoutCredentials(fragment),
  );
}

const URL_PARTS = /^([^?#]*)(\?[^#]*)?(#.*)?$/s;

/** RFC 3986 section 3.2, with as many slashes, or none, as browsers accept. */
const USER = /^([^/\\:]*:[/\\]*|[/\\]{2,})[^/\\]*@/;

/** Letters, digits and `_`, which need no encoding, encoded once or several times. */
const NEEDLESSLY_ENCODED = /%(?:25)*(3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9A])/gi;

/** That of a value. */
const ENCODED_UNDERSCORE = /%(?:25)*5[Ff](?=1[0-9A-Za-z]{57})/g;

/** Matches the name of a parameter, reduced to its letters in lower case. */
const CREDENTIAL_NAME =
  /(?:token|secret|password|passwd|pwd|apikey|accesskey|signature|assertion|credentials?|authorization|verifier)$|^(?:auth|awsaccesskeyid|code|jwt|samlresponse|session|sessionid|sid|sig)$/;

function textOf(requestOrUrl: Addressed): string {
  try {
    const text = typeof requestOrUrl === 'string' ? requestOrUrl : targetOf(requestOrUrl);
    return typeof text === 'string' ? text : '';
  } catch {
    // Logging must not fail.
    return '';
  }
}

function targetOf(request: Exclude<Addressed, string>): string | undefined {
  return 'href' in request ? request.href : (request.originalUrl ?? request.url);
}

function withoutUser(address: string): string {
  return address.replace(USER, '$1');
}

/** A query or a fragment, with the mark it begins with. */
function withoutCredentials(parameters: string): string {
  if (!parameters.includes('=')) return parameters;
  return parameters[0] + parameters.slice(1).split('&').map(withoutCredential).join('&');
}

/** A credential may hold any character, so everything after its name goes, up to the `&`. */
function withoutCredential(part: string): string {
  const parameters = part.split(';');
  const place = parameters.findIndex(isCredential);
  if (place === -1) return part;
  const [name] = (parameters[place] as string).split('=', 1);
  return [...parameters.slice(0, place), `${name}=…`].join(';');
}

function isCredential(parameter: string): boolean {
  const end = parameter.indexOf('=');
  if (end === -1 || parameter.length === end + 1) return false;
  const name = decode(parameter.slice(0, end)).toLowerCase();
  return CREDENTIAL_NAME.test(name.replace(/%(?:25)*[0-9a-f]{2}|[^a-z]/g, ''));
}

function withoutValues(text: string): string {
  const masked = redact(text.replace(ENCODED_UNDERSCORE, '_'));
  const plain = decode(masked);
  const maskedAgain = redact(plain);
  // If no value hides behind an encoding, the log shows the original spelling.
  return maskedAgain === plain ? masked : maskedAgain;
}

function decode(text: string): string {
  return text.replace(NEEDLESSLY_ENCODED, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
