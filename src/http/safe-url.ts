import { redact } from '../value.ts';

/** What {@link safeUrl} takes: an address, or a request of Fetch or of Node. */
export type Addressed =
  | string
  | URL
  | {
      /** Where it goes; of a request of Node, the target alone. */
      readonly url?: string | undefined;
      /** The target before a router cut off what it is mounted under. */
      readonly originalUrl?: string | undefined;
    };

/**
 * The address of a request for a log line, with nothing in it that opens a door.
 *
 * Values of tokens are masked wherever they stand, also percent-encoded; user name and password are
 * left out; and parameters that are known to carry a credential, as `access_token`, `code` or
 * `password`, keep their name alone, in the query and in the fragment. Addresses without any of
 * these stay as they are. Credentials of others in the path, or in parameters of other names, are
 * not noticed.
 *
 * Takes the raw target of a Node request, also behind a router. Never throws, and takes linear time;
 * what has no address is the empty text.
 *
 * @example
 * safeUrl(request); // '/token/acme_1k1V3xQpL…?access_token=…'
 */
export function safeUrl(requestOrUrl: Addressed): string {
  const [, address = '', query = '', fragment = ''] = PARTS.exec(addressOf(requestOrUrl)) ?? [];
  return withoutValues(
    withoutUser(address) + withoutCredentials(query) + withoutCredentials(fragment),
  );
}

const PARTS = /^([^?#]*)(\?[^#]*)?(#.*)?$/s;

/** RFC 3986 section 3.2, and as generous with slashes and without them as browsers are. */
const USER = /^([^/\\:]*:[/\\]*|[/\\]{2,})[^/\\]*@/;

/** Letters, digits and `_`, for which no encoding is needed, encoded once or several times. */
const NEEDLESSLY_ENCODED = /%(?:25)*(3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9A])/gi;

/** Of the name of a parameter, in lower case and letters alone. */
const CREDENTIAL_NAME =
  /(?:token|secret|password|passwd|pwd|apikey|accesskey|signature|assertion|credentials?|authorization|verifier)$|^(?:auth|awsaccesskeyid|code|jwt|samlresponse|session|sessionid|sid|sig)$/;

function addressOf(requestOrUrl: Addressed): string {
  try {
    const text = typeof requestOrUrl === 'string' ? requestOrUrl : targetOf(requestOrUrl);
    return typeof text === 'string' ? text : '';
  } catch {
    // A log line is no place to fail.
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

/** What stands behind a credential's name may hold any character, so it all goes, up to the `&`. */
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
  const masked = redact(text);
  const plain = decode(masked);
  const maskedAgain = redact(plain);
  // Where nothing hides behind an encoding, the log shows it as it came.
  return maskedAgain === plain ? masked : maskedAgain;
}

function decode(text: string): string {
  return text.replace(NEEDLESSLY_ENCODED, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
