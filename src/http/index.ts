export {
  type Authenticate,
  type Credentials,
  type FixedAccount,
  fixedAccounts,
  hashPassword,
} from './accounts.ts';
export type { HttpErrorCode } from './answers.ts';
export { type TokenHandler, type TokenHandlerOptions, tokenHandler } from './handler.ts';
export { type NodeRequest, toNodeListener } from './node.ts';
