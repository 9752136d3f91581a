// In a file without imports, because bundlers inline constants only from such files.

export const DASH = 0x2d;
export const DOT = 0x2e;
export const SLASH = 0x2f;
export const QUESTION_MARK = 0x3f;
export const OPENING_BRACE = 0x7b;
