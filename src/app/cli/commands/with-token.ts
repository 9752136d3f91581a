import { type ClientUse, withClient } from '../account/connect.ts';
import type { AccountFlags } from '../account/flags.ts';
import { NotFound, type TokenClient } from '../account/index.ts';
import type { Outcome } from '../command.ts';
import { missingOutcome } from './token-output.ts';

/** Calls the client about one token. A missing token is a negative answer. */
export async function withToken<Result>(
  flags: AccountFlags,
  call: (client: TokenClient) => Promise<Result>,
  describe: (result: Result, client: TokenClient) => Outcome,
  use: ClientUse = {},
): Promise<Outcome> {
  const describeCall = async (client: TokenClient) => {
    try {
      return describe(await call(client), client);
    } catch (error) {
      if (error instanceof NotFound) return missingOutcome(client);
      throw error;
    }
  };
  return withClient(flags, describeCall, use);
}
