import { ACCOUNT_FLAGS, ACCOUNT_HELP, ROUTE_FLAGS, ROUTE_HELP } from '../account/flags.ts';
import { command } from '../command.ts';
import { ROOT_NAME_FLAG } from './request.ts';
import { ABSENT, CLIENT_FAULT, ID_HELP } from './token-help.ts';
import { readIdOperand, readWrittenNeed } from './token-input.ts';
import { explanationOutcome } from './token-output.ts';
import { withToken } from './with-token.ts';

/** Explains what a token may do. */
export const TOKEN_EXPLAIN = command({
  name: 'token explain',
  operands: ['ID', 'METHOD?', 'URL?'],
  summary: 'says whether a token would be allowed a request, and why not',
  about: `Give METHOD and URL of a request, or --scope. If the token would be refused, you see its nearest scope,
which part of that does not match, and the smallest scope that would be enough. It needs no value, and
counts as no use. To check a value, use token verify.

${ID_HELP}

With a store, give the catalog as to serve:
${ROUTE_HELP}

${ACCOUNT_HELP}`,
  flags: {
    ...ACCOUNT_FLAGS,
    ...ROUTE_FLAGS,
    scope: {
      type: 'string',
      value: 'SCOPE',
      help: 'the scope in question, instead of METHOD and URL',
    },
    'root-name': ROOT_NAME_FLAG,
  },
  json: '{ allowed, reason?, grantedBy?, needed, nearest?: { scope, failed }, smallest?, known, suggestions }; known is whether the catalog knows it (true without a catalog), failed is method, domain or path',
  exits: { 0: 'allowed', 1: CLIENT_FAULT, 3: `refused, or ${ABSENT}` },
  example: {
    call: 'token explain 7f3kQwB2mN8xR4tY6uZ1aC DELETE https://shop.example/orders/7 --account ada',
    output: `refused  DELETE shop.example /orders/7
reason   insufficient_scope: no scope of the token covers it
nearest  GET:shop.example/orders, but its method does not match
enough   DELETE:shop.example/orders/7$`,
  },
  async run([operand = '', method, url], flags) {
    const need = readWrittenNeed(method, url, flags);
    const id = await readIdOperand(operand);
    return withToken(
      flags,
      (client) => client.explain(id, need),
      (explanation) => explanationOutcome(explanation, need),
      { catalogFor: 'routing' },
    );
  },
});
