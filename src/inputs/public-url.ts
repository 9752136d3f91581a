import type * as z from 'zod/mini';
import { kindOf } from '../text/wording.ts';
import { readBy } from './schemas.ts';

const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/**
 * The URL by which people and programs know a thing, as an option.
 *
 * @param example such a URL, for the message of a refusal
 */
export function publicUrlField(name: string, example: string): z.ZodMiniType<string> {
  const rule = `${name} must be an https URL, or one with http on this machine, in its canonical spelling and without user, query and fragment, such as "${example}"`;
  return readBy((value, refuse) => {
    if (typeof value === 'string' && isPublicUrl(value)) return value;
    return refuse(typeof value === 'string' ? rule : `${rule}; got ${kindOf(value)}`);
  });
}

/** Whether a text is such a URL, and the one that a parser would write: others could be read in two ways. */
function isPublicUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password, search, hash, href, pathname } = new URL(text);
  if (username + password + search + hash !== '' || /[?#]/.test(text)) return false;
  if (protocol !== 'https:' && !(protocol === 'http:' && LOOPBACK.test(hostname))) return false;
  return href === text || (pathname === '/' && href === `${text}/`);
}
