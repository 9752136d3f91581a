import { ID_LENGTH } from '../token/id.ts';
import type { TokenId } from '../token/record.ts';

/**
 * The form of a value: `<prefix>_<version><kid><id><secret><checksum>`, where everything after the
 * underscore is base62. The lengths are counted in characters.
 */
export const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** The alphabet as a character class of a regular expression. */
export const ALPHABET_CLASS = '[0-9A-Za-z]';
export const VERSION = '1';
export const KID_LENGTH = 2;
export const SECRET_LENGTH = 27;
export const CHECKSUM_LENGTH = 6;
/** How much of an id a masked value shows. */
export const MASKED_ID_LENGTH = 6;

/** Where the parts begin, counted from the version. */
export const ID_START = VERSION.length + KID_LENGTH;
export const SECRET_START = ID_START + ID_LENGTH;
export const CHECKSUM_START = SECRET_START + SECRET_LENGTH;
/** Everything after the underscore. */
export const BODY_LENGTH = CHECKSUM_START + CHECKSUM_LENGTH;

/** A value or a device code in a text, from the last character of its prefix on. Masking keeps group 1. */
export const VALUE_IN_TEXT = /([a-z0-9]_(?:1[0-9A-Za-z]{8}|d[0-9A-Za-z]{6}))[0-9A-Za-z]{49}/g;
/** The same after an underscore that is encoded. */
export const BODY_IN_TEXT = /^(1[0-9A-Za-z]{8}|d[0-9A-Za-z]{6})[0-9A-Za-z]{49}/;
/** An underscore in an address, in JSON or in HTML, and the wide one of East Asian keyboards. */
export const ENCODED_UNDERSCORE = /(%(?:25)?5[Ff]|\\u005[Ff]|&#95;|\uFF3F)/;

/** A well-formed value that was presented: the token that it claims to be, and the proof. */
export interface PresentedValue {
  readonly id: TokenId;
  /** To be compared with the record's digest. The secret itself does not leave the values. */
  readonly digest: Uint8Array;
}
