import { readInput } from '../inputs/schemas.ts';
import type { TokenRequests } from '../requests/requests.ts';
import { type BodySchemas, toInput } from './bodies.ts';
import { HttpError } from './errors.ts';
import { openByForm } from './oauth/device.ts';
import type { Form } from './oauth/form.ts';
import { refuseCredentials } from './oauth/token-endpoint.ts';
import type { ResourceCall, Verb } from './resources.ts';
import { type HttpResponse, succeed } from './responses.ts';
import { toWireRequest } from './wire.ts';

/** The verbs of requests for tokens. @param requests absent if none of them is called */
export function requestVerbs(requests: TokenRequests | undefined, schemas: BodySchemas) {
  const verb =
    (answer: (requests: TokenRequests, call: ResourceCall) => Promise<HttpResponse>): Verb =>
    async (call) => {
      if (requests === undefined) throw noRequest();
      return answer(requests, call);
    };
  return {
    openRequest: verb(async (requests, { request, address, body }) => {
      refuseCredentials(body as Form, request.header('authorization'));
      return openByForm(requests, body as Form, address);
    }),
    showRequest: verb(async (requests, { account, code, address }) => {
      const request = await requests.get(account, code, { address });
      if (request === undefined) throw noRequest();
      return succeed({ data: toWireRequest(request) });
    }),
    approveRequest: verb(async (requests, { account, user, code, address, body }) => {
      const approval = toInput<object>(schemas.approve(), sent(body));
      const request = await requests.approve(account, code, { ...approval, by: user, address });
      return succeed({ data: toWireRequest(request) });
    }),
    denyRequest: verb(async (requests, { account, user, code, address, body }) => {
      readInput(schemas.deny(), sent(body));
      const isDenied = await requests.deny(account, code, { by: user, address });
      if (!isDenied) throw noRequest();
      return succeed({ data: null });
    }),
  };
}

/** A body has to be sent, even an empty object: a page of another site cannot send JSON. */
function sent(body: unknown): unknown {
  if (body !== undefined) return body;
  throw new HttpError(
    'unsupported_media_type',
    'a body must be sent as "Content-Type: application/json", such as {}',
  );
}

function noRequest(): HttpError {
  return new HttpError(
    'not_found',
    'there is no request with this code: it was mistyped, or has expired',
  );
}
