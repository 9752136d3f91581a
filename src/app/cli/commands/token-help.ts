// Texts that the help of several token commands shares.

export const CLIENT_FAULT = 'the service or the store refused the call, or cannot be reached';
export const ABSENT = 'the account has no such token';

export const ID_HELP = `ID is the id of the token. With a store, its value works as well: give - and pass the value on
standard input, because arguments are visible in process lists.`;

export const TOKEN_JSON =
  'the token as in the answer of the service: { id, token, masked, scopes, requested?, state, createdAt, expire, version, pending?, parent?, name?, metadata?, limits? }; times are UNIX seconds, and only a store gives requested';
