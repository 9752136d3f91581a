import { withClient } from '../account/connect.ts';
import { BEARER_FLAGS, BEARER_HELP, REVEAL_FLAGS, REVEAL_HELP } from '../account/flags.ts';
import { InvalidValue, type TokenClient } from '../account/index.ts';
import { command, type Outcome } from '../command.ts';
import { CLIENT_FAULT, TOKEN_JSON } from './token-help.ts';
import {
  NEW_TOKEN_FLAGS,
  newTokenOf,
  readScopeFlags,
  readValueOperand,
  VALUE_FLAG,
} from './token-input.ts';
import { madeOutcome } from './token-output.ts';

const INVALID = 'the value is not, or no longer, valid';

/** Makes a narrower token from a token. */
export const TOKEN_DERIVE = command({
  name: 'token derive',
  summary: 'makes a narrower token from the value of a token, and prints its value',
  about: `The value of the parent is read from standard input, or from the variable TOKENWRIGHT_TOKEN. It is all
the credentials: neither an account nor a password is needed. With --url, the service must run with
--derivation.

The new token may do what --scope names and its parent may do, and ends with its parent at the latest. Limits
can only be added or lowered. Standard output has only its value. The details go to standard error.

${BEARER_HELP}
${REVEAL_HELP}`,
  flags: {
    ...BEARER_FLAGS,
    ...REVEAL_FLAGS,
    token: VALUE_FLAG,
    ...NEW_TOKEN_FLAGS,
  },
  json: TOKEN_JSON,
  exits: { 0: 'the token was made', 1: CLIENT_FAULT, 3: INVALID },
  example: {
    call: 'token derive --scope GET:shop.example/orders --name job --ttl 15m < value.txt',
    output: `tw_1k1x0PmR2…
id       x0PmR2sW8vK2mYt7RjW1cZ
value    tw_1k1x0PmR2…
name     job
state    active
parent   7f3kQwB2mN8xR4tY6uZ1aC
scopes   GET:shop.example/orders
created  2026-11-21T20:00:00Z
expires  2026-11-21T20:15:00Z
version  1`,
  },
  async run(_, flags) {
    const scopes = await readScopeFlags(flags.scope ?? [], 'scope');
    const token = newTokenOf(scopes, flags);
    const value = await readValueOperand(flags.token);
    const derive = async (client: TokenClient): Promise<Outcome> => {
      try {
        return madeOutcome(await client.derive(value, token));
      } catch (error) {
        if (!(error instanceof InvalidValue)) throw error;
        return { text: '', json: null, notes: INVALID, isNegative: true };
      }
    };
    return withClient(flags, derive, { isByValue: true });
  },
});
