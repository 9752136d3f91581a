// The bounds of scopes, sets and requests. All others are in `src/bounds.ts`.

/** Characters of one scope. */
export const MAX_SCOPE_LENGTH = 1024;

/** Characters of the method of a scope. */
export const MAX_METHOD_LENGTH = 32;

/** Characters of the host of a scope. */
export const MAX_HOST_LENGTH = 253;

/** Characters between two dots of a host. */
export const MAX_LABEL_LENGTH = 63;

/** Characters of the path of a scope. */
export const MAX_PATH_LENGTH = 512;

/** Segments of the path of a scope. */
export const MAX_PATH_SEGMENTS = 32;

/** Segments `{}` of the path of a scope. */
export const MAX_PATH_TEMPLATES = 8;

/** Characters of the target of a request that is checked. */
export const MAX_TARGET_LENGTH = 8192;

/** Scopes that one call may ask for, and that one token may hold. */
export const MAX_SCOPES = 4096;

/** Refused scopes that the message of an error names, and that get suggestions. */
export const MAX_NAMED_SCOPES = 5;

/** Suggestions for one refused scope. */
export const MAX_SUGGESTIONS = 3;

/** Work on the suggestions of one refusal, in cells of the edit distance matrix. */
export const SUGGESTION_BUDGET = 600_000;

/** Texts of scopes that a process remembers with the scope that they parse to. */
export const MAX_REMEMBERED_SCOPES = 1000;

/** Characters of a scope that is remembered; longer ones are parsed each time. */
export const MAX_REMEMBERED_SCOPE_LENGTH = 256;

/** Probes of a compiled set for one question, before it goes over to bit vectors. */
export const MAX_PROBES = 1024;

/** Characters of a summary, a tag or another word about an endpoint; longer ones are cut. */
export const MAX_WORDS_LENGTH = 200;
